//! The limits in time of one call: idle, reset by progress; and total, never reset (case-H05).

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use tokio::time::Instant;

use crate::settings::servers::TimeoutSettings;

/// The limits in time of one call.
#[derive(Debug)]
pub(super) struct Clock {
    started: Instant,
    idle: Duration,
    total: Duration,
    /// Milliseconds from `started` to the last sign of life.
    alive_ms: AtomicU64,
    /// Questions that wait for the caller; while there are any, the idle limit rests.
    questions: AtomicUsize,
}

/// Which limit passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimedOut {
    /// No progress for `timeouts.idle`.
    Idle(Duration),
    /// `timeouts.total` passed.
    Total(Duration),
}

// === impl Clock ===

impl Clock {
    pub(super) fn start(timeouts: &TimeoutSettings) -> Self {
        Self {
            started: Instant::now(),
            idle: timeouts.idle,
            total: timeouts.total,
            alive_ms: AtomicU64::new(0),
            questions: AtomicUsize::new(0),
        }
    }

    /// The server showed that it works.
    pub(super) fn progressed(&self) {
        self.alive_ms.store(self.elapsed_ms(), Relaxed);
    }

    /// The server waits for the caller.
    pub(super) fn question_asked(&self) {
        self.questions.fetch_add(1, Relaxed);
    }

    /// The caller answered, or never will.
    pub(super) fn question_settled(&self) {
        self.questions.fetch_sub(1, Relaxed);
        self.progressed();
    }

    /// How long the call has run.
    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Waits until `timeouts.total` has passed: before the request is at a server, nothing else counts.
    pub(super) async fn over(&self) -> TimedOut {
        tokio::time::sleep_until(self.started + self.total).await;
        TimedOut::Total(self.total)
    }

    /// The request goes to the server: its idle limit begins.
    pub(super) fn sent(&self) {
        self.progressed();
    }

    /// Waits until a limit has passed.
    pub(super) async fn expired(&self) -> TimedOut {
        loop {
            let total = self.started + self.total;
            let idle = self.started + Duration::from_millis(self.alive_ms.load(Relaxed)) + self.idle;
            let now = Instant::now();
            if now >= total {
                return TimedOut::Total(self.total);
            }
            let asked = self.questions.load(Relaxed) > 0;
            if now >= idle && !asked {
                return TimedOut::Idle(self.idle);
            }
            // While a question waits, look again after another idle time; it cannot pass sooner than that.
            let next = if asked { now + self.idle } else { idle };
            tokio::time::sleep_until(next.min(total)).await;
        }
    }

    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeouts(idle: u64, total: u64) -> TimeoutSettings {
        TimeoutSettings {
            idle: Duration::from_secs(idle),
            total: Duration::from_secs(total),
            ..TimeoutSettings::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn progress_puts_off_the_idle_limit_but_not_the_total() {
        let clock = Clock::start(&timeouts(10, 25));
        let began = Instant::now();
        for _ in 0..2 {
            tokio::time::sleep(Duration::from_secs(8)).await;
            clock.progressed();
        }
        assert_eq!(clock.expired().await, TimedOut::Total(Duration::from_secs(25)));
        assert_eq!(began.elapsed(), Duration::from_secs(25));
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_rests_the_idle_limit() {
        let clock = Clock::start(&timeouts(10, 1000));
        clock.question_asked();
        assert!(tokio::time::timeout(Duration::from_secs(300), clock.expired()).await.is_err());
        clock.question_settled();
        let began = Instant::now();
        assert_eq!(clock.expired().await, TimedOut::Idle(Duration::from_secs(10)));
        assert_eq!(began.elapsed(), Duration::from_secs(10));
    }
}
