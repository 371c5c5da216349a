//! Streams and their logs, as written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::limits::count;
use crate::settings::StreamSettings;
use crate::settings::units::{Size, Span};

/// Streams to callers and the logs from which they resume.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Streams {
    /// How long a request waits for its result before the answer becomes a stream; `0s` streams at once.
    pub grace: Span,
    /// How often an open stream gets a comment, so that proxies in between do not cut it.
    pub keep_alive: Span,
    /// How long an ended stream can still be resumed.
    pub retention: Span,
    /// How long a caller is told to wait before it comes back to a stream.
    pub retry: Span,
    /// Long-lived streams over all replicas: the standalone GETs of sessions, and `subscriptions/listen`. Over it 503
    /// with `Retry-After`. A POST that became a stream is none: `limits.inFlightPerSession` bounds those.
    #[schemars(range(min = 1))]
    pub max: u32,
    /// Events kept per session; at the cap the least valuable go first.
    #[schemars(range(min = 1))]
    pub max_events: u32,
    /// Bytes of events kept per session; at the cap the least valuable go first.
    pub max_bytes: Size,
    /// An event over this is kept outside `maxBytes`, so that one large result does not empty the log.
    pub max_event: Size,
    /// Bytes of events kept in the whole process.
    pub max_total: Size,
}

// === impl Streams ===

impl Default for Streams {
    fn default() -> Self {
        let default = StreamSettings::default();
        Self {
            grace: Span(default.grace),
            keep_alive: Span(default.keep_alive),
            retention: Span(default.retention),
            retry: Span(default.retry),
            max: count(default.max),
            max_events: count(default.max_events),
            max_bytes: Size(default.max_bytes),
            max_event: Size(default.max_event),
            max_total: Size(default.max_total),
        }
    }
}

impl From<Streams> for StreamSettings {
    fn from(written: Streams) -> Self {
        Self {
            grace: written.grace.0,
            keep_alive: written.keep_alive.0,
            retention: written.retention.0,
            retry: written.retry.0,
            max: written.max as usize,
            max_events: written.max_events as usize,
            max_bytes: written.max_bytes.0,
            max_event: written.max_event.0,
            max_total: written.max_total.0,
        }
    }
}
