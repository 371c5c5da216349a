//! What passes between callers and other replicas at the moment: at the end of the process it is sent back to come again,
//! waited for, or cut.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::http::peer::PeerClient;

/// All requests that are forwarded, or held to be; clones share it.
#[derive(Clone, Debug)]
pub(super) struct Passing(Arc<State>);

#[derive(Debug)]
struct State {
    under_way: TaskTracker,
    /// Cancelled when callers are to come back who can.
    back: CancellationToken,
    /// Set when nothing is waited for any more.
    cut: AtomicBool,
    /// How soon callers are to come back, where nothing failed.
    retry: Duration,
}

/// One of them, for as long as this lives.
#[derive(Clone, Debug)]
pub(in crate::http) struct Passage {
    state: Arc<State>,
    _under_way: TaskTrackerToken,
}

/// How long what was cut may take to say so.
const LAST_WORDS: Duration = Duration::from_secs(1);

// === impl Passing ===

impl Passing {
    pub(super) fn new(retry: Duration) -> Self {
        let (back, cut) = (CancellationToken::new(), AtomicBool::new(false));
        Self(Arc::new(State { under_way: TaskTracker::new(), back, cut, retry }))
    }

    /// One more.
    pub(super) fn enter(&self) -> Passage {
        Passage { state: self.0.clone(), _under_way: self.0.under_way.token() }
    }

    /// The process is about to end: streams whose callers can come back end, those that are opened from now on too.
    pub(super) fn send_back(&self) {
        self.0.back.cancel();
    }

    /// Lets what passes end until `deadline`. What does not is told what is known of it as its way breaks, and what comes
    /// later is refused.
    pub(super) async fn leave(&self, client: &PeerClient, deadline: Instant) {
        self.0.under_way.close();
        let _ = timeout_at(deadline, self.0.under_way.wait()).await;
        self.0.cut.store(true, Relaxed);
        client.end();
        let _ = timeout(LAST_WORDS, self.0.under_way.wait()).await;
    }
}

// === impl Passage ===

impl Passage {
    /// Resolves when its caller is to come back, if it can.
    pub(super) fn back(&self) -> WaitForCancellationFutureOwned {
        self.state.back.clone().cancelled_owned()
    }

    /// Whether this replica is about to end.
    pub(super) fn is_leaving(&self) -> bool {
        self.state.back.is_cancelled()
    }

    /// How soon the caller is to come back, where nothing failed.
    pub(super) fn retry(&self) -> Duration {
        self.state.retry
    }

    /// Whether it is waited for no longer; one that comes then goes nowhere.
    pub(in crate::http) fn is_cut(&self) -> bool {
        self.state.cut.load(Relaxed)
    }
}
