//! Modern requests that belong to another replica: the one that holds their parked call, or owns the implicit session
//! that their server keeps state for.

use std::sync::Arc;

use super::Relay;
use crate::protocol::envelope::Request;
use crate::session::{Epoch, Peer, ReplicaId};
use crate::store::SessionKey;

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
