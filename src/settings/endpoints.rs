//! Named selections of servers, as configured.

/// A selection served at `/{name}/mcp`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointSettings {
    /// Its name in the URL.
    pub name: String,
    /// Its servers, in order; empty means all.
    pub servers: Vec<String>,
    /// Patterns (`*` stands for any text) of qualified tool names that are offered; empty means all.
    pub allow: Vec<String>,
    /// Patterns of qualified tool names that are not.
    pub deny: Vec<String>,
    /// Whether legacy callers need a session.
    pub sessions: SessionPolicy,
}

/// Whether legacy callers of an endpoint need a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionPolicy {
    /// They do.
    #[default]
    Required,
    /// One that never returns its id is served by an implicit session.
    Optional,
    /// There are none: legacy callers are not served.
    Off,
}
