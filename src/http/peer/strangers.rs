//! Strangers at the peer listener: counted, and said in the log once a minute at most, however many come.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tokio::time::Instant;

/// How seldom they are said in the log.
const PACE: Duration = Duration::from_mins(1);

/// Counts connections that were closed since nobody's lease names their key, or since they never showed one.
#[derive(Debug, Default)]
pub struct Strangers {
    count: AtomicU64,
    said: Mutex<Option<(Instant, u64)>>,
}

// === impl Strangers ===

impl Strangers {
    /// How many came.
    pub fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    /// One more, from there.
    pub(super) fn note(&self, from: SocketAddr, why: &str) {
        let count = self.count.fetch_add(1, Relaxed) + 1;
        if let Some(new) = self.unsaid(count) {
            tracing::warn!(
                peer = %from,
                count = new,
                why,
                "connections to the peer listener were closed: they come from no replica with a live lease"
            );
        }
    }

    /// How many are new since the last time that they were said, if it is time again.
    fn unsaid(&self, count: u64) -> Option<u64> {
        let mut said = self.said.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let before = match *said {
            Some((at, _)) if at.elapsed() < PACE => return None,
            Some((_, before)) => before,
            None => 0,
        };
        *said = Some((Instant::now(), count));
        Some(count.saturating_sub(before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn they_are_said_once_a_minute() {
        let strangers = Strangers::default();
        assert_eq!(strangers.unsaid(1), Some(1));
        assert_eq!(strangers.unsaid(2), None);
        tokio::time::advance(PACE).await;
        assert_eq!(strangers.unsaid(9), Some(8));
    }
}
