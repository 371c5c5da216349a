//! What passes between callers and other replicas at the moment: it is sent back to come again, waited for, or cut.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// All forwarded requests whose answers have not ended; clones share it.
#[derive(Clone, Debug)]
pub(super) struct Passing(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    under_way: TaskTracker,
    /// Cancelled for the streams that are there: their callers are to come back. Another one then stands for later ones.
    back: ArcSwap<CancellationToken>,
    /// Cancelled when nothing is waited for any more.
    cut: CancellationToken,
    /// How soon callers are to come back, where nothing failed.
    retry: Duration,
}

/// One of them, for as long as this lives.
#[derive(Debug)]
pub(super) struct Passage {
    /// Its caller is to come back, if it can.
    pub(super) back: CancellationToken,
    /// It is waited for no longer.
    pub(super) cut: CancellationToken,
    /// How soon the caller is to come back.
    pub(super) retry: Duration,
    _under_way: TaskTrackerToken,
}

/// How long what was cut may take to say so.
const LAST_WORDS: Duration = Duration::from_secs(1);

// === impl Passing ===

impl Passing {
    pub(super) fn new(retry: Duration) -> Self {
        let back = ArcSwap::from_pointee(CancellationToken::new());
        Self(Arc::new(Shared { under_way: TaskTracker::new(), back, cut: CancellationToken::new(), retry }))
    }

    /// One more.
    pub(super) fn enter(&self) -> Passage {
        let Shared { under_way, back, cut, retry } = &*self.0;
        let back = CancellationToken::clone(&back.load());
        Passage { back, cut: cut.clone(), retry: *retry, _under_way: under_way.token() }
    }

    /// Ends the streams whose callers can come back.
    pub(super) fn send_back(&self) {
        self.0.back.swap(Arc::new(CancellationToken::new())).cancel();
    }

    /// The end of the process: streams whose callers can come back end now, all else may end until `deadline`, and what
    /// does not is told what is known of it.
    pub(super) async fn leave(&self, deadline: Instant) {
        // Not swapped: whatever comes from now on is sent back too.
        self.0.back.load().cancel();
        self.0.under_way.close();
        if timeout_at(deadline, self.0.under_way.wait()).await.is_err() {
            self.0.cut.cancel();
            let _ = timeout(LAST_WORDS, self.0.under_way.wait()).await;
        }
    }
}
