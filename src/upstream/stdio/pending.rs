//! The calls that wait for a child's answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::protocol::envelope::Response;
use crate::store::lock;
use crate::upstream::{Failure, Listener, UpstreamId};

/// Who waits for which id, until the link is down. The lock is held for a map operation, never across a wait.
#[derive(Default)]
pub(super) struct Pending {
    calls: Mutex<Calls>,
    /// Cancelled when the link is down.
    ended: CancellationToken,
}

/// Where the answer to one call arrives.
pub(super) type Answer = Result<Response, Failure>;

/// A call's place in the map; dropping it gives the place up.
pub(super) struct Place<'a> {
    pending: &'a Pending,
    id: UpstreamId,
    /// Where its answer arrives.
    pub(super) answer: oneshot::Receiver<Answer>,
}

#[derive(Default)]
struct Calls {
    waiting: HashMap<UpstreamId, Waiting>,
    down: Option<Failure>,
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The answer to a call.
    Call,
    /// The end of a `subscriptions/listen`, which is open as long as its caller likes.
    Listen,
}

struct Waiting {
    kind: Kind,
    answer: oneshot::Sender<Answer>,
    listener: Arc<dyn Listener>,
}

// === impl Pending ===

impl Pending {
    /// Takes a call in, unless the link is down.
    pub(super) fn admit(
        &self,
        id: UpstreamId,
        kind: Kind,
        listener: Arc<dyn Listener>,
    ) -> Result<Place<'_>, Failure> {
        let mut calls = self.lock();
        if let Some(failure) = &calls.down {
            return Err(failure.clone());
        }
        let (sender, answer) = oneshot::channel();
        calls.waiting.insert(id, Waiting { kind, answer: sender, listener });
        Ok(Place { pending: self, id, answer })
    }

    /// Gives the answer to whom it is for; `false` if nobody waits for it.
    pub(super) fn settle(&self, id: UpstreamId, answer: Answer) -> bool {
        let waiting = self.lock().waiting.remove(&id);
        waiting.is_some_and(|w| w.answer.send(answer).is_ok())
    }

    /// Who hears what belongs to a call.
    pub(super) fn listener(&self, id: UpstreamId) -> Option<Arc<dyn Listener>> {
        self.lock().waiting.get(&id).map(|w| Arc::clone(&w.listener))
    }

    /// Who hears the only call that runs; nobody if none does, or several do.
    pub(super) fn only_caller(&self) -> Option<Arc<dyn Listener>> {
        let calls = self.lock();
        let mut running = calls.waiting.values().filter(|w| w.kind == Kind::Call);
        match (running.next(), running.next()) {
            (Some(one), None) => Some(Arc::clone(&one.listener)),
            _ => None,
        }
    }

    /// From now on new calls fail with `failure`; those that wait may still be answered.
    pub(super) fn refuse(&self, failure: Failure) {
        self.lock().down.get_or_insert(failure);
        self.ended.cancel();
    }

    /// New calls fail with `refusal`, those that wait with `failure`.
    pub(super) fn shut(&self, refusal: Failure, failure: &Failure) {
        let waiting = {
            let mut calls = self.lock();
            calls.down = Some(refusal);
            std::mem::take(&mut calls.waiting)
        };
        self.ended.cancel();
        for (_, call) in waiting {
            let _ = call.answer.send(Err(failure.clone()));
        }
    }

    /// What new calls fail with, once the link is down.
    pub(super) fn down(&self) -> Option<Failure> {
        self.lock().down.clone()
    }

    /// Cancelled when the link is down.
    pub(super) fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        lock(&self.calls)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.pending.lock().waiting.remove(&self.id);
    }
}
