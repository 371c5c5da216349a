//! Modern requests that belong to another replica: the one that holds their parked call, or owns the implicit session
//! that their server keeps state for.

use std::sync::Arc;

use super::request::unknown;
use super::seat::Seat;
use super::{Relay, Session, Unplaced};
use crate::catalog::Endpoint;
use crate::protocol::envelope::Request;
use crate::protocol::error::{Code, RpcError};
use crate::protocol::method::Method;
use crate::protocol::object::Object;
use crate::protocol::revision::Era;
use crate::session::{AdoptError, Adoptable, Epoch, Owner, Ownership, Peer, ReplicaId, SessionId, Unlocated};
use crate::settings::ServerSettings;
use crate::settings::servers::Isolation;
use crate::store::{Flight, Registry, SessionKey};

/// How a modern request came to this replica.
#[derive(Clone, Copy, Debug)]
pub enum Came<'a> {
    /// From its caller; this replica, if any, was proven dead since.
    Caller(Option<&'a ReplicaId>),
    /// From a peer that means this replica, whatever it owns.
    ToReplica,
    /// From a peer that takes this replica for the owner in this epoch.
    ToOwner(Epoch),
}

/// Where a modern request is to be served.
#[derive(Debug)]
pub struct Elsewhere {
    /// The replica.
    pub peer: Peer,
    /// The epoch in which it is the owner; none if it holds a call.
    pub epoch: Option<Epoch>,
    /// The request as it goes there.
    pub request: Request,
    /// What the store may know the implicit session by.
    pub(super) names: Vec<SessionKey>,
}

/// Where a request is served that has a seat here.
pub(super) enum Settled {
    /// Here.
    Here,
    /// At the replica that owns its implicit session.
    At(Owner),
    /// Not here, where a peer forwarded it to.
    NotOwner,
    /// Nowhere.
    Refused(RpcError),
}

/// Implicit sessions that are being taken: one attempt for all who need it.
pub(super) type Owning = Registry<SessionId, Flight<Result<(), AdoptError>>>;

/// How often it is looked again who owns an implicit session when others took it meanwhile.
const LOOKS: usize = 4;

// === impl Came ===

impl<'a> Came<'a> {
    /// The replica that was proven dead.
    pub(super) fn dead(self) -> Option<&'a ReplicaId> {
        match self {
            Self::Caller(dead) => dead,
            Self::ToReplica | Self::ToOwner(_) => None,
        }
    }
}

// === impl Relay ===

impl Relay {
    /// Whether a request with this seat is served here without a further look: nobody else could, or its session is owned
    /// here.
    pub(super) fn is_settled(&self, seat: &Seat, came: Came<'_>) -> bool {
        if !self.has_peers() || seat.is_alone() {
            return true;
        }
        match (self.sessions.owns(&seat.session), came) {
            (Ok(Some(own)), Came::ToOwner(meant)) => own == meant,
            (Ok(owned), Came::Caller(_) | Came::ToReplica) => owned.is_some(),
            (Ok(None) | Err(_), _) => false,
        }
    }

    /// Where a request with this seat is served: if its server keeps state between calls, by the one replica that owns
    /// its implicit session. That is this one if no other is.
    ///
    /// # Errors
    /// [`Unplaced`]
    pub(super) async fn settle(
        self: &Arc<Self>,
        seat: &Seat,
        endpoint: &Endpoint,
        request: &Request,
        came: Came<'_>,
    ) -> Result<Settled, Unplaced> {
        if !matches!(came, Came::ToOwner(_)) {
            match self.server_of(&seat.session, endpoint, request).await {
                Ok(Some(server)) if self.keeps_state(&server) => {}
                Ok(_) => return Ok(Settled::Here),
                Err(error) => return Ok(Settled::Refused(error)),
            }
        }
        self.settle_state(&seat.session, came).await
    }

    /// The same for one that surely needs what a server keeps for `session`.
    ///
    /// # Errors
    /// [`Unplaced`]
    pub(super) async fn settle_state(
        self: &Arc<Self>,
        session: &Arc<Session>,
        came: Came<'_>,
    ) -> Result<Settled, Unplaced> {
        for _ in 0..LOOKS {
            if let Some(own) = self.sessions.owns(session).map_err(Unlocated::from)? {
                let stale = matches!(came, Came::ToOwner(meant) if meant != own);
                return Ok(if stale { Settled::NotOwner } else { Settled::Here });
            }
            let found = match self.sessions.owner_of_implicit(session, came.dead()).await? {
                Ownership::Of(owner) => {
                    return Ok(match came {
                        Came::Caller(_) => Settled::At(owner),
                        Came::ToOwner(_) => Settled::NotOwner,
                        Came::ToReplica => Settled::Refused(moved()),
                    });
                }
                Ownership::Nobodys(found) => found,
            };
            match self.own(session, found).await {
                // A peer that meant an earlier epoch is served all the same: nothing of it ran.
                Ok(()) if matches!(came, Came::ToOwner(_)) => return Ok(Settled::Here),
                Ok(()) | Err(AdoptError::Raced) => {}
                Err(other) => return Err(other.into()),
            }
        }
        Err(AdoptError::Raced.into())
    }

    /// Whether calls to a server must all come to the same links: it has those of one session for itself, and what it
    /// keeps between calls. One whose era is not known is taken for one of these.
    pub(super) fn keeps_state(&self, server: &Arc<ServerSettings>) -> bool {
        matches!(server.isolation, Isolation::Session) && self.known(server).era() != Some(Era::Modern)
    }

    /// The server that a request goes to, if it goes to one.
    ///
    /// # Errors
    /// That of [`Relay::route`].
    async fn server_of(
        self: &Arc<Self>,
        session: &Arc<Session>,
        endpoint: &Endpoint,
        request: &Request,
    ) -> Result<Option<Arc<ServerSettings>>, RpcError> {
        if !endpoint.servers.iter().any(|server| self.keeps_state(server)) {
            return Ok(None);
        }
        Ok(match request.method() {
            Method::ToolsCall | Method::PromptsGet | Method::ResourcesRead | Method::Complete => {
                Some(self.route(session, endpoint, request).await?.target.server)
            }
            Method::TasksGet | Method::TasksUpdate | Method::TasksCancel => {
                let params = request.params().and_then(|raw| Object::parse(raw).ok());
                let id = params.and_then(|params| params.text("taskId"));
                let task = id.and_then(|id| self.unseal_task(session, &id));
                task.and_then(|task| endpoint.servers.iter().find(|s| *s.name == *task.server).cloned())
            }
            Method::Other(_) => unknown(endpoint, request).ok().map(|route| route.target.server),
            _ => None,
        })
    }

    /// Takes an implicit session that nobody owns, once for all who wait for it.
    async fn own(
        self: &Arc<Self>,
        session: &Arc<Session>,
        found: Option<Adoptable>,
    ) -> Result<(), AdoptError> {
        let flight = self.owning.get_or_insert_with(session.id.clone(), || {
            let (relay, session) = (self.clone(), session.clone());
            Flight::begin(&self.tasks, |own| async move {
                let owned = relay.sessions.own(&session, found).await;
                relay.owning.remove_if(&session.id, |flight| flight.is(&own));
                owned
            })
        });
        flight.landed().await.unwrap_or(Err(AdoptError::Raced))
    }

    /// Forgets that a request belonged there: that replica is dead, or said that it does not.
    pub fn forget_elsewhere(&self, elsewhere: &Elsewhere) {
        self.sessions.forget_routes(&elsewhere.names);
    }

    /// The same for a replica that cannot be reached, though it may live.
    pub fn missed_elsewhere(self: &Arc<Self>, elsewhere: &Elsewhere) {
        self.forget_elsewhere(elsewhere);
        self.missed_owner(&elsewhere.peer.replica, || elsewhere.names.clone());
    }
}

/// A call that is to be made again can go no further.
fn moved() -> RpcError {
    let message = "The call was to be made again in a session that has moved to another replica meanwhile; it did not \
                   run. Send the request anew without requestState.";
    RpcError::new(Code::Internal, "call_lost", message)
}
