//! Whose turn it is at a child of one session, for calls that must not run there side by side.
//!
//! What a child asks in mid-call does not say which call it belongs to, and a modern caller can only be asked by the
//! answer to that call. So a call that may be asked has its link to itself while it runs (X35); others of the session
//! wait, or take another link if `pool.perSession` allows more. Legacy callers have one stream for it all and need none of this.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::select_all;
use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;

use super::parked::can_be_asked;
use super::serving::Serving;
use super::shared::Pick;
use super::{Relay, Session};
use crate::protocol::error::{Code, Layer, RpcError};
use crate::protocol::revision::Era;
use crate::settings::ServerSettings;
use crate::settings::servers::{Isolation, TransportSettings};
use crate::store::lock;

/// How long a call waits for those before it, if its own time is not over sooner.
const PATIENCE: Duration = Duration::from_secs(30);

/// The lanes of one session, by server.
#[derive(Default)]
pub(super) struct Lanes(Mutex<HashMap<Arc<str>, Arc<Set>>>);

/// The lanes to one server as it is configured.
pub(super) struct Set {
    server: Arc<ServerSettings>,
    /// Held by the call whose turn it is there.
    lanes: Vec<Arc<tokio::sync::Mutex<()>>>,
}

/// The lane of one call, and its turn there. A parked call lets others have theirs: its server waits for it.
pub(super) struct Lane {
    set: Arc<Set>,
    number: usize,
    turn: Mutex<Option<Turn>>,
    /// Cancelled when the call has ended, and needs no turn any more.
    over: CancellationToken,
}

/// A lane for as long as its call is at work.
pub(super) struct Taken(pub(super) Arc<Lane>);

/// A call's turn, for as long as this lives.
pub(super) type Turn = OwnedMutexGuard<()>;

// === impl Lanes ===

impl Lanes {
    fn of(&self, server: &Arc<ServerSettings>, size: usize) -> Arc<Set> {
        let mut lanes = lock(&self.0);
        match lanes.get(server.name.as_str()) {
            Some(set) if Arc::ptr_eq(&set.server, server) => set.clone(),
            _ => {
                let free = (0..size).map(|_| Arc::default()).collect();
                let set = Arc::new(Set { server: server.clone(), lanes: free });
                lanes.insert(server.name.as_str().into(), set.clone());
                set
            }
        }
    }
}

// === impl Set ===

impl Set {
    /// A lane, once it is this call's turn.
    ///
    /// # Errors
    /// `busy` if the calls before it take too long.
    pub(super) async fn turn(self: Arc<Self>) -> Result<Taken, RpcError> {
        // The lowest that is free, so that no more children are started than needed.
        let free = self
            .lanes
            .iter()
            .enumerate()
            .find_map(|(n, lane)| Some((n, lane.clone().try_lock_owned().ok()?)));
        let (number, turn) = match free {
            Some(found) => found,
            None => self.in_time(self.any()).await?,
        };
        let (turn, over) = (Mutex::new(Some(turn)), CancellationToken::new());
        Ok(Taken(Arc::new(Lane { set: self, number, turn, over })))
    }

    /// Waits for whichever lane is free first.
    async fn any(&self) -> (usize, Turn) {
        let waiting = self.lanes.iter().enumerate();
        let waiting =
            waiting.map(|(number, lane)| lane.clone().lock_owned().map(move |turn| (number, turn)).boxed());
        select_all(waiting).await.0
    }

    async fn in_time<T>(&self, turn: impl Future<Output = T>) -> Result<T, RpcError> {
        let patience = PATIENCE.min(self.server.timeouts.total);
        tokio::time::timeout(patience, turn).await.map_err(|_| busy(&self.server, patience))
    }
}

// === impl Lane ===

impl Lane {
    /// The link that it leads over.
    pub(super) fn pick(&self) -> Pick {
        Pick::Lane(self.number)
    }

    /// Lets others have their turn, while this call waits for its caller.
    pub(super) fn rest(&self) {
        lock(&self.turn).take();
    }

    /// Waits until this call can go on after a rest; gives no turn if it has ended meanwhile.
    ///
    /// # Errors
    /// `busy` if those before it take too long.
    ///
    /// # Cancellation
    /// Nothing has changed.
    pub(super) async fn turn_again(&self) -> Result<Option<Turn>, RpcError> {
        let Some(lane) = self.set.lanes.get(self.number) else { unreachable!("numbered when it was taken") };
        tokio::select! {
            biased;
            () = self.over.cancelled() => Ok(None),
            turn = self.set.in_time(lane.clone().lock_owned()) => turn.map(Some),
        }
    }

    /// Goes on, unless the call has ended.
    pub(super) fn go_on(&self, turn: Turn) {
        let mut held = lock(&self.turn);
        if !self.over.is_cancelled() {
            *held = Some(turn);
        }
    }
}

// === impl Taken ===

impl Drop for Taken {
    fn drop(&mut self) {
        self.0.over.cancel();
        self.0.rest();
    }
}

impl std::fmt::Debug for Lane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lane").field("server", &self.set.server.name).field("number", &self.number).finish()
    }
}

// === impl Relay ===

impl Relay {
    /// The lanes of which a request must take one, if it must.
    pub(super) fn lanes(&self, serving: Serving<'_>, server: &Arc<ServerSettings>) -> Option<Arc<Set>> {
        let Serving { session, request, .. } = serving;
        let TransportSettings::Stdio(stdio) = &server.transport else { return None };
        let asked = can_be_asked(request.method()) && may_ask(session);
        let alone = server.isolation == Isolation::Session && self.known(server).era() != Some(Era::Modern);
        (asked && alone).then(|| session.attached.lanes.of(server, stdio.per_session.max(1)))
    }
}

/// Whether a server may ask the callers of a session anything.
fn may_ask(session: &Session) -> bool {
    use crate::protocol::capability::Capability::{ElicitationForm, ElicitationUrl, Roots, Sampling};
    [Roots, Sampling, ElicitationForm, ElicitationUrl].into_iter().any(|c| session.greeting.class.has(c))
}

fn busy(server: &ServerSettings, patience: Duration) -> RpcError {
    let name = &server.name;
    let message = format!(
        "Server `{name}` was still at an earlier call of this client after {patience:?}; it may ask in mid-call, so \
         calls run one after another (pool.perSession allows more). This one did not go on; try it again."
    );
    RpcError::new(Code::Internal, "busy", message).at(name, Layer::Call).retryable()
}

#[cfg(test)]
mod tests;
