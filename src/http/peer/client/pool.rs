//! The connections to one peer, in two lanes: calls, and streams that live long.
//!
//! Which lane a request takes is told by its method, since no more is known before its answer: a GET is a stream, all
//! else is a call. A call whose answer becomes an event stream stays where it is, for nothing can move it; but a
//! connection that has half its places taken by such streams changes lanes, so that calls never wait for streams to
//! end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::Method;
use tokio::sync::watch;

use super::Shared;
use super::connection::{Connection, LetGo, Seat, drive};
use super::dial::dial;
use crate::http::peer::PeerAddress;
use crate::http::peer::error::{HopError, NoWay};

/// How often a request waits for a connection that then is full already.
const WAITS: usize = 8;

/// What a request is, as far as its connection goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It is answered and gone.
    Call,
    /// It stays.
    Stream,
}

/// The connections to one peer.
#[derive(Debug)]
pub(super) struct Pool {
    pub(super) to: PeerAddress,
    lanes: Mutex<Lanes>,
}

#[derive(Debug, Default)]
struct Lanes {
    calls: Lane,
    streams: Lane,
}

#[derive(Debug, Default)]
struct Lane {
    /// At most [`super::ClientLimits::connections`], and those that changed lanes.
    connections: Vec<Arc<Connection>>,
    /// The one that is being made; all who need it wait for this one.
    dialing: Option<Dialing>,
}

/// Tells how the making of a connection went.
type Dialing = watch::Receiver<Option<Result<(), HopError>>>;

/// What there is for a request.
enum Found {
    Seat(Seat),
    Wait(Dialing),
    Full,
}

// === impl Kind ===

impl Kind {
    pub(super) fn of(method: &Method) -> Self {
        if method == Method::GET { Self::Stream } else { Self::Call }
    }
}

// === impl Pool ===

impl Pool {
    pub(super) fn new(to: PeerAddress) -> Arc<Self> {
        Arc::new(Self { to, lanes: Mutex::default() })
    }

    /// A place for a request.
    pub(super) async fn seat(self: &Arc<Self>, kind: Kind, shared: &Arc<Shared>) -> Result<Seat, HopError> {
        for _ in 0..WAITS {
            let mut dialing = match self.find(kind, shared) {
                Found::Seat(seat) => return Ok(seat),
                Found::Full => return Err(HopError::Busy),
                Found::Wait(dialing) => dialing,
            };
            match dialing.wait_for(Option::is_some).await.map(|made| made.clone()) {
                Ok(Some(Err(error))) => return Err(error),
                Ok(_) => {}
                Err(_) => return Err(HopError::Unreachable(NoWay::Ending)),
            }
        }
        Err(HopError::Busy)
    }

    /// Whether nobody uses it.
    pub(super) fn is_empty(&self) -> bool {
        let lanes = self.lock();
        [&lanes.calls, &lanes.streams].iter().all(|lane| lane.connections.is_empty() && !lane.is_dialing())
    }

    fn find(self: &Arc<Self>, kind: Kind, shared: &Arc<Shared>) -> Found {
        let limits = &shared.limits;
        let mut lanes = self.lock();
        lanes.sort_out(limits.connections);
        let lane = lanes.of(kind);
        let spread = if kind == Kind::Call { limits.spread } else { 1 };
        let talking = lane.connections.iter().filter(|connection| !connection.is_silent());
        let best = talking.min_by_key(|connection| connection.open());
        let crowded = best.is_some_and(|best| best.open() >= limits.crowd && lane.connections.len() < spread);
        let wants_more = crowded || best.is_none_or(|best| best.is_nearly_full());
        let seat = best.and_then(Connection::seat);
        let dialing = if wants_more && (lane.is_dialing() || lane.connections.len() < limits.connections) {
            Some(lane.join(|| self.dial(kind, shared)))
        } else {
            None
        };
        match (seat, dialing) {
            (Some(seat), _) => Found::Seat(seat),
            (None, Some(dialing)) => Found::Wait(dialing),
            (None, None) => Found::Full,
        }
    }

    /// Makes a connection on a task of its own: whoever waits for it may leave.
    fn dial(self: &Arc<Self>, kind: Kind, shared: &Arc<Shared>) -> Dialing {
        let (made, dialing) = watch::channel(None);
        let (pool, shared) = (self.clone(), shared.clone());
        shared.clone().tasks.spawn(async move {
            let dialed = dial(&pool.to, &shared.identity, &shared.limits).await;
            let dialed = match dialed {
                Ok(dialed) => dialed,
                Err(error) => {
                    pool.lock().of(kind).dialing = None;
                    shared.forget_if_unused(&pool);
                    made.send_replace(Some(Err(error)));
                    return;
                }
            };
            let connection = Connection::new(dialed.sender.clone(), &shared.limits);
            {
                let mut lanes = pool.lock();
                let lane = lanes.of(kind);
                lane.dialing = None;
                lane.connections.push(connection.clone());
            }
            made.send_replace(Some(Ok(())));
            let let_go = |connection: &Arc<Connection>| pool.let_go(connection);
            drive(dialed, connection, &shared.limits, &shared.end, let_go).await;
            shared.forget_if_unused(&pool);
        });
        dialing
    }

    /// Takes a connection out that nothing runs on, or that is retired.
    fn let_go(&self, connection: &Arc<Connection>) -> LetGo {
        let mut lanes = self.lock();
        // Places are given out under this lock only.
        if connection.open() > 0 && !connection.is_retired() {
            return LetGo::Used;
        }
        connection.retire();
        lanes.calls.connections.retain(|other| !Arc::ptr_eq(other, connection));
        lanes.streams.connections.retain(|other| !Arc::ptr_eq(other, connection));
        LetGo::Gone
    }

    fn lock(&self) -> MutexGuard<'_, Lanes> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Lanes ===

impl Lanes {
    fn of(&mut self, kind: Kind) -> &mut Lane {
        match kind {
            Kind::Call => &mut self.calls,
            Kind::Stream => &mut self.streams,
        }
    }

    /// Drops what takes no more, and hands over what became a connection of streams.
    fn sort_out(&mut self, most: usize) {
        self.calls.connections.retain(|connection| !connection.is_retired());
        self.streams.connections.retain(|connection| !connection.is_retired());
        let mut at = 0;
        while let Some(connection) = self.calls.connections.get(at) {
            if connection.is_mostly_streams() && self.streams.connections.len() < most {
                self.streams.connections.push(self.calls.connections.swap_remove(at));
            } else {
                at += 1;
            }
        }
    }
}

// === impl Lane ===

impl Lane {
    /// Whether a connection is being made; one whose task is gone is not.
    fn is_dialing(&self) -> bool {
        self.dialing.as_ref().is_some_and(|dialing| dialing.has_changed().is_ok())
    }

    fn join(&mut self, dial: impl FnOnce() -> Dialing) -> Dialing {
        match &self.dialing {
            Some(dialing) if self.is_dialing() => dialing.clone(),
            _ => self.dialing.insert(dial()).clone(),
        }
    }
}
