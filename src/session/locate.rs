//! Where a session is: here, at another replica, free to be adopted, or nowhere.

use std::sync::Arc;

use super::live::Attachment;
use super::membership::Company;
use super::routes::{Owner, Peer, Route};
use super::sessions::NoLease;
use super::{Binding, Session, SessionId, Sessions};
use crate::store::{Epoch, Record, ReplicaId, SessionKey, StoreError};

/// Where a session is.
#[derive(Debug)]
pub enum Located<A> {
    /// Here, and its caller is served.
    Here(Arc<Session<A>>),
    /// At another replica that lives, as far as is known.
    At(Owner),
    /// Nobody lives who owns it.
    Free(Adoptable),
    /// Nowhere: it ended or never was, or belongs to somebody else (case-I01).
    Nowhere,
}

/// A session that may be adopted.
#[derive(Debug)]
pub struct Adoptable {
    pub(super) key: SessionKey,
    pub(super) record: Record,
    pub(super) why: Free,
}

/// Why a session is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Free {
    /// Its owner gave it up, is proven dead, or is this replica, which does not have it.
    Surely,
    /// Its owner had no lease when it was looked for.
    Lapsed,
}

/// Why it cannot be said where a session is: 503, never 404.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unlocated {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// This replica's lease is not held.
    #[error(transparent)]
    NoLease(#[from] NoLease),
    /// The store lost what it held not long ago, and owners write their sessions again.
    #[error(
        "the session store has begun anew not long ago, and replicas are writing their sessions to it again; try again in a moment"
    )]
    Forgetful,
}

// === impl Sessions ===

impl<A: Attachment> Sessions<A> {
    /// Where the session of this id is, if it belongs to `binding`. A session that is here counts as active. `dead` is
    /// an owner that was proven dead, whatever its lease says.
    ///
    /// # Errors
    /// [`Unlocated`]
    pub async fn locate(
        &self,
        id: &SessionId,
        binding: &Binding,
        dead: Option<&ReplicaId>,
    ) -> Result<Located<A>, Unlocated> {
        let held = self.membership.tenure.is_held();
        if let Some(session) = self.find(id, binding).await {
            // Another may have adopted it by now.
            return if held { Ok(Located::Here(session)) } else { Err(NoLease.into()) };
        }
        if matches!(self.membership.company, Company::Alone) {
            return Ok(Located::Nowhere);
        }
        let routed = |route: Arc<Route>| {
            if binding.is(route.binding, &route.endpoint) {
                Located::At(route.owner.clone())
            } else {
                Located::Nowhere
            }
        };
        if let Some(route) = self.routes.by_id(id).filter(|_| dead.is_none()) {
            return Ok(routed(route));
        }
        let keys = self.membership.keys.of(id);
        if dead.is_none()
            && let Some((name, route)) = keys.iter().find_map(|key| Some((key, self.routes.get(key)?)))
        {
            self.routes.name(id.clone(), name.clone());
            return Ok(routed(route));
        }
        let Some((key, record)) = self.load_any(keys).await? else {
            return if self.believes_store().await? {
                Ok(Located::Nowhere)
            } else {
                Err(Unlocated::Forgetful)
            };
        };
        if !binding.is(record.binding, &record.endpoint) {
            return Ok(Located::Nowhere);
        }
        self.owned(key, record, dead).await
    }

    /// The session of this id if it is owned here in this epoch: what a peer asks for.
    pub async fn owned_in(
        &self,
        id: &SessionId,
        binding: &Binding,
        epoch: Epoch,
    ) -> Result<Option<Arc<Session<A>>>, NoLease> {
        let session = self.find(id, binding).await.filter(|session| session.epoch == epoch);
        if session.is_some() && !self.membership.tenure.is_held() { Err(NoLease) } else { Ok(session) }
    }

    /// The session of this id if the store says that it is owned here, and it is not: something failed when it was
    /// taken over or given up. Its next request takes it up again, also one that a peer sends.
    ///
    /// # Errors
    /// [`StoreError`]
    pub async fn left_here(
        &self,
        id: &SessionId,
        binding: &Binding,
    ) -> Result<Option<Adoptable>, StoreError> {
        let Some((key, record)) = self.load_any(self.names(id)).await? else { return Ok(None) };
        let its = binding.is(record.binding, &record.endpoint);
        let ours = record.owner.as_ref() == Some(&self.membership.replica);
        let found = Adoptable { key, record, why: Free::Surely };
        Ok((its && ours && self.live.get(id).is_none()).then_some(found))
    }

    /// The record that the store has under one of these names, the first that it has.
    pub(super) async fn load_any(
        &self,
        names: Vec<SessionKey>,
    ) -> Result<Option<(SessionKey, Record)>, StoreError> {
        for name in names {
            if let Some(record) = self.stores.sessions.load(name.clone()).await? {
                return Ok(Some((name, record)));
            }
        }
        Ok(None)
    }

    /// Another replica, if it lives.
    ///
    /// # Errors
    /// [`Unlocated`]
    pub async fn peer(&self, replica: &ReplicaId) -> Result<Option<Peer>, Unlocated> {
        match self.stores.leases.find(replica.clone()).await? {
            Some(lease) => Ok(Some(lease.into())),
            None if self.believes_store().await? => Ok(None),
            None => Err(Unlocated::Forgetful),
        }
    }

    /// Forgets who owns a session: a peer said that it does not.
    pub fn forget_route(&self, id: &SessionId) {
        self.forget_routes(&self.names(id));
    }

    /// The same for a session of any of these names.
    pub fn forget_routes(&self, names: &[SessionKey]) {
        names.iter().for_each(|name| self.routes.forget(name));
    }

    /// What the store may know the session of this id by.
    pub fn names(&self, id: &SessionId) -> Vec<SessionKey> {
        self.membership.keys.of(id)
    }

    pub(super) async fn owned(
        &self,
        key: SessionKey,
        record: Record,
        dead: Option<&ReplicaId>,
    ) -> Result<Located<A>, Unlocated> {
        self.routes.forget(&key);
        let free = |key, record, why| Ok(Located::Free(Adoptable { key, record, why }));
        let Some(owner) = record.owner.clone() else { return free(key, record, Free::Surely) };
        // One that this replica owns and does not have was lost when a write was refused; it takes it up again.
        if owner == self.membership.replica || dead == Some(&owner) {
            return free(key, record, Free::Surely);
        }
        let Some(lease) = self.stores.leases.find(owner.clone()).await? else {
            return free(key, record, Free::Lapsed);
        };
        let owner = Owner { peer: lease.into(), epoch: record.epoch };
        self.routes.keep(key, owner.clone(), record.binding, record.endpoint);
        Ok(Located::At(owner))
    }
}
