//! A modern request on its way to an answer: its work, and what goes on when the POST it came with is answered.

use std::pin::Pin;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::protocol::edit::{Edit, Text};
use crate::protocol::envelope::{Message, Request};
use crate::protocol::error::RpcError;
use crate::relay::Session;
use crate::relay::outlet::Outlet;
use crate::relay::seat::Seat;

/// What a modern request led to.
pub(in crate::relay) enum Served {
    /// A response.
    Response(Text),
    /// An error of ours, from before the request was relayed, to the request of this raw id.
    Refused(RpcError, Box<str>),
}

/// The work of a modern request; it gives none if it was cancelled.
pub(in crate::relay) type Work = Pin<Box<dyn Future<Output = Option<Served>> + Send>>;

/// A modern request on its way. Dropped before its end it is cancelled (T54); the work is let come to its own end all
/// the same, in which it takes its leave of the server.
pub(in crate::relay) struct Carried {
    work: Option<Work>,
    /// What the work led to while nobody waited for it.
    done: Option<Option<Served>>,
    pub(in crate::relay) outlet: Arc<Outlet>,
    pub(in crate::relay) session: Arc<Session>,
    /// The caller's latest request for it.
    pub(in crate::relay) request: Request,
    /// Its number among the parked calls, once it was parked.
    pub(in crate::relay) call: Option<u64>,
    /// Whether a later request than the first one waits for the answer.
    retried: bool,
    cancelled: CancellationToken,
    tasks: TaskTracker,
    /// It counts as a running request of its session from its beginning to its answer, parked or not.
    seat: Option<Seat>,
}

// === impl Carried ===

impl Carried {
    pub(in crate::relay) fn new(
        work: Work,
        outlet: Arc<Outlet>,
        request: Request,
        seat: Seat,
        cancelled: CancellationToken,
        tasks: TaskTracker,
    ) -> Self {
        Self {
            work: Some(work),
            session: seat.session.clone(),
            done: None,
            outlet,
            request,
            call: None,
            retried: false,
            cancelled,
            tasks,
            seat: Some(seat),
        }
    }

    /// Waits for the end of the work.
    ///
    /// # Cancellation
    /// Loses nothing.
    pub(in crate::relay) async fn served(&mut self) -> Option<Served> {
        let served = match self.done.take() {
            Some(done) => done,
            None => {
                let served = self.work.as_mut()?.await;
                self.work = None;
                served
            }
        };
        make_room(&self.outlet);
        self.addressed(served)
    }

    /// The same while nobody waits: what it led to is kept for who comes.
    pub(in crate::relay) async fn finished(&mut self) {
        if let Some(work) = self.work.as_mut() {
            self.done = Some(work.await);
            self.work = None;
        } else {
            std::future::pending::<()>().await;
        }
    }

    /// Goes on under another request of its caller.
    pub(in crate::relay) fn go_on(&mut self, request: Request) {
        self.request = request;
        self.retried = true;
    }

    /// Takes the seat of work that has ended.
    pub(in crate::relay) fn take_seat(&mut self) -> Option<Seat> {
        self.seat.take()
    }

    /// The size of the work on the heap, bytes.
    pub(in crate::relay) fn size(&self) -> usize {
        self.work.as_deref().map_or(0, size_of_val)
    }

    /// The response to the caller's latest request: the work knows only the first.
    fn addressed(&self, served: Option<Served>) -> Option<Served> {
        if !self.retried {
            return served;
        }
        let id = self.request.id();
        Some(match served? {
            Served::Refused(error, _) => Served::Refused(error, id.into()),
            Served::Response(text) => {
                let text = text.join();
                Served::Response(match Message::parse(text.clone()) {
                    Ok(Message::Response(response)) => {
                        Edit::of(&text).replace(response.id_span(), id).finish_text(&text)
                    }
                    // Nothing else is ever written.
                    _ => text.into(),
                })
            }
        })
    }
}

impl Drop for Carried {
    fn drop(&mut self) {
        let Some(work) = self.work.take() else { return make_room(&self.outlet) };
        self.outlet.abandon();
        self.cancelled.cancel();
        let (outlet, seat) = (self.outlet.clone(), self.seat.take());
        self.tasks.spawn(async move {
            work.await;
            make_room(&outlet);
            drop(seat);
        });
    }
}

/// Frees the place among parked calls of the one that speaks through `outlet`.
fn make_room(outlet: &Outlet) {
    if let Some(questions) = outlet.questions() {
        questions.make_room();
    }
}

// === impl Served ===

impl Served {
    pub(in crate::relay) fn into_text(self, outlet: &Outlet) -> Text {
        match self {
            Self::Response(text) => text,
            Self::Refused(error, id) => error.to_message(Some(&id), Some(&outlet.request_id())).into(),
        }
    }
}
