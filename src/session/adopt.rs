//! Taking a session over whose owner is gone.

use std::sync::Arc;

use super::live::{Attachment, Greeting, Place};
use super::locate::{Adoptable, Free};
use super::sessions::NoLease;
use super::{Binding, EndReason, PrincipalCap, Session, SessionId, Sessions, Streams};
use crate::store::change_bus::Changed;
use crate::store::{Epoch, Record, SessionKey, StoreError};
use crate::telemetry::metrics::cluster::Transfer;

/// Why a session was not adopted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdoptError {
    /// Another replica was faster, or the session ended: look again where it is.
    #[error("another replica took the session over first")]
    Raced,
    /// The store.
    #[error(transparent)]
    Store(StoreError),
    /// This replica's lease is not held, or not for long enough.
    #[error(transparent)]
    NoLease(#[from] NoLease),
    /// The record cannot be understood here.
    #[error("the session's record is one that this version of the gateway does not understand")]
    Unknown,
}

// === impl Sessions ===

impl<A: Attachment> Sessions<A> {
    /// Takes over a session that is free, for its caller; `revive` makes what else belongs to it from its record.
    ///
    /// # Errors
    /// [`AdoptError`]
    pub async fn adopt(
        &self,
        id: SessionId,
        found: Adoptable,
        binding: Binding,
        cap: PrincipalCap,
        revive: impl FnOnce(&Record, Epoch) -> Option<(Greeting, A)>,
    ) -> Result<Arc<Session<A>>, AdoptError> {
        let (key, epoch) = self.claim(found).await?;
        // From here on the store itself refuses what an earlier owner writes.
        let journal = self.journal(&key, epoch);
        journal.adopt().await?;
        // What was stored before the epoch changed is the last that was.
        let record = self.stores.sessions.load(key.clone()).await?.ok_or(AdoptError::Raced)?;
        let entries = journal.read_back().await?;
        let (greeting, attached) = revive(&record, epoch).ok_or(AdoptError::Unknown)?;
        let (settings, budget) = (self.stream_settings(), self.budget());
        let mut restored = Streams::restore(settings, greeting.revision, epoch, budget, entries, journal);
        // Nothing of what ran at the earlier owner can be answered here any more.
        restored.give_up(restored.unanswered.clone());
        let streams = restored.streams;
        self.caps.take_over(cap);
        let place = Place::Named(key, cap);
        let session = Session::new(id.clone(), binding, greeting, epoch, streams, place, attached);
        let session = Arc::new(session.restored(&record));
        session.touch();
        self.metrics.session_adopted(session.revision().as_str());
        self.metrics.cluster().transferred(Transfer::Adopted);
        tracing::info!(session.id = session.id.short_hash(), epoch = epoch.0, "took a session over");
        self.by_store_name.put(&session);
        if let Some(before) = self.live.insert(id, session.clone()) {
            // It was here in an earlier epoch, and lost meanwhile.
            if let Place::Named(_, cap) = &before.place {
                self.take_apart(&before, *cap, EndReason::Lost);
            }
        }
        Ok(session)
    }

    /// Becomes the owner of what is free, in the store.
    pub(super) async fn claim(&self, found: Adoptable) -> Result<(SessionKey, Epoch), AdoptError> {
        let tenure = &self.membership.tenure;
        // A replica that has just begun waits: its own lease must have been held for as long as any other's could go on.
        while let Some(rest) = tenure.until_adopting().filter(|rest| !rest.is_zero()) {
            tokio::time::sleep(rest).await;
        }
        if !tenure.may_adopt() {
            return Err(NoLease.into());
        }
        let Adoptable { key, record, why } = found;
        // Its owner may have its lease back by now, and would not look after its sessions again.
        if let (Free::Lapsed, Some(owner)) = (why, record.owner)
            && self.stores.leases.find(owner).await?.is_some()
        {
            return Err(AdoptError::Raced);
        }
        let replica = self.membership.replica.clone();
        let epoch = self.stores.sessions.adopt(key.clone(), record.epoch, replica).await?;
        // An owner that does not hear of it does so at the latest by a refused write.
        let _ = self.stores.bus.publish(Changed::Adopted { key: key.clone(), epoch }).await;
        Ok((key, epoch))
    }
}

// === impl AdoptError ===

impl From<StoreError> for AdoptError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Gone | StoreError::Fenced => Self::Raced,
            StoreError::Unreachable | StoreError::Unreadable => Self::Store(error),
        }
    }
}
