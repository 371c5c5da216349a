//! The metrics of one gateway. Labels come from the config or from closed sets (case-I09).

use std::time::Duration;

/// The metrics of one gateway.
#[derive(Debug, Default)]
pub struct Metrics {}

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
}

impl Metrics {
    /// Counts one HTTP answer; `endpoint` is a configured name or a fixed word.
    pub fn http_request(&self, _method: &'static str, _endpoint: &str, _status: u16) {}
    /// Counts one call to `server` and its time.
    pub fn call(&self, _server: &str, _method: &'static str, _outcome: CallOutcome, _took: Duration) {}
    /// A session began.
    pub fn session_opened(&self, _revision: &'static str) {}
    /// A session ended; `reason` is one of delete, idle, max_age, shutdown.
    pub fn session_closed(&self, _revision: &'static str, _reason: &'static str) {}
    /// A session id was not found.
    pub fn session_not_found(&self) {}
    /// A stream began.
    pub fn stream_opened(&self, _kind: StreamKind) {}
    /// A stream's connection ended.
    pub fn stream_closed(&self, _kind: StreamKind) {}
    /// A resume came; `outcome` is one of replayed, complete, unknown.
    pub fn stream_resumed(&self, _outcome: &'static str) {}
    /// Events were dropped from a full log.
    pub fn events_dropped(&self, _count: u64) {}
    /// A child process of `server` started.
    pub fn child_started(&self, _server: &str) {}
    /// A child process of `server` ended; `reason` is one of exit, signal, closed.
    pub fn child_exited(&self, _server: &str, _reason: &'static str) {}
    /// A line on a child's stdout was no JSON-RPC message.
    pub fn stdout_skipped(&self, _server: &str) {}
    /// A child wrote a line to stderr.
    pub fn stderr_line(&self, _server: &str) {}
    /// A response came for a request nobody waits for.
    pub fn late_response(&self, _server: &str) {}
    /// What a server sent could not be attributed to a session and was dropped.
    pub fn unattributed(&self, _server: &str) {}
    /// A link had to be opened; `outcome` is ok or the layer that failed.
    pub fn link_opened(&self, _server: &str, _outcome: &'static str) {}
    /// How many tools of `server` are listed and how many are quarantined.
    pub fn tools_listed(&self, _server: &str, _listed: usize, _quarantined: usize) {}
    /// A list of `server` failed; what a caller sees comes from the last good catalog, or leaves it out.
    pub fn list_failed(&self, _server: &str) {}
    /// An attempt to come in; `scheme` is jwt, api_key or none, `outcome` a fixed word.
    pub fn auth_attempt(&self, _scheme: &'static str, _outcome: &'static str) {}
    /// The config was read again.
    pub fn config_reloaded(&self, _succeeded: bool) {}
    /// Readiness is off and the process ends.
    pub fn draining(&self) {}
}
