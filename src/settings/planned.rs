//! Keys that the design knows and this version cannot honour: refused with a reason, never silently ignored.
//!
//! A key leaves this table in the change that builds what it promises.

/// Paths (`*` stands for any name or item; a word that stands at a key is its last step) and the remedy.
const PLANNED: [(&[&str], &str); 11] = [
    (&["tenants"], "endpoints select servers and tools; auth.jwt[].tenants says for whom an issuer speaks"),
    (&["auth", "introspection"], "use auth.jwt or auth.apiKeys"),
    (&["endpoints", "*", "names"], "names.template holds for all endpoints"),
    (&["endpoints", "*", "auth"], "the ways in under auth hold for all endpoints"),
    (&["mcpServers", "*", "pool", "warm"], "children start when they are first needed"),
    (&["mcpServers", "*", "pool", "idle"], "a child ends with its session; sessions.idle bounds that"),
    (&["mcpServers", "*", "sharedBy"], "a shared server is shared within a tenant"),
    (&["mcpServers", "*", "onLoss"], "a session whose child is lost goes on with a fresh one"),
    (&["mcpServers", "*", "tools", "rename"], "tools keep the server's own names"),
    (&["mcpServers", "*", "tools", "describe"], "tools keep the server's own descriptions"),
    (&["mcpServers", "*", "tcp"], "a server is reached by command or url"),
];

/// The keys and what to do instead, in the order of the design.
pub(super) fn planned() -> impl Iterator<Item = (&'static [&'static str], &'static str)> {
    PLANNED.iter().copied()
}

/// What to do instead of the key at `path`, if it is one that is planned.
pub(super) fn remedy(path: &[&str]) -> Option<&'static str> {
    let fits = |pattern: &[&str]| {
        pattern.len() == path.len() && pattern.iter().zip(path).all(|(p, word)| *p == "*" || p == word)
    };
    PLANNED.iter().find(|(pattern, _)| fits(pattern)).map(|(_, remedy)| *remedy)
}
