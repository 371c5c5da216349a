//! Taking leave of a child: how it is asked for, and how its end is awaited.

use std::sync::OnceLock;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// How long a child may take to end by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// After its stdin is closed; then SIGTERM follows.
    pub stdin: Duration,
    /// After SIGTERM; then SIGKILL follows.
    pub term: Duration,
}

/// The wish that a child should end, and the news that it did.
#[derive(Debug, Default)]
pub(super) struct Leave {
    /// The patience of who asks for none in particular, once it is known.
    usual: OnceLock<Patience>,
    patience: OnceLock<Patience>,
    asked: CancellationToken,
    done: CancellationToken,
}

/// How long SIGKILL and reaping may take before a caller stops waiting; the supervisor goes on.
const REAPING: Duration = Duration::from_secs(1);

// === impl Patience ===

impl Patience {
    /// SIGKILL at once.
    pub const NONE: Self = Self { stdin: Duration::ZERO, term: Duration::ZERO };

    /// Half of `time` for each step.
    pub fn within(time: Duration) -> Self {
        Self { stdin: time / 2, term: time / 2 }
    }
}

impl Default for Patience {
    fn default() -> Self {
        Self { stdin: Duration::from_secs(2), term: Duration::from_secs(2) }
    }
}

// === impl Leave ===

impl Leave {
    /// Sets the usual patience, at most once.
    pub(super) fn accustom(&self, patience: Patience) {
        let _ = self.usual.set(patience);
    }

    /// The patience of who asks for none in particular.
    pub(super) fn usual(&self) -> Patience {
        self.usual.get().copied().unwrap_or_default()
    }

    /// Asks; the first to ask sets the patience.
    pub(super) fn ask(&self, patience: Patience) {
        let _ = self.patience.set(patience);
        self.asked.cancel();
    }

    /// Fires once someone asked.
    pub(super) fn asked(&self) -> CancellationToken {
        self.asked.clone()
    }

    /// What the first to ask set.
    pub(super) fn patience(&self) -> Patience {
        self.patience.get().copied().unwrap_or_else(|| self.usual())
    }

    /// Tells all who wait that the child is gone.
    pub(super) fn finish(&self) {
        self.done.cancel();
    }

    /// Waits until the child is gone, no longer than `patience` and what was set first allow.
    pub(super) async fn done(&self, patience: Patience) {
        let set = self.patience();
        let limit = (patience.stdin + patience.term).max(set.stdin + set.term) + REAPING;
        let _ = tokio::time::timeout(limit, self.done.cancelled()).await;
    }
}
