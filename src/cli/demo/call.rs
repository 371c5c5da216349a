//! A call that takes time: it can be cancelled, and it can wait for an answer of the client.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::store::lock;

/// One running call.
#[derive(Debug, Default)]
pub(super) struct Call {
    state: Mutex<State>,
    changed: Condvar,
}

/// The client wants no result any more.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cancelled;

#[derive(Debug, Default)]
struct State {
    cancelled: bool,
    answer: Option<Box<str>>,
}

// === impl Call ===

impl Call {
    /// Ends it, soon.
    pub(super) fn cancel(&self) {
        self.lock().cancelled = true;
        self.changed.notify_all();
    }

    /// Brings it the answer to its question, as a raw `result`.
    pub(super) fn answer(&self, result: &str) {
        self.lock().answer = Some(result.into());
        self.changed.notify_all();
    }

    /// Lets time pass.
    pub(super) fn pause(&self, duration: Duration) -> Result<(), Cancelled> {
        let waited = self.changed.wait_timeout_while(self.lock(), duration, |state| !state.cancelled);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if state.cancelled { Err(Cancelled) } else { Ok(()) }
    }

    /// Waits for the answer; `None` if none comes in time.
    pub(super) fn answered_within(&self, limit: Duration) -> Result<Option<Box<str>>, Cancelled> {
        let open = |state: &mut State| !state.cancelled && state.answer.is_none();
        let waited = self.changed.wait_timeout_while(self.lock(), limit, open);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if state.cancelled { Err(Cancelled) } else { Ok(state.answer.take()) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}
