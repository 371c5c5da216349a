//! Where a caller's session is: here, adopted if need be, or at another replica.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::initialize::greeting_of;
use super::{Caller, Conversation, Relay, Session, extensions};
use crate::catalog::Endpoint;
use crate::protocol::revision::Revision;
use crate::session::live::Greeting;
use crate::session::{AdoptError, Adoptable, Binding, Located, Owner, SessionId, Unlocated};
use crate::store::{Epoch, Flight, Record, Registry, ReplicaId, SessionKey, StoreError};
use crate::telemetry::metrics::cluster::Transfer;

/// Adoptions that are under way: one for all who ask for the session.
pub(super) type Adopting = Registry<SessionId, Flight<Result<Arc<Session>, AdoptError>>>;

/// Where a caller's session is.
pub enum Whereabouts {
    /// Here.
    Here(Arc<Session>),
    /// At another replica.
    At(Owner),
    /// Nowhere: 404.
    Nowhere,
}

/// Where a session was that its caller ended.
#[derive(Debug)]
pub enum EndedAt {
    /// There was none: 404.
    Nowhere,
    /// Here, or at nobody who lives.
    Here,
    /// At this replica.
    Owner(Owner),
}

/// Why it cannot be served: 503.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Unplaced {
    /// It cannot be said where it is.
    #[error(transparent)]
    Unlocated(#[from] Unlocated),
    /// It cannot be taken over.
    #[error(transparent)]
    NotAdopted(#[from] AdoptError),
}

// === impl Unplaced ===

impl Unplaced {
    /// The word in errors.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Unlocated(Unlocated::Store(error)) | Self::NotAdopted(AdoptError::Store(error)) => {
                match error {
                    StoreError::Unreachable => "store_unreachable",
                    StoreError::Unreadable => "record_unreadable",
                    StoreError::Gone | StoreError::Fenced => "session_moving",
                }
            }
            Self::Unlocated(Unlocated::NoLease(_)) | Self::NotAdopted(AdoptError::NoLease(_)) => "no_lease",
            Self::Unlocated(Unlocated::Forgetful) => "store_begun_anew",
            Self::NotAdopted(AdoptError::Raced) => "session_moving",
            Self::NotAdopted(AdoptError::Unknown) => "record_unreadable",
        }
    }
}

/// How long an owner cannot be reached before it is asked to give a session up.
const UNREACHED: Duration = Duration::from_secs(10);
/// How often it is looked again where a session is when others took it meanwhile.
const LOOKS: usize = 4;

// === impl Relay ===

impl Relay {
    /// Where the caller's session of this id at this endpoint is; for everyone else there is none. One whose owner is
    /// gone is taken over here. `dead` is an owner that was proven dead.
    ///
    /// # Errors
    /// [`Unplaced`]
    pub async fn whereabouts(
        self: &Arc<Self>,
        id: &SessionId,
        caller: &Caller,
        endpoint: &Arc<Endpoint>,
        dead: Option<&ReplicaId>,
    ) -> Result<Whereabouts, Unplaced> {
        let binding = Binding { principal: caller.binding, endpoint: endpoint.path.clone() };
        for _ in 0..LOOKS {
            let found = match self.sessions.locate(id, &binding, dead).await? {
                Located::Here(session) => return Ok(Whereabouts::Here(session)),
                Located::At(owner) => return Ok(Whereabouts::At(owner)),
                Located::Nowhere => return Ok(Whereabouts::Nowhere),
                Located::Free(found) => found,
            };
            match self.adopt(id, found, &binding, caller, endpoint).await {
                Ok(session) => return Ok(Whereabouts::Here(session)),
                Err(AdoptError::Raced) => self.metrics.cluster().transferred(Transfer::Raced),
                Err(other) => return Err(other.into()),
            }
        }
        Err(AdoptError::Raced.into())
    }

    /// The caller's session if it is owned here in this epoch: what a peer that forwards asks for.
    ///
    /// # Errors
    /// [`Unplaced`]
    pub async fn owned_here(
        self: &Arc<Self>,
        id: &SessionId,
        caller: &Caller,
        endpoint: &Arc<Endpoint>,
        epoch: Epoch,
    ) -> Result<Option<Arc<Session>>, Unplaced> {
        let binding = Binding { principal: caller.binding, endpoint: endpoint.path.clone() };
        if let Some(session) = self.sessions.owned_in(id, &binding, epoch).await.map_err(Unlocated::from)? {
            return Ok((!session.is_retired()).then_some(session));
        }
        let Some(found) = self.sessions.left_here(id, &binding).await.map_err(Unlocated::from)? else {
            return Ok(None);
        };
        match self.adopt(id, found, &binding, caller, endpoint).await {
            Ok(session) => Ok(Some(session)),
            Err(AdoptError::Raced) => Ok(None),
            Err(other) => Err(other.into()),
        }
    }

    /// Whether the caller has a session of this id, wherever it is, as far as can be told.
    pub async fn is_session(&self, id: &SessionId, caller: &Caller, endpoint: &Endpoint) -> bool {
        let binding = Binding { principal: caller.binding, endpoint: endpoint.path.clone() };
        matches!(self.sessions.locate(id, &binding, None).await, Ok(found) if !matches!(found, Located::Nowhere))
    }

    /// Ends a session at its caller's word, whoever owns it. An owner that is another replica is to be told before the
    /// caller has its answer, or it might serve the session once more.
    ///
    /// # Errors
    /// [`Unplaced`]
    ///
    /// # Cancellation
    /// What was begun is done: many callers hang up behind their DELETE.
    pub async fn end_at_word(
        self: &Arc<Self>,
        id: &SessionId,
        caller: &Caller,
        endpoint: &Endpoint,
    ) -> Result<EndedAt, Unplaced> {
        let binding = Binding { principal: caller.binding, endpoint: endpoint.path.clone() };
        let located = self.sessions.locate(id, &binding, None).await?;
        let (relay, id) = (self.clone(), id.clone());
        let ended = self.tasks.spawn(async move {
            match located {
                Located::Here(session) => relay.sessions.delete(&session).await.map(|()| EndedAt::Here),
                Located::Nowhere => Ok(EndedAt::Nowhere),
                Located::At(owner) => Ok(relay.remove(&id).await?.map_or(EndedAt::Nowhere, |record| {
                    let its =
                        record.owner.as_ref() == Some(&owner.peer.replica) && record.epoch == owner.epoch;
                    if its { EndedAt::Owner(owner) } else { EndedAt::Here }
                })),
                Located::Free(_) => Ok(relay.remove(&id).await?.map_or(EndedAt::Nowhere, |_| EndedAt::Here)),
            }
        });
        match ended.await {
            Ok(ended) => Ok(ended.map_err(Unlocated::from)?),
            // It ended by a panic, which is told elsewhere.
            Err(_) => Err(Unlocated::from(StoreError::Unreachable).into()),
        }
    }

    /// Removes a session that is not here from the store, and takes leave of its servers.
    async fn remove(&self, id: &SessionId) -> Result<Option<Record>, StoreError> {
        Ok(self.sessions.remove(id).await?.inspect(|record| self.take_leave(record)))
    }

    /// A peer has ended the caller's session, which this replica owned.
    pub fn ended_by_peer(&self, id: &SessionId, caller: &Caller, endpoint: &Endpoint) {
        let binding = Binding { principal: caller.binding, endpoint: endpoint.path.clone() };
        self.sessions.ended_by_peer(id, &binding);
    }

    /// Tells the servers of a session that ended elsewhere, in the background.
    pub(super) fn take_leave(&self, record: &Record) {
        for (name, state) in &record.servers {
            let Some(server) = self.catalog.server(name) else { continue };
            let (connector, state) = (self.connector.clone(), state.clone());
            self.tasks.spawn(async move { connector.end_session(&server, &state).await });
        }
    }

    /// Forgets who owns a session: a peer said that it does not.
    pub fn forget_owner(&self, id: &SessionId) {
        self.sessions.forget_route(id);
    }

    /// Notes that a replica was reached.
    pub fn reached(&self, owner: &ReplicaId) {
        if !self.missed.is_empty() {
            self.missed.remove(owner);
        }
    }

    /// Notes that a session's owner cannot be reached, though it may live: after [`UNREACHED`] it is asked for the session
    /// through the store.
    pub fn missed(self: &Arc<Self>, owner: &ReplicaId, id: &SessionId) {
        self.missed_owner(owner, || self.sessions.names(id));
    }

    /// The same for sessions that the store knows by these names.
    pub(super) fn missed_owner(self: &Arc<Self>, owner: &ReplicaId, names: impl FnOnce() -> Vec<SessionKey>) {
        let now = Instant::now();
        let since = self.missed.get_or_insert_with(owner.clone(), || now);
        // What was missed long ago says nothing of now.
        if now.duration_since(since) > UNREACHED * 6 {
            self.missed.insert(owner.clone(), now);
        } else if now.duration_since(since) > UNREACHED {
            let (relay, names) = (self.clone(), names());
            self.tasks.spawn(async move { relay.sessions.ask_for(names).await });
        }
    }

    /// Takes over a session that is free, once for all who wait for it.
    async fn adopt(
        self: &Arc<Self>,
        id: &SessionId,
        found: Adoptable,
        binding: &Binding,
        caller: &Caller,
        endpoint: &Arc<Endpoint>,
    ) -> Result<Arc<Session>, AdoptError> {
        let flight = self.adopting.get_or_insert_with(id.clone(), || {
            let (relay, id, binding) = (self.clone(), id.clone(), binding.clone());
            let (caller, endpoint) = (caller.clone(), endpoint.clone());
            Flight::begin(&self.tasks, |own| async move {
                let tasks = relay.tasks.clone();
                let tenant = caller.principal.tenant.clone();
                let revive = |record: &Record, epoch: Epoch| {
                    let greeting = greeting(record, &endpoint)?;
                    let conversation =
                        Conversation::new(tenant, epoch.0, tasks).at_servers(record.servers.clone());
                    Some((greeting, conversation, record.subscriptions.clone()))
                };
                let mut subscriptions = Default::default();
                let adopted = relay
                    .sessions
                    .adopt(id.clone(), found, binding, caller.cap, |record, epoch| {
                        let (greeting, conversation, uris) = revive(record, epoch)?;
                        subscriptions = uris;
                        Some((greeting, conversation))
                    })
                    .await;
                relay.adopting.remove_if(&id, |flight| flight.is(&own));
                let session = adopted?;
                relay.subscribe_again(&session, &endpoint, subscriptions).await;
                Ok(session)
            })
        });
        flight.landed().await.unwrap_or(Err(AdoptError::Raced))
    }
}

/// What the caller of a stored session said.
fn greeting(record: &Record, endpoint: &Endpoint) -> Option<Greeting> {
    let mut greeting = greeting_of(&record.initialize).ok()?;
    greeting.revision = Revision::legacy(&record.revision).ok()?;
    greeting.capabilities = extensions::admitted(endpoint, &greeting.capabilities);
    Some(greeting)
}
