//! The servers' side of `subscriptions/listen`: one upstream listen for each link to a modern server, for all who
//! want something of it.
//!
//! Who wants something holds a [`Wanted`] for as long as it does; the listen asks for what all of them want
//! together, and is changed by opening the new one before the old one is closed (N6, X9). When it breaks it is made
//! anew, and everyone is told of what may have been missed (N8, T63).

mod ear;
mod interest;
mod standing;

use std::sync::{Arc, Weak};

use tokio::time::Instant;

use self::standing::Standing;
use super::{Relay, Session};
use crate::protocol::error::{Code, Layer, RpcError};
use crate::protocol::listen::{Filter, Lists};
use crate::session::SessionId;
use crate::settings::ServerSettings;
use crate::settings::servers::{Isolation, TransportSettings};
use crate::store::Registry;
use crate::upstream::{Delivery, Failure};

pub(super) use interest::{SessionLists, list_of};

/// All upstream listens.
#[derive(Default)]
pub(super) struct Listens(Registry<Place, Arc<Standing>>);

/// Whose link is listened to, and which server is at its end.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Place {
    whose: Whose,
    server: Arc<str>,
}

/// Whose link is listened to.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Whose {
    /// One that all sessions of a tenant share.
    Tenant(Option<Box<str>>),
    /// A child of one session.
    Session(SessionId),
}

/// What somebody wants to hear of a modern server, for as long as this lives.
#[must_use]
pub(super) struct Wanted {
    standing: Arc<Standing>,
    filter: Filter,
    /// The state of the interest that has it in.
    version: u64,
}

// === impl Relay ===

impl Relay {
    /// Has a modern server listened to for `filter`, on behalf of a session.
    pub(super) fn want(
        self: &Arc<Self>,
        session: &Arc<Session>,
        server: &Arc<ServerSettings>,
        filter: &Filter,
    ) -> Wanted {
        let whose = whose(session, server);
        let place = Place { whose: whose.clone(), server: server.name.as_str().into() };
        let owner = match &whose {
            Whose::Session(_) => Arc::downgrade(session),
            Whose::Tenant(_) => Weak::new(),
        };
        loop {
            let new = || Arc::new(Standing::new(whose.clone(), owner.clone(), server.clone()));
            let standing = self.listens.0.get_or_insert_with(place.clone(), new);
            if Arc::ptr_eq(&standing.server, server)
                && let Some((filter, version)) = standing.want(filter, self)
            {
                return Wanted { standing, filter, version };
            }
            if !self.catalog.knows(server) {
                // Who comes with settings of before must not end what others have of the server as it is now: it gets
                // one of its own, which ends at once.
                let standing = new();
                if let Some((filter, version)) = standing.want(filter, self) {
                    return Wanted { standing, filter, version };
                }
            }
            // It is ending, or is one to the server as it was configured before.
            self.forget_listen(&place, &standing);
        }
    }

    /// Has a modern server listened to for one resource, on behalf of a session; resolves once the server has
    /// acknowledged it. Dropping what it gives takes it back.
    ///
    /// # Errors
    /// If the server does not acknowledge it within `timeouts.list`.
    pub(super) async fn want_uri(
        self: &Arc<Self>,
        session: &Arc<Session>,
        server: &Arc<ServerSettings>,
        uri: &str,
    ) -> Result<Wanted, RpcError> {
        let uri: Arc<str> = uri.into();
        let filter = Filter { lists: Lists::default(), uris: [uri.clone()].into() };
        let wanted = self.want(session, server, &filter);
        match wanted.accepted(Instant::now() + server.timeouts.list).await {
            Ok(accepted) if accepted.uris.contains(&uri) => Ok(wanted),
            Ok(_) => {
                let name = &server.name;
                let message = format!("Server `{name}` does not tell of updates of this resource.");
                Err(RpcError::new(Code::InvalidParams, "not_subscribable", message).at(name, Layer::Call))
            }
            Err(failure) => {
                let error = RpcError::new(Code::Internal, failure.reason, failure.message);
                Err(error.at(&failure.server, failure.layer))
            }
        }
    }

    /// Forgets an upstream listen that nobody wants any more.
    fn forget_listen(&self, place: &Place, standing: &Arc<Standing>) {
        if self.listens.0.get(place).is_some_and(|now| Arc::ptr_eq(&now, standing)) {
            self.listens.0.remove(place);
        }
    }
}

/// Whose link a session uses for `server`: a modern HTTP server keeps no session, so all of a tenant share one.
fn whose(session: &Session, server: &ServerSettings) -> Whose {
    match (server.isolation, &server.transport) {
        (Isolation::Session, TransportSettings::Stdio(_)) => Whose::Session(session.id.clone()),
        (Isolation::Shared { .. }, _) | (_, TransportSettings::Http(_)) => {
            Whose::Tenant(session.attached.tenant.clone())
        }
    }
}

// === impl Wanted ===

impl Wanted {
    /// Whether it is wanted of this very server, as it is configured now.
    pub(super) fn is_of(&self, server: &Arc<ServerSettings>) -> bool {
        Arc::ptr_eq(&self.standing.server, server)
    }

    /// Has the lists of the server read again: it could not be heard for a while.
    pub(super) fn reread_lists(&self, relay: &Arc<Relay>) {
        self.standing.reread_lists(relay);
    }

    /// What the server has acknowledged of it, as soon as it has; waits until `deadline` at most.
    ///
    /// # Errors
    /// [`Failure`] if the server cannot be listened to for all of it.
    pub(super) async fn accepted(&self, deadline: Instant) -> Result<Filter, Failure> {
        let server = &self.standing.server;
        let limit = server.timeouts.list;
        let mut answers = self.standing.answers();
        let settled = answers.wait_for(|answer| answer.version >= self.version);
        match tokio::time::timeout_at(deadline, settled).await {
            Ok(Ok(answer)) => answer.to(&self.filter),
            Ok(Err(_)) | Err(_) => {
                let name = server.name.clone();
                let message = format!(
                    "Server `{name}` did not acknowledge subscriptions/listen within {limit:?} (timeouts.list)."
                );
                let (layer, delivery) = (Layer::Call, Delivery::Unknown);
                Err(Failure { server: name, layer, reason: "timed_out", message, delivery })
            }
        }
    }
}

impl Drop for Wanted {
    fn drop(&mut self) {
        self.standing.release(&self.filter);
    }
}
