//! The metrics of one gateway: what may be counted, and the page that Prometheus scrapes.
//!
//! Labels come from the config or from closed sets; what is in neither becomes `_other` (case-I09). Nothing is
//! global: each [`Metrics`] has its own registry. Hot paths look a child up by its server, endpoint or method
//! and touch an atomic; no lock, no allocation. `families` declares the metrics, `children` resolves them.

mod children;
pub mod cluster;
mod eras;
mod families;
mod store;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use prometheus::{IntCounter, Registry, TextEncoder};

pub use eras::Translated;
pub use store::{StoreFault, StoreOperation};

use children::{EndpointChildren, Named, ServerChildren, Words};
use cluster::Cluster;
use eras::Eras;
use families::Families;

use crate::protocol::method::Method;
use crate::protocol::revision::{Era, Revision};

/// The metrics of one gateway.
pub struct Metrics {
    registry: Registry,
    families: Families,
    servers: ArcSwap<Named<ServerChildren>>,
    endpoints: ArcSwap<Named<EndpointChildren>>,
    requests: Words<[IntCounter; CallOutcome::ALL.len()]>,
    auth_attempts: Words<Words<IntCounter>>,
    eras: Eras,
}

/// How an attempt to come in can end: well, or by the reason of a refusal.
const AUTH_OUTCOMES: &[&str] = &[
    "ok",
    "missing",
    "malformed",
    "invalid",
    "expired",
    "unknown_issuer",
    "unknown_key",
    "bad_signature",
    "bad_audience",
    "bad_claim",
    "insufficient_scope",
    "unavailable",
];

/// How a request of a caller ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// A result.
    Ok,
    /// A tool's result with `isError`.
    ToolError,
    /// The server's own JSON-RPC error.
    RpcError,
    /// No answer in time.
    Timeout,
    /// The link failed.
    Unavailable,
    /// The caller cancelled.
    Cancelled,
}

/// Kinds of streams to callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// Of a POST.
    Post,
    /// The standalone GET.
    Get,
    /// `subscriptions/listen`.
    Listen,
}

// === impl Metrics ===

impl Metrics {
    /// The content type of [`Metrics::encode`].
    pub const CONTENT_TYPE: &'static str = "text/plain; version=0.0.4; charset=utf-8";

    /// Metrics that know these servers and endpoints by name; others are counted as `_other`.
    pub fn new<'a>(
        servers: impl IntoIterator<Item = &'a str>,
        endpoints: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let registry = Registry::new();
        let families = Families::declare(&registry);
        let requests = Words::resolve(Method::KNOWN, |method| {
            CallOutcome::ALL.map(|o| families.requests_total.with_label_values(&[method, o.as_str()]))
        });
        let auth_attempts = Words::resolve(&["jwt", "api_key", "none"], |scheme| {
            Words::resolve(AUTH_OUTCOMES, |o| families.auth_attempts_total.with_label_values(&[scheme, o]))
        });
        let eras = Eras::resolve(&families);
        let metrics = Self {
            servers: ArcSwap::from_pointee(Named::none(&families)),
            endpoints: ArcSwap::from_pointee(Named::none(&families)),
            registry,
            families,
            requests,
            auth_attempts,
            eras,
        };
        metrics.start_at_zero();
        metrics.register(servers, endpoints);
        metrics
    }

    /// Adds names of servers and endpoints, after a reload. Names that are gone stay until the process ends, so that
    /// a counter never falls and what ends late, such as a child process, is counted where it began.
    pub fn register<'a>(
        &self,
        servers: impl IntoIterator<Item = &'a str>,
        endpoints: impl IntoIterator<Item = &'a str>,
    ) {
        let (known_servers, known_endpoints) = (self.servers.load_full(), self.endpoints.load_full());
        let mut names: (Vec<&str>, Vec<&str>) =
            (servers.into_iter().collect(), endpoints.into_iter().collect());
        names.0.extend(known_servers.names());
        names.1.extend(known_endpoints.names());
        self.servers.store(Arc::new(Named::resolve(names.0, &self.families)));
        self.endpoints.store(Arc::new(Named::resolve(names.1, &self.families)));
    }

    /// The page for Prometheus, in its text format.
    pub fn encode(&self) -> String {
        let mut page = String::with_capacity(32 << 10);
        if let Err(error) = TextEncoder::new().encode_utf8(&self.registry.gather(), &mut page) {
            tracing::error!(%error, "metrics cannot be written");
        }
        page
    }

    /// Counts one HTTP answer; `endpoint` is a configured name or a fixed word.
    pub fn http_request(&self, method: &'static str, endpoint: &str, status: u16) {
        self.endpoints.load().of(endpoint).requests(method, status, &self.families).inc();
    }

    /// Counts one caller request that was relayed to `server`, and its time.
    pub fn call(&self, server: &str, method: &'static str, outcome: CallOutcome, took: Duration) {
        self.request(method, outcome);
        let servers = self.servers.load();
        let server = servers.of(server);
        if let Some(calls) = server.calls.get(outcome as usize) {
            calls.inc();
        }
        server.duration.observe(took.as_secs_f64());
    }

    /// Counts one caller request that the gateway answered itself, such as a list or a ping;
    /// [`Metrics::call`] does it for those that were relayed.
    pub fn request(&self, method: &'static str, outcome: CallOutcome) {
        if let Some(requests) = self.requests.of(method).get(outcome as usize) {
            requests.inc();
        }
    }

    /// A caller's request is written in this era.
    pub fn request_of(&self, era: Era) {
        self.eras.request(era);
    }

    /// Something was translated from this era to the other.
    pub fn translated(&self, from: Era, what: Translated) {
        self.eras.translated(from, what);
    }

    /// A call waits for its caller.
    pub fn call_parked(&self) {
        self.families.parked_calls.inc();
    }

    /// A call does so no longer.
    pub fn call_unparked(&self) {
        self.families.parked_calls.dec();
    }

    /// How many calls wait for their callers.
    pub fn parked_calls(&self) -> u64 {
        u64::try_from(self.families.parked_calls.get()).unwrap_or(0)
    }

    /// A server was found to speak this era.
    pub fn server_era(&self, server: &str, era: Era) {
        self.servers.load().of(server).era.found(era);
    }

    /// A session began.
    pub fn session_opened(&self, revision: &'static str) {
        self.families.sessions_active.with_label_values(&[revision]).inc();
        self.families.sessions_created_total.with_label_values(&[revision]).inc();
    }

    /// A session ended; `reason` is one of delete, idle, `max_age`, shutdown, reconfigured,
    /// released, lost.
    pub fn session_closed(&self, revision: &'static str, reason: &'static str) {
        self.families.sessions_active.with_label_values(&[revision]).dec();
        self.families.sessions_closed_total.with_label_values(&[reason]).inc();
    }

    /// A session was taken over from another owner.
    pub fn session_adopted(&self, revision: &'static str) {
        self.families.sessions_active.with_label_values(&[revision]).inc();
    }

    /// What this replica knows of itself and its peers.
    pub fn cluster(&self) -> Cluster<'_> {
        Cluster(&self.families)
    }

    /// An implicit session began.
    pub fn implicit_opened(&self) {
        self.families.implicit_sessions_active.inc();
    }

    /// An implicit session ended.
    pub fn implicit_closed(&self) {
        self.families.implicit_sessions_active.dec();
    }

    /// A session id was not found.
    pub fn session_not_found(&self) {
        self.families.session_not_found_total.inc();
    }

    /// A stream began.
    pub fn stream_opened(&self, kind: StreamKind) {
        self.families.sse_streams_active.with_label_values(&[kind.as_str()]).inc();
    }

    /// A stream's connection ended.
    pub fn stream_closed(&self, kind: StreamKind) {
        self.families.sse_streams_active.with_label_values(&[kind.as_str()]).dec();
    }

    /// A resume came; `outcome` is one of replayed, complete, unknown.
    pub fn stream_resumed(&self, outcome: &'static str) {
        self.families.sse_resumes_total.with_label_values(&[outcome]).inc();
    }

    /// Events were dropped from a full log.
    pub fn events_dropped(&self, count: u64) {
        self.families.sse_events_dropped_total.inc_by(count);
    }

    /// A child process of `server` started.
    pub fn child_started(&self, server: &str) {
        let servers = self.servers.load();
        let server = servers.of(server);
        server.starts.inc();
        server.processes.inc();
    }

    /// A child process of `server` ended; `reason` is one of exit, signal, closed.
    pub fn child_exited(&self, server: &str, reason: &'static str) {
        let servers = self.servers.load();
        let server = servers.of(server);
        server.exits.of(reason).inc();
        server.processes.dec();
    }

    /// A line on a child's stdout was no JSON-RPC message.
    pub fn stdout_skipped(&self, server: &str) {
        self.servers.load().of(server).stdout_skipped.inc();
    }

    /// A child wrote a line to stderr.
    pub fn stderr_line(&self, server: &str) {
        self.servers.load().of(server).stderr_lines.inc();
    }

    /// A response came for a request nobody waits for.
    pub fn late_response(&self, server: &str) {
        self.servers.load().of(server).late_responses.inc();
    }

    /// What a server sent could not be attributed to a session and was dropped.
    pub fn unattributed(&self, server: &str) {
        self.servers.load().of(server).unattributed.inc();
    }

    /// A link had to be opened; `outcome` is ok or the layer that failed.
    pub fn link_opened(&self, server: &str, outcome: &'static str) {
        self.servers.load().of(server).links_opened.of(outcome).inc();
    }

    /// How many tools of `server` are listed and how many are quarantined.
    pub fn tools_listed(&self, server: &str, listed: usize, quarantined: usize) {
        let servers = self.servers.load();
        let server = servers.of(server);
        server.tools_listed.set(i64::try_from(listed).unwrap_or(i64::MAX));
        server.tools_quarantined.set(i64::try_from(quarantined).unwrap_or(i64::MAX));
    }

    /// A list of `server` failed; what a caller sees comes from the last good catalog, or leaves it out.
    pub fn list_failed(&self, server: &str) {
        self.servers.load().of(server).list_failures.inc();
    }

    /// An attempt to come in; `scheme` is jwt, `api_key` or none, `outcome` a fixed word.
    pub fn auth_attempt(&self, scheme: &'static str, outcome: &'static str) {
        self.auth_attempts.of(scheme).of(outcome).inc();
    }

    /// An issuer's keys were fetched or read again; `outcome` is ok or failed.
    pub fn jwks_refreshed(&self, outcome: &'static str) {
        self.families.jwks_refreshes_total.with_label_values(&[outcome]).inc();
    }

    /// The config was read again.
    pub fn config_reloaded(&self, succeeded: bool) {
        let outcome = if succeeded { "ok" } else { "failed" };
        self.families.config_reloads_total.with_label_values(&[outcome]).inc();
        self.families.config_last_reload_successful.set(i64::from(succeeded));
        if succeeded {
            self.families.config_last_reload_success_timestamp_seconds.set(now());
        }
    }

    /// Readiness is off and the process ends.
    pub fn draining(&self) {
        self.families.draining.set(1);
    }

    /// Makes the series of closed sets, so that `rate()` sees the first increment.
    fn start_at_zero(&self) {
        let all = &self.families;
        self.cluster().begin();
        all.build_info.with_label_values(&[env!("CARGO_PKG_VERSION"), REVISION]).set(1);
        all.config_last_reload_successful.set(1);
        all.config_last_reload_success_timestamp_seconds.set(now());
        store::start_at_zero(all);
        for revision in Revision::LEGACY {
            all.sessions_active.with_label_values(&[revision.as_str()]);
            all.sessions_created_total.with_label_values(&[revision.as_str()]);
        }
        for reason in ["delete", "idle", "max_age", "shutdown", "reconfigured", "released", "lost"] {
            all.sessions_closed_total.with_label_values(&[reason]);
        }
        for kind in [StreamKind::Post, StreamKind::Get, StreamKind::Listen] {
            all.sse_streams_active.with_label_values(&[kind.as_str()]);
        }
        for outcome in ["replayed", "complete", "unknown"] {
            all.sse_resumes_total.with_label_values(&[outcome]);
        }
        for outcome in ["ok", "failed"] {
            all.config_reloads_total.with_label_values(&[outcome]);
            all.jwks_refreshes_total.with_label_values(&[outcome]);
        }
    }
}

impl Default for Metrics {
    /// Metrics that know no server and no endpoint.
    fn default() -> Self {
        Self::new([], [])
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

/// The source revision this binary was built from, if the build said so.
pub const REVISION: &str = match option_env!("MCPGATE_REVISION") {
    Some(revision) => revision,
    None => "unknown",
};

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

// === impl CallOutcome ===

impl CallOutcome {
    /// All of them, in the order they are declared.
    pub const ALL: [Self; 6] =
        [Self::Ok, Self::ToolError, Self::RpcError, Self::Timeout, Self::Unavailable, Self::Cancelled];

    /// The word in labels and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ToolError => "tool_error",
            Self::RpcError => "rpc_error",
            Self::Timeout => "timeout",
            Self::Unavailable => "upstream_unavailable",
            Self::Cancelled => "cancelled",
        }
    }
}

// === impl StreamKind ===

impl StreamKind {
    /// The word in labels and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Post => "post",
            Self::Get => "get",
            Self::Listen => "listen",
        }
    }
}

#[cfg(test)]
mod tests;
