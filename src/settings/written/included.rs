//! A file that `include` names, as written.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Named, Server};

/// What a file that `include` names may hold.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Included {
    /// MCP servers, as in the config itself.
    pub mcp_servers: Named<Server>,
}
