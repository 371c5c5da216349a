//! Giving sessions up: to whoever adopts them next, or because another replica has done so.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast;

use super::live::Attachment;
use super::{Binding, EndReason, Session, SessionId, Sessions};
use crate::store::change_bus::Changed;
use crate::store::{Epoch, Record, SessionKey, StoreError};

/// How long the store may take to note the last events of a session that is given up.
const SETTLED_WITHIN: Duration = Duration::from_secs(1);
/// How many epochs are asked for at a time.
const PAGE: usize = 256;

/// What it means that the store does not have a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Absent {
    /// It was ended.
    Ended,
    /// The same, if the store can be believed.
    Unsure,
    /// The store lost what it held: the session is written to it again.
    Forgotten,
}

// === impl Sessions ===

impl<A: Attachment> Sessions<A> {
    /// Gives a session up if nothing runs in it: its next request adopts it, wherever it comes. `false` if something
    /// runs, or the store does not take it.
    pub async fn release(&self, session: &Arc<Session<A>>) -> bool {
        let Some(key) = session.store_key() else { return false };
        if !session.retire() {
            return false;
        }
        // Whoever goes on with it finds all that its streams were given.
        if let Some(journal) = session.streams.journal() {
            let _ = tokio::time::timeout(SETTLED_WITHIN, journal.settled()).await;
        }
        self.write_cursors(session, SETTLED_WITHIN).await;
        if !self.part_with(session, EndReason::Released) {
            return false;
        }
        match self.stores.sessions.release(key.clone(), session.epoch).await {
            Ok(()) => true,
            Err(StoreError::Gone | StoreError::Fenced) => true,
            Err(error) => {
                // It is adopted once this replica's lease is gone.
                tracing::debug!(session.id = session.id.short_hash(), %error, "not released");
                false
            }
        }
    }

    /// A peer cannot reach this replica and asks for a session: it is given up if nothing runs in it.
    pub async fn give_up(&self, key: &SessionKey) {
        match self.by_store_name.find(key) {
            Some(session) if session.is_implicit() => {
                self.end_if_idle(&session, EndReason::Released).await;
            }
            Some(session) => drop(self.release(&session).await),
            None => {}
        }
    }

    /// Removes a session that is not here, for good: its record and log. Gives its record, if there was one.
    ///
    /// # Errors
    /// [`StoreError`]
    pub async fn remove(&self, id: &SessionId) -> Result<Option<Record>, StoreError> {
        for key in self.membership.keys.of(id) {
            if let Some(record) = self.stores.sessions.remove(key.clone()).await? {
                self.routes.forget(&key);
                // Its owner hears of it at the latest by a refused write.
                let _ = self.stores.bus.publish(Changed::SessionEnded(key)).await;
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// Asks the owner of the session of one of these names to give it up, through the store.
    pub async fn ask_for(&self, names: Vec<SessionKey>) {
        for key in names {
            self.tell(Changed::Wanted(key)).await;
        }
    }

    /// A session was ended by another replica's hand.
    pub fn ended_elsewhere(&self, key: &SessionKey) {
        self.routes.forget(key);
        if let Some(session) = self.by_store_name.find(key) {
            self.part_with(&session, EndReason::EndedElsewhere);
        }
    }

    /// The same for the session of this id, if it is here and belongs to `binding`.
    pub fn ended_by_peer(&self, id: &SessionId, binding: &Binding) {
        if let Some(session) = self.live.get(id).filter(|session| session.binding == *binding) {
            self.part_with(&session, EndReason::EndedElsewhere);
        }
    }

    /// Another replica owns a session since this epoch.
    pub fn adopted_elsewhere(&self, key: &SessionKey, epoch: Epoch) {
        self.routes.forget(key);
        let earlier = |session: &Arc<Session<A>>| session.stored().is_some_and(|(_, own)| own < epoch);
        if let Some(session) = self.by_store_name.find(key).filter(earlier) {
            self.part_with(&session, EndReason::Lost);
        }
    }

    /// What is told on the bus from now on.
    pub fn changes(&self) -> broadcast::Receiver<Changed> {
        self.stores.bus.subscribe()
    }

    /// Tells the other replicas; they look for themselves what they do not hear.
    pub async fn tell(&self, changed: Changed) {
        let _ = self.stores.bus.publish(changed).await;
    }

    /// Takes up to `most` sessions out of the store whose time is over, whoever owns them; gives their records.
    ///
    /// # Errors
    /// [`StoreError`]
    pub async fn take_expired(&self, most: usize) -> Result<Vec<Record>, StoreError> {
        let expired = self.stores.sessions.take_expired(most).await?;
        let mut elsewhere = Vec::with_capacity(expired.len());
        for (key, record) in expired {
            match self.by_store_name.find(&key) {
                // Its links take leave themselves.
                Some(session) => {
                    let reason = self.expired(&session).unwrap_or(EndReason::Idle);
                    self.part_with(&session, reason);
                }
                None => elsewhere.push(record),
            }
            let _ = self.stores.bus.publish(Changed::SessionEnded(key)).await;
        }
        Ok(elsewhere)
    }

    /// Looks whether the sessions here are still owned here, and parts with those that are not, at the times at which
    /// the store is not about to be found new.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be asked; what was not looked at stays as it is.
    pub async fn look_after(&self) -> Result<(), StoreError> {
        let forgotten = self.membership.tenure.is_forgetful();
        self.reconcile(if forgotten { Absent::Forgotten } else { Absent::Unsure }).await
    }

    /// Whether what the store does not have is no more. Not if it may have begun anew since the last heartbeat: the
    /// next one writes it again. A store that holds this replica's lease has not.
    ///
    /// # Errors
    /// [`StoreError`]
    pub(super) async fn believes_store(&self) -> Result<bool, StoreError> {
        let tenure = &self.membership.tenure;
        if tenure.is_unverified() || tenure.is_forgetful() {
            return Ok(false);
        }
        Ok(self.stores.leases.find(self.membership.replica.clone()).await?.is_some())
    }

    /// Looks whether the sessions here are still owned here, and parts with those that are not.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be asked or believed; what was not looked at stays as it is.
    pub(super) async fn reconcile(&self, absent: Absent) -> Result<(), StoreError> {
        let live: Vec<_> = self.all().into_iter().filter(|session| session.stored().is_some()).collect();
        for page in live.chunks(PAGE) {
            let stored = |session: &Arc<Session<A>>| session.stored().map(|(key, own)| (key.clone(), own));
            let keyed: Vec<_> = page
                .iter()
                .filter_map(|session| stored(session).map(|(key, own)| (session, key, own)))
                .collect();
            let epochs =
                self.stores.sessions.epochs(keyed.iter().map(|(_, key, _)| key.clone()).collect()).await?;
            let some_absent = epochs.iter().any(Option::is_none);
            if absent == Absent::Unsure && some_absent && !self.believes_store().await? {
                return Err(StoreError::Unreachable);
            }
            for ((session, key, own), epoch) in keyed.into_iter().zip(epochs) {
                match epoch {
                    Some(epoch) if epoch == own => {}
                    None if absent == Absent::Forgotten => self.write_again(session, key).await?,
                    None | Some(_) => {
                        self.part_with(session, EndReason::Lost);
                    }
                }
            }
        }
        Ok(())
    }

    async fn write_again(&self, session: &Arc<Session<A>>, key: SessionKey) -> Result<(), StoreError> {
        if session.ended.is_cancelled() {
            return Ok(());
        }
        let Some((_, own)) = session.stored() else { return Ok(()) };
        match self.stores.sessions.create(key.clone(), self.record_of(session)).await {
            Err(StoreError::Fenced) => {
                let held = self.stores.sessions.load(key).await?;
                let is_ours = |held: &Record| {
                    held.epoch == own && held.owner.as_ref() == Some(&self.membership.replica)
                };
                // If it is not what was written a moment ago, somebody adopted that.
                if !held.as_ref().is_some_and(is_ours) {
                    self.part_with(session, EndReason::Lost);
                }
                Ok(())
            }
            other => other,
        }
    }

    /// What a live session's record says.
    fn record_of(&self, session: &Session<A>) -> Record {
        if let Some(owned) = session.owned.get() {
            return self.record_of_implicit(session, owned.epoch);
        }
        Record {
            binding: session.binding.principal,
            endpoint: session.binding.endpoint.as_ref().into(),
            initialize: session.greeting.params.clone(),
            revision: session.greeting.revision.as_str().into(),
            initialized: session.is_initialized(),
            log_level: session.log_level(),
            subscriptions: session.attached.subscriptions(),
            servers: session.attached.servers(),
            lifetime: self.lifetime(),
            age: session.age(),
            idle_for: session.idle_for(),
            owner: Some(self.membership.replica.clone()),
            epoch: session.epoch,
        }
    }
}
