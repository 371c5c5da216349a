//! Named selections of servers, as configured.

/// A selection served at `/{name}/mcp`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointSettings {
    /// Its name in the URL.
    pub name: String,
    /// Its servers, in order; empty means all.
    pub servers: Vec<String>,
    /// Patterns (`*` stands for any text) of qualified tool names that are offered; empty means all.
    pub allow: Vec<String>,
    /// Patterns of qualified tool names that are not.
    pub deny: Vec<String>,
}
