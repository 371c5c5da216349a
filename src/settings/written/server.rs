//! One MCP server, as written: the flat shape that hosts use, and our own optional keys.

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

use super::{Named, Secret, ServerTimeouts};
use crate::protocol::revision::Revision;
use crate::settings::hosts;
use crate::settings::units::Size;

/// One MCP server: a `command` to run or a `url` to call.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(transform = hosts::add_to_schema)]
pub struct Server {
    /// The program of a server that speaks on stdin and stdout.
    ///
    /// The word `mcpgate` stands for the running gateway itself (`args: [demo-server]`).
    pub command: Option<String>,
    /// Its arguments.
    #[schemars(schema_with = "words")]
    pub args: Vec<String>,
    /// Variables given to it beside PATH, HOME, locale, TMPDIR, time zone, proxy and CA settings.
    ///
    /// The gateway's other variables are not passed on: name here what the server needs.
    pub env: Named<Secret>,
    /// The directory it runs in; by default that of the gateway.
    pub cwd: Option<String>,
    /// The endpoint of a server that speaks Streamable HTTP.
    pub url: Option<String>,
    /// Headers sent to it with every request.
    pub headers: Named<Secret>,
    /// What hosts call the transport: `stdio` with `command`, `http` with `url`. It may be left out.
    #[serde(rename = "type")]
    pub transport: Option<String>,
    /// Leaves the server out, as if it were not written here.
    pub disabled: bool,
    /// Which era of the protocol it speaks: `auto` asks it once; `2026-07-28`, or an earlier date for a server that
    /// begins with `initialize`, does not ask.
    #[schemars(schema_with = "protocol")]
    pub protocol: Option<String>,
    /// Who shares a connection or a child process.
    pub isolation: Isolation,
    /// Its child processes.
    pub pool: Pool,
    /// What it overrides of the `timeouts` of all servers.
    pub timeouts: ServerTimeouts,
    /// Which of its tools are offered.
    pub tools: ServerTools,
    /// The largest message it may send; by default `limits.message`.
    pub max_message: Option<Size>,
}

/// Who shares a connection to a server.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = bare_shared)]
pub enum Isolation {
    /// Nobody: every session has its own child process or upstream session.
    #[default]
    Session,
    /// All sessions of a tenant, for servers that keep no state between calls; `shared` alone is one connection.
    ///
    /// Over stdio such a server cannot ask its caller for anything, since nobody could tell whom it asks.
    Shared(Shared),
}

/// How a shared server is shared.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Shared {
    /// How many connections or child processes.
    #[schemars(range(min = 1, max = 1024))]
    pub size: u16,
}

/// The child processes of a server.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Pool {
    /// How many may run at once, over all replicas; at the cap a call that needs another gets an error.
    #[schemars(range(min = 1))]
    pub max: u32,
    /// How many one caller without a session may have at once, for a server that keeps no state between calls: a
    /// call that may be asked something waits for one that is its own.
    #[schemars(range(min = 1, max = 64))]
    pub per_session: u8,
}

/// Which tools of a server are offered, by the server's own names; `*` in a pattern stands for any text.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ServerTools {
    /// Patterns of the tools that are offered; all if left out.
    pub include: Option<Vec<String>>,
    /// Patterns of the tools that are not, whatever `include` says.
    pub exclude: Vec<String>,
}

// === impl Shared ===

impl Default for Shared {
    fn default() -> Self {
        Self { size: 1 }
    }
}

// === impl Pool ===

impl Default for Pool {
    fn default() -> Self {
        Self { max: 100, per_session: 1 }
    }
}

// === impl Isolation ===

/// `shared` alone means the same as `shared: {}`.
fn bare_shared(schema: &mut Schema) {
    if let Some(alternatives) = schema.get_mut("oneOf").and_then(|one_of| one_of.as_array_mut()) {
        alternatives.push(serde_json::json!({
            "description": "The same as `shared: { size: 1 }`.",
            "type": "string",
            "const": "shared",
        }));
    }
}

/// `auto` or the date of a revision.
fn protocol(_: &mut schemars::SchemaGenerator) -> Schema {
    let dates = Revision::LEGACY.into_iter().chain(Revision::MODERN).map(Revision::as_str);
    let values: Vec<&str> = std::iter::once("auto").chain(dates).collect();
    schemars::json_schema!({ "type": ["string", "null"], "enum": values, "default": "auto" })
}

/// Arguments: numbers need no quotes.
fn words(_: &mut schemars::SchemaGenerator) -> Schema {
    schemars::json_schema!({ "type": "array", "items": { "type": ["string", "number", "boolean"] } })
}
