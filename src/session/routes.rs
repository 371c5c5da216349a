//! Which replica owns which session, as far as this one has asked: kept for one lease time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::SessionId;
use crate::store::leases::Lease;
use crate::store::{Epoch, Registry, ReplicaId, SessionKey};

/// A live owner of a session that is another replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Who it is.
    pub peer: Peer,
    /// Its epoch of the session.
    pub epoch: Epoch,
}

/// Another replica, as its lease shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Who it is.
    pub replica: ReplicaId,
    /// Where its peers reach it.
    pub address: Box<str>,
    /// Hash of the key it made at its start.
    pub key_hash: [u8; 32],
    /// Proves by the cluster key that hash and replica belong together.
    pub proof: [u8; 32],
}

/// The routes that are kept.
#[derive(Debug)]
pub(super) struct Routes {
    kept: Registry<SessionKey, Arc<Route>>,
    /// The names of sessions that were asked for by their ids: each call would sign its id to find its own.
    names: Registry<SessionId, SessionKey>,
    /// How long each is good for.
    good_for: Duration,
}

/// The way to a session.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) owner: Owner,
    /// Whom the session is bound to.
    pub(super) binding: [u8; 32],
    /// The endpoint it is bound to.
    pub(super) endpoint: Box<str>,
    until: Instant,
}

/// How many are kept; at the bound those that are too old go, and if none is, all: they are only a saving.
const MOST: usize = 65_536;

// === impl Peer ===

impl From<Lease> for Peer {
    fn from(lease: Lease) -> Self {
        let Lease { replica, address, key_hash, proof, .. } = lease;
        Self { replica, address, key_hash, proof }
    }
}

// === impl Routes ===

impl Routes {
    pub(super) fn new(good_for: Duration) -> Self {
        Self { kept: Registry::new(), names: Registry::new(), good_for }
    }

    /// The route to a session, if one is kept that is still good.
    pub(super) fn get(&self, key: &SessionKey) -> Option<Arc<Route>> {
        self.kept.get(key).filter(|route| Instant::now() < route.until)
    }

    /// The same by the session's id, if its name is known.
    pub(super) fn by_id(&self, id: &SessionId) -> Option<Arc<Route>> {
        self.get(&self.names.get(id)?)
    }

    /// Notes the name of a session whose route is kept. At the bound all names go: they are only a saving.
    pub(super) fn name(&self, id: SessionId, name: SessionKey) {
        if self.names.len() >= MOST {
            self.names.clear();
        }
        self.names.insert(id, name);
    }

    /// Keeps a route.
    pub(super) fn keep(&self, key: SessionKey, owner: Owner, binding: [u8; 32], endpoint: Box<str>) {
        if self.kept.len() >= MOST {
            self.forget_old();
            if self.kept.len() >= MOST {
                self.kept.clear();
            }
        }
        let until = Instant::now() + self.good_for;
        self.kept.insert(key, Arc::new(Route { owner, binding, endpoint, until }));
    }

    /// Forgets the route to a session.
    pub(super) fn forget(&self, key: &SessionKey) {
        self.kept.remove(key);
    }

    /// Forgets those that are too old.
    pub(super) fn forget_old(&self) {
        let now = Instant::now();
        self.kept.retain(|route| now < route.until);
        self.names.retain(|name| self.kept.get(name).is_some());
    }
}
