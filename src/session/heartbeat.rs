//! The heartbeat: this replica's lease is taken, extended, lost and taken again.

use std::sync::Arc;

use super::Sessions;
use super::live::Attachment;
use super::membership::Company;
use super::tenure::{Moment, Seen};
use crate::store::leases::{Counts, Lease};
use crate::store::{StoreError, lock};

/// How a heartbeat went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beat {
    /// The lease is held.
    Held,
    /// The store did not take it; the lease runs on while it lasts.
    Missed(StoreError),
}

/// What a heartbeat showed of the other replicas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeersSeen {
    /// What they say of themselves; as many as hold a lease.
    pub others: Arc<[Lease]>,
    /// How many of them have the same config.
    pub alike: usize,
}

// === impl Sessions ===

impl<A: Attachment> Sessions<A> {
    /// Takes or extends this replica's lease, and tells what it holds. Run by one task alone, one after the other.
    pub async fn beat(&self, counts: Counts) -> Beat {
        let Company::Peers(lease) = &self.membership.company else { return Beat::Held };
        let counts = Counts { sessions: self.len() as u64, ..counts };
        match self.extend(lease, counts).await {
            Ok(()) => Beat::Held,
            Err(error) => Beat::Missed(error),
        }
    }

    async fn extend(&self, lease: &Lease, counts: Counts) -> Result<(), StoreError> {
        let tenure = &self.membership.tenure;
        let asked = Moment::now();
        match self.stores.leases.extend(lease.replica.clone(), counts, tenure.lease()).await {
            Ok(generation) => {
                if tenure.extended(asked, generation) == Seen::Anew {
                    tracing::warn!(
                        "the session store began anew or is another server, and may have lost what it held; sessions that it does not have are written to it again"
                    );
                    self.reconcile(true).await?;
                }
            }
            Err(StoreError::Gone) => self.take(lease, counts).await?,
            Err(other) => return Err(other),
        }
        self.look_around().await
    }

    /// Takes the lease anew. What was owned before may have been adopted meanwhile: each session is looked at before
    /// anything is served.
    async fn take(&self, lease: &Lease, counts: Counts) -> Result<(), StoreError> {
        let tenure = &self.membership.tenure;
        tenure.lost();
        let asked = Moment::now();
        let lease = Lease { counts, ..lease.clone() };
        let generation = self.stores.leases.take(lease, tenure.lease()).await?;
        let anew = tenure.is_another(&generation);
        self.reconcile(anew).await?;
        tenure.extended(asked, generation);
        Ok(())
    }

    /// Takes note of what the others hold.
    async fn look_around(&self) -> Result<(), StoreError> {
        let all = self.stores.leases.all().await?;
        let Company::Peers(own) = &self.membership.company else { return Ok(()) };
        let others: Arc<[Lease]> = all.into_iter().filter(|lease| lease.replica != own.replica).collect();
        let alike = others.iter().filter(|lease| lease.config_hash == own.config_hash).count();
        self.metrics.cluster().config_mismatch(others.len() - alike);
        let elsewhere: u64 = others.iter().map(|lease| lease.counts.sessions).sum();
        self.caps.elsewhere(usize::try_from(elsewhere).unwrap_or(usize::MAX));
        *lock(&self.peers) = PeersSeen { others, alike };
        self.routes.forget_old();
        Ok(())
    }

    /// What the last heartbeat showed of the other replicas.
    pub fn peers_seen(&self) -> PeersSeen {
        lock(&self.peers).clone()
    }

    /// Ends callers' streams with `retry:`: this replica's lease is not held, so that another may own its sessions.
    pub fn step_back(&self) {
        for session in self.live.values() {
            session.streams.end_connections();
        }
    }

    /// Gives the lease up, at the end of the process.
    pub async fn leave(&self) {
        if matches!(self.membership.company, Company::Peers(_)) {
            self.membership.tenure.lost();
            let _ = self.stores.leases.give_up(self.membership.replica.clone()).await;
        }
    }
}
