//! Parked calls: calls to legacy servers that ask in mid-call, while their modern caller is between two requests
//! (X34).
//!
//! The caller is answered with `input_required`; the work of its request, a future that borrows nothing, moves onto a
//! task that keeps it. The retry takes it from there and goes on with it as with a request of its own: the outlet
//! turns to the new POST, the answers go to the server, and what comes next is the result or another round. A call is
//! in one hand only, so an answer counts once.

mod answer;
mod ask;
mod carried;
mod for_modern;
mod questions;
mod retry;
mod room;
mod state;
mod url;
mod wanted;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::oneshot;

use super::outlet::Outlet;
use super::{Relay, Session};
use crate::protocol::object::Object;
use crate::protocol::revision::Era;
use crate::protocol::translate::input_required;
use crate::store::{Registry, lock};
use crate::telemetry::Metrics;
use crate::telemetry::metrics::Translated;

pub(super) use ask::{ask, on_turn, only, take_back};
pub(super) use carried::{Carried, Served, Work};
pub(super) use for_modern::ForModern;
pub(super) use questions::{Questions, Round, Unanswered};
pub(super) use retry::{Retried, can_be_asked, mentions_state};
pub(super) use room::{Room, SessionRoom};
pub(super) use wanted::Wanted;

use state::{GoesOn, State, request_digest};
use url::Again;

/// The parked calls of this process.
pub(super) struct ParkedCalls {
    slots: Registry<u64, Arc<Slot>>,
    /// Calls that ended and are to be made again.
    again: Arc<Registry<u64, Arc<Again>>>,
    next: AtomicU64,
    /// How many there may be.
    pub(super) room: Arc<Room>,
}

/// One parked call: how to take it.
struct Slot {
    round: u32,
    session: Arc<Session>,
    outlet: Arc<Outlet>,
    give: Mutex<Option<oneshot::Sender<oneshot::Sender<Carried>>>>,
    _counted: Counted,
}

/// Counts a parked call for as long as this lives.
struct Counted(Arc<Metrics>);

// === impl ParkedCalls ===

impl ParkedCalls {
    /// None yet; at most `most` of each tenant.
    pub(super) fn new(most: usize) -> Self {
        Self { slots: Registry::new(), again: Arc::default(), next: AtomicU64::new(1), room: Room::new(most) }
    }

    /// A number that no other call or seat has.
    fn next_number(&self) -> u64 {
        self.next.fetch_add(1, Relaxed)
    }
}

// === impl Slot ===

impl Slot {
    /// Whether somebody goes on with the call already.
    fn is_taken(&self) -> bool {
        lock(&self.give).is_none()
    }

    /// Takes the call; none if another was quicker, or its time is over.
    async fn take(&self) -> Option<Carried> {
        let give = lock(&self.give).take()?;
        let (taker, taken) = oneshot::channel();
        give.send(taker).ok()?;
        taken.await.ok()
    }
}

// === impl Counted ===

impl Counted {
    fn new(metrics: &Arc<Metrics>) -> Self {
        metrics.call_parked();
        Self(metrics.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.call_unparked();
    }
}

// === impl Relay ===

impl Relay {
    /// Parks a call until its caller comes back; gives the response that asks the caller.
    fn park(self: &Arc<Self>, mut carried: Carried, round: &Round) -> Bytes {
        self.metrics.translated(Era::Legacy, Translated::Round);
        let call = *carried.call.get_or_insert_with(|| self.parked.next_number());
        let request = &carried.request;
        let params = request.params().and_then(|raw| Object::parse(raw).ok()).unwrap_or_default();
        let goes_on =
            GoesOn::Call { replica: self.sessions.replica().0.to_string(), call, round: round.number };
        let state = State::new(goes_on, request_digest(request.method(), &params), round.input);
        let state = state.seal(&self.sealer, &carried.session.binding);
        let response = input_required(request.id(), &round.requests, &state);
        let (bytes, request_id) = (carried.size(), carried.outlet.request_id());
        tracing::debug!(request.id = %request_id, call, round = round.number, bytes, "a call waits for its caller");
        if let Some(lane) = carried.outlet.for_modern().and_then(|modern| modern.lane.get()) {
            lane.rest();
        }
        let (give, wanted) = oneshot::channel();
        let session = carried.session.clone();
        let slot = Slot {
            round: round.number,
            session,
            outlet: carried.outlet.clone(),
            give: Mutex::new(Some(give)),
            _counted: Counted::new(&self.metrics),
        };
        self.parked.slots.insert(call, Arc::new(slot));
        self.tasks.spawn(self.clone().keep(carried, call, wanted, round.input));
        response
    }

    /// Keeps a call at work until its caller comes back. One that is late finds it cancelled (X37); what it led to
    /// meanwhile waits as long.
    async fn keep(
        self: Arc<Self>,
        mut carried: Carried,
        call: u64,
        mut wanted: oneshot::Receiver<oneshot::Sender<Carried>>,
        input: Duration,
    ) {
        let mut late = std::pin::pin!(tokio::time::sleep(input));
        let taker = loop {
            tokio::select! {
                biased;
                taker = &mut wanted => break taker.ok(),
                () = carried.finished() => {}
                () = &mut late => break None,
                () = self.stopping.cancelled() => break None,
            }
        };
        // Before it is given: whoever wanted it may be gone, and then nobody else would.
        self.parked.slots.remove(&call);
        match taker {
            // If who wanted it has left again, it comes back and is cancelled.
            Some(taker) => drop(taker.send(carried)),
            None => {
                if let Some(questions) = carried.outlet.questions() {
                    questions.refuse_all(Unanswered::TooLate);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
