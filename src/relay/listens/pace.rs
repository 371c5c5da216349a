//! How long to wait before a listen that broke is made anew.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// The first wait; it doubles.
const FIRST: Duration = Duration::from_secs(1);
/// The longest wait.
const MOST: Duration = Duration::from_mins(1);

/// Waits that double, with jitter of 20 % either way.
pub(in crate::relay) struct Backoff(Duration);

// === impl Backoff ===

impl Default for Backoff {
    fn default() -> Self {
        Self(FIRST)
    }
}

impl Backoff {
    /// The next wait.
    pub(in crate::relay) fn wait(&mut self) -> Duration {
        let wait = self.0;
        self.0 = wait.saturating_mul(2).min(MOST);
        // A hasher's random keys are random enough to keep many gateways from knocking at once.
        let roll = RandomState::new().build_hasher().finish() % 401;
        wait.saturating_mul(800 + u32::try_from(roll).unwrap_or(200)) / 1000
    }

    /// What was waited for held.
    pub(in crate::relay) fn reset(&mut self) {
        self.0 = FIRST;
    }
}
