//! Every metric, declared once: its name is the field's with `mcpgate_` before it, its help text the comment.

use prometheus::core::Collector;
use prometheus::process_collector::ProcessCollector;
use prometheus::{
    HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
};

/// Declares the families. Each is `name: Type["label", ...]`.
macro_rules! metrics {
    ($($(#[doc = $help:literal])+ $name:ident: $kind:ident $([$($label:literal),+])?,)+) => {
        /// The families of all metrics.
        pub(super) struct Families {
            $($(#[doc = $help])+ pub(super) $name: $kind,)+
        }

        impl Families {
            /// The names of all families, for tests.
            #[cfg(test)]
            pub(super) const NAMES: &'static [&'static str] = &[$(concat!("mcpgate_", stringify!($name))),+];

            /// Declares all of them in `registry`, and those of the process.
            pub(super) fn declare(registry: &Registry) -> Self {
                enter(registry, ProcessCollector::for_self());
                Self {
                    $($name: {
                        let opts = Opts::new(stringify!($name), concat!($($help),+).trim()).namespace("mcpgate");
                        let family = $kind::family(opts, &[$($($label),+)?])
                            .expect("names and labels are written above, in a legal form");
                        enter(registry, family.clone());
                        family
                    },)+
                }
            }
        }
    };
}

metrics! {
    /// Always 1; the labels say what runs.
    build_info: IntGaugeVec["version", "revision"],
    /// Whether the config was good when it was last read.
    config_last_reload_successful: IntGauge,
    /// When a good config was last read, in seconds since 1970.
    config_last_reload_success_timestamp_seconds: IntGauge,
    /// How often the config was read again.
    config_reloads_total: IntCounterVec["outcome"],
    /// 1 when the process is about to end.
    draining: IntGauge,

    /// HTTP answers to callers.
    http_requests_total: IntCounterVec["method", "endpoint", "code"],
    /// Requests of callers by MCP method and how they ended.
    requests_total: IntCounterVec["method", "outcome"],
    /// Requests of callers by the era they are written in.
    requests_by_era_total: IntCounterVec["era"],
    /// What was translated between the eras: requests with their responses, and rounds of questions.
    translations_total: IntCounterVec["from", "to", "kind"],
    /// Calls that wait for an answer of their caller.
    parked_calls: IntGauge,
    /// Requests that were relayed to a server and how they ended.
    calls_total: IntCounterVec["server", "outcome"],
    /// How long relayed requests took, from the caller's request to its answer.
    call_duration_seconds: HistogramVec["server"],

    /// Sessions that live in this process.
    sessions_active: IntGaugeVec["revision"],
    /// Implicit sessions: what is kept in this process for callers without a session id.
    implicit_sessions_active: IntGauge,
    /// Sessions that began here.
    sessions_created_total: IntCounterVec["revision"],
    /// Sessions that ended here.
    sessions_closed_total: IntCounterVec["reason"],
    /// Requests whose session id was not found: unknown, expired or another's.
    session_not_found_total: IntCounter,

    /// Open SSE connections to callers.
    sse_streams_active: IntGaugeVec["kind"],
    /// Streams that callers came back to.
    sse_resumes_total: IntCounterVec["outcome"],
    /// Events that were dropped from full logs.
    sse_events_dropped_total: IntCounter,

    /// Attempts of callers to come in.
    auth_attempts_total: IntCounterVec["scheme", "outcome"],
    /// How often the keys of an issuer were fetched or read.
    jwks_refreshes_total: IntCounterVec["outcome"],

    /// Links that had to be opened; the outcome is ok or the layer that failed.
    links_opened_total: IntCounterVec["server", "outcome"],
    /// 1 for the era a server was last found to speak.
    server_era: IntGaugeVec["server", "era"],
    /// How often a server was found to speak another era than before.
    server_era_changes_total: IntCounterVec["server"],
    /// Child processes that run.
    upstream_processes: IntGaugeVec["server"],
    /// Child processes that were started.
    upstream_process_starts_total: IntCounterVec["server"],
    /// Child processes that ended.
    upstream_process_exits_total: IntCounterVec["server", "reason"],
    /// Lines on the stdout of children that were no JSON-RPC messages.
    upstream_stdout_skipped_total: IntCounterVec["server"],
    /// Lines that children wrote to stderr.
    upstream_stderr_lines_total: IntCounterVec["server"],
    /// Responses that came when nobody waited for them any more.
    upstream_late_responses_total: IntCounterVec["server"],
    /// Messages of servers that belong to no session that could be told, and were dropped.
    upstream_unattributed_total: IntCounterVec["server"],

    /// Whether this replica holds its lease; absent where it is the only one.
    lease_held: IntGaugeVec,
    /// Sessions that changed their owner, as this replica took part in it.
    ownership_transfers_total: IntCounterVec["outcome"],
    /// Requests that were forwarded to the owner of their session.
    peer_forwards_total: IntCounterVec["outcome"],
    /// Other replicas with a lease, and whether this one could last reach them.
    peers: IntGaugeVec["state"],
    /// Requests that wait until it is clear whether their session's owner lives.
    requests_held: IntGauge,
    /// Other replicas with a lease whose config differs from this one's.
    config_mismatch: IntGauge,
    /// Sessions that a stopping replica gave up or ended.
    drain_sessions_total: IntCounterVec["how"],

    /// Tools that are listed.
    tools_listed: IntGaugeVec["server"],
    /// Tools that are held back because something is wrong with them.
    tools_quarantined: IntGaugeVec["server"],
    /// Lists that a server failed to give.
    list_failures_total: IntCounterVec["server"],

    /// Whether the store that replicas share can be reached; absent with the store in memory.
    store_connected: IntGaugeVec,
    /// How long operations of the store took.
    store_operation_duration_seconds: HistogramVec["op"],
    /// Operations of the store that failed, and why.
    store_errors_total: IntCounterVec["op", "kind"],
}

/// The buckets of OpenTelemetry's MCP conventions, and three below for servers that are near.
const SECONDS: &[f64] =
    &[0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];

/// A type of metric that can be declared.
trait Family: Collector + Clone + Sized + 'static {
    fn family(opts: Opts, labels: &[&str]) -> prometheus::Result<Self>;
}

fn enter(registry: &Registry, family: impl Collector + 'static) {
    registry.register(Box::new(family)).expect("each name is declared once in a registry of our own");
}

impl Family for IntCounter {
    fn family(opts: Opts, _: &[&str]) -> prometheus::Result<Self> {
        Self::with_opts(opts)
    }
}

impl Family for IntGauge {
    fn family(opts: Opts, _: &[&str]) -> prometheus::Result<Self> {
        Self::with_opts(opts)
    }
}

impl Family for IntCounterVec {
    fn family(opts: Opts, labels: &[&str]) -> prometheus::Result<Self> {
        Self::new(opts, labels)
    }
}

impl Family for IntGaugeVec {
    fn family(opts: Opts, labels: &[&str]) -> prometheus::Result<Self> {
        Self::new(opts, labels)
    }
}

impl Family for HistogramVec {
    fn family(opts: Opts, labels: &[&str]) -> prometheus::Result<Self> {
        Self::new(HistogramOpts::from(opts).buckets(SECONDS.to_vec()), labels)
    }
}
