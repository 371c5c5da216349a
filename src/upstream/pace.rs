//! How long to wait between tries.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// The bounds of a [`Backoff`].
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// The first wait, and how long a connection must live to count as a success.
    pub first: Duration,
    /// The longest wait.
    pub most: Duration,
}

/// Waits that double, with jitter of 20 % either way.
#[derive(Debug)]
pub struct Backoff {
    pace: Pace,
    next: Duration,
}

// === impl Pace ===

impl Default for Pace {
    fn default() -> Self {
        Self { first: Duration::from_secs(1), most: Duration::from_mins(1) }
    }
}

// === impl Backoff ===

impl Default for Backoff {
    fn default() -> Self {
        Self::new(Pace::default())
    }
}

impl Backoff {
    /// Begins with the first wait.
    pub fn new(pace: Pace) -> Self {
        Self { pace, next: pace.first }
    }

    /// The next wait.
    pub fn wait(&mut self) -> Duration {
        let wait = self.next.min(self.pace.most);
        self.next = wait.saturating_mul(2);
        // A hasher's random keys are random enough to keep many gateways from knocking at once.
        let roll = RandomState::new().build_hasher().finish() % 401;
        wait.saturating_mul(800 + u32::try_from(roll).unwrap_or(200)) / 1000
    }

    /// Begins anew.
    pub fn reset(&mut self) {
        self.next = self.pace.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_begin_anew_after_a_reset() {
        let second = Duration::from_secs(1);
        let mut backoff = Backoff::new(Pace { first: second, most: second * 4 });
        for expected in [1, 2, 4, 4] {
            let wait = backoff.wait();
            assert!(wait >= second * expected * 8 / 10 && wait <= second * expected * 12 / 10, "{wait:?}");
        }
        backoff.reset();
        assert!(backoff.wait() < second * 2);
    }
}
