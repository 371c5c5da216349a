//! MCP servers behind the gateway, as configured.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use http::HeaderName;
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use crate::protocol::revision::Revision;

/// One server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerSettings {
    /// Its name: in qualified names, labels and log lines.
    pub name: String,
    /// How it is reached.
    pub transport: TransportSettings,
    /// Who shares a link to it.
    pub isolation: Isolation,
    /// Which era it is spoken to in.
    pub protocol: ProtocolSetting,
    /// Limits in time.
    pub timeouts: TimeoutSettings,
    /// The largest message it may send, bytes.
    pub max_message: usize,
    /// Patterns (`*` stands for any text) of its own tool names that are offered; empty means all.
    pub include: Vec<String>,
    /// Patterns of its own tool names that are not.
    pub exclude: Vec<String>,
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq)]
pub enum TransportSettings {
    /// A child process that speaks on stdin and stdout.
    Stdio(StdioSettings),
    /// Streamable HTTP.
    Http(HttpSettings),
}

/// A child process.
#[derive(Clone, Debug)]
pub struct StdioSettings {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables given to it beside the allow-list.
    pub env: BTreeMap<String, SecretString>,
    /// Where it runs.
    pub cwd: Option<PathBuf>,
    /// How many may run at once; at the cap a call gets an error.
    pub max: usize,
    /// How many one implicit session may have.
    pub per_session: usize,
}

/// A Streamable HTTP server.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// Its endpoint.
    pub url: Url,
    /// Headers sent with every request.
    pub headers: Vec<(HeaderName, SecretString)>,
}

impl PartialEq for StdioSettings {
    fn eq(&self, other: &Self) -> bool {
        // Every field is named, so that a new one cannot be forgotten.
        let Self { command, args, env, cwd, max, per_session } = self;
        let same_env = env.len() == other.env.len()
            && env.iter().zip(&other.env).all(|((a, x), (b, y))| a == b && same_secret(x, y));
        let same_pool = (*max, *per_session) == (other.max, other.per_session);
        same_env && same_pool && *command == other.command && *args == other.args && *cwd == other.cwd
    }
}

impl PartialEq for HttpSettings {
    fn eq(&self, other: &Self) -> bool {
        let Self { url, headers } = self;
        let same_headers = headers.len() == other.headers.len()
            && headers.iter().zip(&other.headers).all(|((a, x), (b, y))| a == b && same_secret(x, y));
        same_headers && *url == other.url
    }
}

/// Whether two secrets of the operator's are the same; both are ours, so time tells nobody anything.
fn same_secret(a: &SecretString, b: &SecretString) -> bool {
    a.expose_secret() == b.expose_secret()
}

/// Which era a server is spoken to in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProtocolSetting {
    /// It is asked once, and again if it turns out to be another (T66).
    #[default]
    Auto,
    /// The era of this revision, without asking; a legacy one is the newest that `initialize` asks for.
    Pinned(Revision),
}

/// Who shares a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// One link per session.
    #[default]
    Session,
    /// `size` links for all sessions of a tenant; no client capabilities are offered over stdio.
    Shared {
        /// How many links.
        size: usize,
    },
}

/// Limits in time of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeoutSettings {
    /// From start to the answer of `initialize`.
    pub start: Duration,
    /// How long a list waits for it.
    pub list: Duration,
    /// A call without progress ends after this.
    pub idle: Duration,
    /// How long a question of the server waits for its caller.
    pub input: Duration,
    /// A call ends after this in any case.
    pub total: Duration,
}

impl Default for TimeoutSettings {
    fn default() -> Self {
        Self {
            start: Duration::from_mins(1),
            list: Duration::from_secs(5),
            idle: Duration::from_mins(2),
            input: Duration::from_mins(10),
            total: Duration::from_mins(30),
        }
    }
}
