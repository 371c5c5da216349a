//! Requests that wait until it is clear where their session is, or whether its owner lives.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::telemetry::Metrics;

/// Counts what is held, against its bounds: over them a request gets 503 at once.
#[derive(Debug)]
pub struct Hold {
    /// How many there may be at once.
    most: usize,
    requests: AtomicUsize,
    bytes: AtomicUsize,
}

/// A request that is held; it goes on when this is dropped.
pub(in crate::http) struct Held<'a> {
    hold: &'a Hold,
    bytes: usize,
    metrics: &'a Arc<Metrics>,
}

/// Requests at once that wait for owners of which it is not clear whether they live.
const MOST_UNCLEAR: usize = 4096;
/// Requests at once that wait for the store, or for a session to be taken over: all callers of a replica that stopped come at
/// once.
const MOST_LOOKS: usize = 32_768;
/// Bytes of their bodies together.
const MOST_BYTES: usize = 64 << 20;

// === impl Hold ===

impl Hold {
    pub(super) fn of_unclear() -> Self {
        Self::new(MOST_UNCLEAR)
    }

    pub(super) fn of_looks() -> Self {
        Self::new(MOST_LOOKS)
    }

    fn new(most: usize) -> Self {
        Self { most, requests: AtomicUsize::new(0), bytes: AtomicUsize::new(0) }
    }

    /// A place for a request with a body of `bytes`, if there is one.
    pub(in crate::http) fn enter<'a>(&'a self, bytes: usize, metrics: &'a Arc<Metrics>) -> Option<Held<'a>> {
        let held = Held { hold: self, bytes, metrics };
        metrics.cluster().held(1);
        let requests = self.requests.fetch_add(1, Relaxed);
        let waiting = self.bytes.fetch_add(bytes, Relaxed);
        // One alone may be of any size: bodies have a bound of their own. Dropped, it takes back what was just added.
        let fits = requests == 0 || (requests < self.most && waiting + bytes <= MOST_BYTES);
        fits.then_some(held)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.hold.requests.fetch_sub(1, Relaxed);
        self.hold.bytes.fetch_sub(self.bytes, Relaxed);
        self.metrics.cluster().held(-1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_has_bounds() {
        let (hold, metrics) = (Hold::new(9), Arc::new(Metrics::new([""; 0], [""; 0])));
        let large = hold.enter(MOST_BYTES * 2, &metrics);
        assert!(large.is_some(), "one alone may be larger than all together");
        assert!(hold.enter(1, &metrics).is_none());
        drop(large);
        let many: Vec<_> = (0..9).map_while(|_| hold.enter(1, &metrics)).collect();
        assert_eq!(many.len(), 9);
        assert!(hold.enter(1, &metrics).is_none());
        drop(many);
        assert!(hold.enter(MOST_BYTES, &metrics).is_some(), "all was given back");
    }
}
