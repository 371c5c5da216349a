//! Lifetimes and caps of sessions, as written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::settings::SessionSettings;
use crate::settings::units::Span;

/// How long sessions live and how many there may be.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Sessions {
    /// A session without activity ends after this; open streams and running calls are activity.
    pub idle: Span,
    /// What the gateway keeps for callers without a session id ends after this without activity.
    pub implicit_idle: Span,
    /// A session ends after this in any case.
    pub max_age: Span,
    /// How many may live, over all replicas; at the cap `initialize` gets 503 with `Retry-After`. What is kept for
    /// callers without a session id is counted apart, by each replica: at the same cap what nobody used for longest
    /// gives way.
    #[schemars(range(min = 1))]
    pub max: u32,
    /// How many one caller may have, over all replicas; at the cap 429 with `Retry-After`. Not for anonymous callers on
    /// loopback. All anonymous callers from elsewhere count as one, and of those without a session id each running
    /// request counts, by each replica.
    #[schemars(range(min = 1))]
    pub max_per_principal: u32,
}

// === impl Sessions ===

impl Default for Sessions {
    fn default() -> Self {
        let SessionSettings { idle, implicit_idle, max_age, max, max_per_principal } =
            SessionSettings::default();
        Self {
            idle: Span(idle),
            implicit_idle: Span(implicit_idle),
            max_age: Span(max_age),
            max: super::limits::count(max),
            max_per_principal: super::limits::count(max_per_principal),
        }
    }
}

impl From<Sessions> for SessionSettings {
    fn from(written: Sessions) -> Self {
        Self {
            idle: written.idle.0,
            implicit_idle: written.implicit_idle.0,
            max_age: written.max_age.0,
            max: written.max as usize,
            max_per_principal: written.max_per_principal as usize,
        }
    }
}
