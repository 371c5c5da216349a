//! Implicit sessions that one replica has for all: their servers keep state between calls, so that every call of
//! theirs must come to the same links.
//!
//! The store has a record of each, under a name made of whom it is for, that says who owns it; nothing else is kept
//! there. An owner that ends one gives the record up, and its next request makes a fresh one wherever it comes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::live::Attachment;
use super::locate::{Adoptable, Located, Unlocated};
use super::routes::Owner;
use super::sessions::NoLease;
use super::{AdoptError, EndReason, Session, Sessions};
use crate::store::{Epoch, Lifetime, Record, ReplicaId, SessionKey, StoreError};
use crate::telemetry::metrics::cluster::Transfer;

/// How the store knows an implicit session that this replica owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owned {
    pub(super) key: SessionKey,
    pub(super) epoch: Epoch,
}

/// Who owns an implicit session that is not owned here.
#[derive(Debug)]
pub enum Ownership {
    /// Another replica, which lives as far as is known.
    Of(Owner),
    /// Nobody who lives; what the store has of it, if anything.
    Nobodys(Option<Adoptable>),
}

/// An implicit session has no end of its own but idleness; the store wants one.
const MOST_AGE: Duration = Duration::from_hours(365 * 24);

// === impl Sessions ===

impl<A: Attachment> Sessions<A> {
    /// The epoch in which this replica owns an implicit session; none if it does not, or does not know any more.
    ///
    /// # Errors
    /// [`NoLease`] if another may own it already.
    pub fn owns(&self, session: &Session<A>) -> Result<Option<Epoch>, NoLease> {
        match session.owned.get() {
            Some(_) if !self.membership.tenure.is_held() => Err(NoLease),
            Some(owned) => Ok(Some(owned.epoch)),
            None => Ok(None),
        }
    }

    /// Ends an implicit session that another replica has taken over; `false` if none has.
    pub fn end_if_lost(&self, session: &Arc<Session<A>>) -> bool {
        session.is_lost() && self.end_implicit(session, EndReason::Lost)
    }

    /// What the store may know an implicit session by.
    pub fn implicit_names(&self, session: &Session<A>) -> Vec<SessionKey> {
        session.implicit_place().map_or_else(Vec::new, |(key, _)| self.membership.keys.of_implicit(key))
    }

    /// Who owns an implicit session that is not owned here. `dead` is an owner that was proven dead.
    ///
    /// # Errors
    /// [`Unlocated`]
    pub async fn owner_of_implicit(
        &self,
        session: &Session<A>,
        dead: Option<&ReplicaId>,
    ) -> Result<Ownership, Unlocated> {
        if !self.membership.tenure.is_held() {
            return Err(NoLease.into());
        }
        let names = self.implicit_names(session);
        if dead.is_none()
            && let Some(route) = names.iter().find_map(|name| self.routes.get(name))
        {
            return Ok(Ownership::Of(route.owner.clone()));
        }
        if let Some((name, record)) = self.load_any(names).await? {
            return Ok(match self.owned(name, record, dead).await? {
                Located::At(owner) => Ownership::Of(owner),
                Located::Free(found) => Ownership::Nobodys(Some(found)),
                Located::Here(_) | Located::Nowhere => Ownership::Nobodys(None),
            });
        }
        if self.believes_store().await? { Ok(Ownership::Nobodys(None)) } else { Err(Unlocated::Forgetful) }
    }

    /// Takes an implicit session that nobody owns. Run by one at a time for each session.
    ///
    /// # Errors
    /// [`AdoptError`]
    pub async fn own(&self, session: &Arc<Session<A>>, found: Option<Adoptable>) -> Result<(), AdoptError> {
        if session.owned.get().is_some() {
            return Ok(());
        }
        let owned = match found {
            Some(found) => self.own_again(found).await?,
            None => {
                let Some((implicit, _)) = session.implicit_place() else { return Err(AdoptError::Unknown) };
                let key = self.membership.keys.of_new_implicit(implicit);
                let record = self.record_of_implicit(session, Epoch::FIRST);
                self.stores.sessions.create(key.clone(), record).await?;
                Owned { key, epoch: Epoch::FIRST }
            }
        };
        let _ = session.owned.set(owned);
        self.by_store_name.put(session);
        // If it ended meanwhile, nobody saw what is to be given up.
        if session.ended.is_cancelled() {
            self.by_store_name.take(session);
            self.disown(session);
            return Err(AdoptError::Raced);
        }
        Ok(())
    }

    /// Takes over the record that an earlier owner left.
    async fn own_again(&self, found: Adoptable) -> Result<Owned, AdoptError> {
        let (key, epoch) = self.claim(found).await?;
        self.metrics.cluster().transferred(Transfer::Adopted);
        tracing::info!(epoch = epoch.0, "took an implicit session over");
        Ok(Owned { key, epoch })
    }

    /// Gives up the record of an implicit session that ended here, in the background: its next request is served
    /// wherever it comes.
    pub(super) fn disown(&self, session: &Session<A>) {
        let Some(Owned { key, epoch }) = session.owned.get().cloned() else { return };
        let store = self.stores.sessions.clone();
        self.tasks.spawn(async move {
            match store.release(key, epoch).await {
                Ok(()) | Err(StoreError::Gone | StoreError::Fenced) => {}
                // Whoever is sent here for it makes this replica take it up again, or it is adopted later.
                Err(error) => tracing::debug!(%error, "an implicit session was not released"),
            }
        });
    }

    /// What the store keeps of an implicit session.
    pub(super) fn record_of_implicit(&self, session: &Session<A>, epoch: Epoch) -> Record {
        Record {
            binding: session.binding.principal,
            endpoint: session.binding.endpoint.as_ref().into(),
            initialize: session.greeting.params.clone(),
            revision: session.greeting.revision.as_str().into(),
            initialized: false,
            log_level: None,
            subscriptions: BTreeSet::new(),
            servers: BTreeMap::new(),
            // The owner ends it when it is idle; it has left much earlier if the store has to.
            lifetime: Lifetime { idle: self.settings.implicit_idle * 2, max_age: MOST_AGE },
            age: Duration::ZERO,
            idle_for: Duration::ZERO,
            owner: Some(self.membership.replica.clone()),
            epoch,
        }
    }
}
