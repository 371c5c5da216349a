//! Requests that wait until it is clear whether the owner of their session lives.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::telemetry::Metrics;

/// Counts what is held, against its bounds: over them a request gets 503 at once.
#[derive(Debug, Default)]
pub struct Hold {
    requests: AtomicUsize,
    bytes: AtomicUsize,
}

/// A request that is held; it goes on when this is dropped.
pub(in crate::http) struct Held<'a> {
    hold: &'a Hold,
    bytes: usize,
    metrics: &'a Arc<Metrics>,
}

/// Requests at once.
const MOST: usize = 4096;
/// Bytes of their bodies together.
const MOST_BYTES: usize = 64 << 20;

// === impl Hold ===

impl Hold {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// A place for a request with a body of `bytes`, if there is one.
    pub(in crate::http) fn enter<'a>(&'a self, bytes: usize, metrics: &'a Arc<Metrics>) -> Option<Held<'a>> {
        let held = Held { hold: self, bytes, metrics };
        metrics.cluster().held(1);
        let requests = self.requests.fetch_add(1, Relaxed);
        let waiting = self.bytes.fetch_add(bytes, Relaxed);
        // Dropped, it takes back what was just added.
        (requests < MOST && waiting + bytes <= MOST_BYTES).then_some(held)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.hold.requests.fetch_sub(1, Relaxed);
        self.hold.bytes.fetch_sub(self.bytes, Relaxed);
        self.metrics.cluster().held(-1);
    }
}
