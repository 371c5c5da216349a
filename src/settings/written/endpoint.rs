//! Named selections, as written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A selection of servers and tools, served at `/{name}/mcp`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Endpoint {
    /// Its servers, in the order in which their tools are listed; all of them if left out.
    pub servers: Option<Vec<String>>,
    /// Which tools are offered.
    pub tools: EndpointTools,
    /// Whether callers need a session.
    pub sessions: EndpointSessions,
}

/// Which tools an endpoint offers; `*` in a pattern stands for any text.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct EndpointTools {
    /// Patterns of the names callers see, `mcp_{server}_{tool}`: `mcp_github_*`, `*_read_*`. All if left out.
    pub allow: Option<Vec<String>>,
    /// Patterns of the same names that are not offered, whatever `allow` says.
    pub deny: Vec<String>,
}

/// Whether callers of an endpoint need a session.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum EndpointSessions {
    /// Those of the legacy era do: they begin with `initialize` and send the session id they are given.
    #[default]
    Required,
    /// They may: one that never sends the id it is given is served all the same, but cannot be asked anything,
    /// subscribe, resume a stream or take a request back.
    Optional,
    /// There are none: only callers of 2026-07-28 and later, whose requests stand alone, are served.
    Off,
}
