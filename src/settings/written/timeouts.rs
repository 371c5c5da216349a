//! Limits in time, as written: for all servers, and what one server overrides.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::settings::servers::TimeoutSettings;
use crate::settings::units::Span;

/// How long servers may take.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Timeouts {
    /// From start to the answer of `initialize`; a first run that downloads a package needs time.
    pub start: Span,
    /// How long a caller's list waits for a server that was never listed before.
    pub list: Span,
    /// A call without progress ends after this.
    pub idle: Span,
    /// How long a question of a server waits for its caller.
    pub input: Span,
    /// A call ends after this in any case.
    pub total: Span,
}

/// What one server overrides of `timeouts`.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ServerTimeouts {
    /// From start to the answer of `initialize`.
    pub start: Option<Span>,
    /// How long a caller's list waits for it.
    pub list: Option<Span>,
    /// A call without progress ends after this.
    pub idle: Option<Span>,
    /// How long its question waits for the caller.
    pub input: Option<Span>,
    /// A call ends after this in any case.
    pub total: Option<Span>,
}

// === impl Timeouts ===

impl Default for Timeouts {
    fn default() -> Self {
        let TimeoutSettings { start, list, idle, input, total } = TimeoutSettings::default();
        Self {
            start: Span(start),
            list: Span(list),
            idle: Span(idle),
            input: Span(input),
            total: Span(total),
        }
    }
}

// === impl ServerTimeouts ===

impl ServerTimeouts {
    /// These over those of all servers.
    pub(in crate::settings) fn over(&self, all: &Timeouts) -> TimeoutSettings {
        let pick = |own: Option<Span>, all: Span| own.unwrap_or(all).0;
        TimeoutSettings {
            start: pick(self.start, all.start),
            list: pick(self.list, all.list),
            idle: pick(self.idle, all.idle),
            input: pick(self.input, all.input),
            total: pick(self.total, all.total),
        }
    }
}
