//! A limit on how often something is logged.

use std::time::Duration;

use tokio::time::Instant;

/// Lets some through per interval and counts the rest.
#[derive(Debug)]
pub(super) struct Throttle {
    limit: u32,
    since: Instant,
    used: u32,
    hidden: u64,
}

const INTERVAL: Duration = Duration::from_secs(10);

// === impl Throttle ===

impl Throttle {
    /// Lets `limit` through in ten seconds.
    pub(super) fn new(limit: u32) -> Self {
        Self { limit, since: Instant::now(), used: 0, hidden: 0 }
    }

    /// `Some` if this one may be logged, with how many were not since the last.
    pub(super) fn pass(&mut self) -> Option<u64> {
        if self.since.elapsed() >= INTERVAL {
            self.since = Instant::now();
            self.used = 0;
        }
        if self.used >= self.limit {
            self.hidden += 1;
            return None;
        }
        self.used += 1;
        Some(std::mem::take(&mut self.hidden))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_counted_and_told_later() {
        let mut throttle = Throttle::new(10);
        assert_eq!((0..15).filter_map(|_| throttle.pass()).count(), 10);
        tokio::time::advance(INTERVAL).await;
        assert_eq!(throttle.pass(), Some(5));
    }
}
