//! How the process stops, as written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::settings::ShutdownSettings;
use crate::settings::units::Span;

/// How the process stops after SIGTERM; give the platform a little more than the sum of these.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Shutdown {
    /// How long it serves on after readiness is off, so that load balancers notice.
    pub delay: Span,
    /// How long running calls may take after that.
    pub drain: Span,
    /// How long a child process may take to end, also when its session ends: half of it after its stdin is closed,
    /// half after SIGTERM.
    pub children: Span,
}

// === impl Shutdown ===

impl Default for Shutdown {
    fn default() -> Self {
        let ShutdownSettings { delay, drain, children } = ShutdownSettings::default();
        Self { delay: Span(delay), drain: Span(drain), children: Span(children) }
    }
}

impl From<Shutdown> for ShutdownSettings {
    fn from(written: Shutdown) -> Self {
        Self { delay: written.delay.0, drain: written.drain.0, children: written.children.0 }
    }
}
