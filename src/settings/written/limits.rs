//! Sizes and counts, as written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::settings::LimitSettings;
use crate::settings::units::{Size, Span};

/// Sizes and counts that callers and servers are held to.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Limits {
    /// The largest body of a request; over it 413.
    pub body: Size,
    /// The largest message from a server; over it the call fails. `mcpServers.*.maxMessage` overrides it.
    pub message: Size,
    /// All headers of a request together; over it 431.
    pub headers: Size,
    /// How long the head of a request may take.
    pub header_read: Span,
    /// How long the body of a request may take, and a caller nothing of its answer.
    pub body_read: Span,
    /// Open connections from callers; over it new ones wait in the kernel's queue.
    #[schemars(range(min = 1))]
    pub connections: u32,
    /// Running requests of one session; over it 429.
    #[schemars(range(min = 1))]
    pub in_flight_per_session: u32,
    /// Calls of one tenant that wait for a caller of 2026-07-28 to answer what their server asked; over it the server
    /// gets an error to its question. Of one session, half of `inFlightPerSession`.
    #[schemars(range(min = 1))]
    pub parked_per_tenant: u32,
    /// Open `subscriptions/listen` streams of one principal, over all replicas; over it 429 with `Retry-After`. All
    /// anonymous callers from elsewhere count as one, and so do those on loopback.
    #[schemars(range(min = 1))]
    pub listens_per_principal: u32,
}

/// A default of the settings as it is written.
pub(super) fn count(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

// === impl Limits ===

impl Default for Limits {
    fn default() -> Self {
        let default = LimitSettings::default();
        Self {
            body: Size(default.body),
            message: Size(default.message),
            headers: Size(default.headers),
            header_read: Span(default.header_read),
            body_read: Span(default.body_read),
            connections: count(default.connections),
            in_flight_per_session: count(default.in_flight_per_session),
            parked_per_tenant: count(default.parked_per_tenant),
            listens_per_principal: count(default.listens_per_principal),
        }
    }
}

impl From<Limits> for LimitSettings {
    fn from(written: Limits) -> Self {
        Self {
            body: written.body.0,
            message: written.message.0,
            headers: written.headers.0,
            header_read: written.header_read.0,
            body_read: written.body_read.0,
            connections: written.connections as usize,
            in_flight_per_session: written.in_flight_per_session as usize,
            parked_per_tenant: written.parked_per_tenant as usize,
            listens_per_principal: written.listens_per_principal as usize,
        }
    }
}
