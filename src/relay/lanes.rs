//! Whose turn it is at a child of one session, for calls that must not run there side by side.
//!
//! What a child asks in mid-call does not say which call it belongs to, and a modern caller can only be asked by the
//! answer to that call. So a call that may be asked has its link to itself (X35); others of the session wait, or take
//! another link if `pool.perSession` allows more. Legacy callers have one stream for it all and need none of this.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

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
    turns: Arc<Semaphore>,
    /// By number, whether it is free.
    free: Mutex<Vec<bool>>,
}

/// One lane, for as long as this lives.
pub(super) struct Lane {
    set: Arc<Set>,
    number: usize,
    _turn: OwnedSemaphorePermit,
}

// === impl Lanes ===

impl Lanes {
    fn of(&self, server: &Arc<ServerSettings>, size: usize) -> Arc<Set> {
        let mut lanes = lock(&self.0);
        match lanes.get(server.name.as_str()) {
            Some(set) if Arc::ptr_eq(&set.server, server) => set.clone(),
            _ => {
                let set = Arc::new(Set {
                    server: server.clone(),
                    turns: Arc::new(Semaphore::new(size)),
                    free: Mutex::new(vec![true; size]),
                });
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
    pub(super) async fn turn(self: Arc<Self>) -> Result<Lane, RpcError> {
        let patience = PATIENCE.min(self.server.timeouts.total);
        match tokio::time::timeout(patience, self.take()).await {
            Ok(Some(lane)) => Ok(lane),
            Ok(None) | Err(_) => Err(busy(&self.server, patience)),
        }
    }

    /// A free lane, the lowest first, so that no more children are started than needed.
    async fn take(self: &Arc<Self>) -> Option<Lane> {
        let turn = self.turns.clone().acquire_owned().await.ok()?;
        let mut free = lock(&self.free);
        let number = free.iter().position(|free| *free)?;
        if let Some(free) = free.get_mut(number) {
            *free = false;
        }
        drop(free);
        Some(Lane { set: self.clone(), number, _turn: turn })
    }
}

// === impl Lane ===

impl Lane {
    /// The link that it leads over.
    pub(super) fn pick(&self) -> Pick {
        Pick::Lane(self.number)
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        if let Some(free) = lock(&self.set.free).get_mut(self.number) {
            *free = true;
        }
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
         calls run one after another (pool.perSession allows more). This one did not run; try it again."
    );
    RpcError::new(Code::Internal, "busy", message).at(name, Layer::Call).retryable()
}
