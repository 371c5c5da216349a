//! What passes between callers and other replicas at the moment: at the end of the process it is sent back to come again,
//! waited for, or cut.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// All requests that are forwarded, or held to be; clones share it.
#[derive(Clone, Debug)]
pub(super) struct Passing(Arc<State>);

#[derive(Debug)]
struct State {
    under_way: TaskTracker,
    /// Cancelled when callers are to come back who can.
    back: CancellationToken,
    /// Cancelled when nothing is waited for any more.
    cut: CancellationToken,
    /// How soon callers are to come back, where nothing failed.
    retry: Duration,
}

/// One of them, for as long as this lives.
#[derive(Clone, Debug)]
pub(in crate::http) struct Passage {
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
        let (back, cut) = (CancellationToken::new(), CancellationToken::new());
        Self(Arc::new(State { under_way: TaskTracker::new(), back, cut, retry }))
    }

    /// One more.
    pub(super) fn enter(&self) -> Passage {
        let State { under_way, back, cut, retry } = &*self.0;
        Passage { back: back.clone(), cut: cut.clone(), retry: *retry, _under_way: under_way.token() }
    }

    /// The process is about to end: streams whose callers can come back end, those that are opened from now on too.
    pub(super) fn send_back(&self) {
        self.0.back.cancel();
    }

    /// Lets what passes end until `deadline`. What does not is told what is known of it, and what comes later is
    /// refused.
    pub(super) async fn leave(&self, deadline: Instant) {
        self.0.under_way.close();
        let _ = timeout_at(deadline, self.0.under_way.wait()).await;
        self.0.cut.cancel();
        let _ = timeout(LAST_WORDS, self.0.under_way.wait()).await;
    }
}

// === impl Passage ===

impl Passage {
    /// Whether it comes too late to go anywhere.
    pub(in crate::http) fn is_cut(&self) -> bool {
        self.cut.is_cancelled()
    }
}
