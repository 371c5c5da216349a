//! The heartbeat: this replica's lease is taken, extended, lost and taken again.

use std::sync::Arc;

use tokio::time::sleep;

use super::live::Attachment;
use super::membership::{Company, Said};
use super::others::{Others, Tally};
use super::release::Absent;
use super::tenure::Moment;
use super::{Session, Sessions};
use crate::store::leases::{Counts, Held, Lease};
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

/// In this part of a lease time is an adoption over that was begun before the lease was taken: it asks for the lease
/// right before its one command.
const SETTLED: u32 = 4;

// === impl Sessions ===

impl<A: Attachment> Sessions<A> {
    /// Takes or extends this replica's lease, and tells what it holds. Run by one task alone, one after the other.
    /// `counts` and `tally` are of what others count; sessions and streams are counted here.
    pub async fn beat(&self, counts: Counts, mut tally: Tally) -> Beat {
        let Company::Peers(said) = &self.membership.company else { return Beat::Held };
        let (sessions, streams) = (self.len() as u64, self.stream_places.open() as u64);
        self.caps.tell(&mut tally);
        let counts = Counts { sessions, streams, ..counts };
        match self.extend(said, Held { counts, shares: self.others.shares(&tally) }).await {
            Ok(()) => Beat::Held,
            Err(error) => Beat::Missed(error),
        }
    }

    async fn extend(&self, said: &Said, held: Held) -> Result<(), StoreError> {
        let lease = said.now();
        let tenure = &self.membership.tenure;
        let asked = Moment::now();
        let leases = &self.stores.leases;
        let generation = match leases.extend(lease.replica.clone(), held.clone(), tenure.lease()).await {
            Ok(generation) => generation,
            Err(StoreError::Gone) => {
                tenure.lost();
                let generation =
                    leases.take(Lease { held: held.clone(), ..Lease::clone(&lease) }, tenure.lease()).await?;
                said.wrote(lease);
                generation
            }
            Err(other) => return Err(other),
        };
        let anew = tenure.is_another(&generation);
        if anew {
            tracing::warn!(
                "the session store began anew or is another server, and may have lost what it held; sessions that it does not have are written to it again"
            );
        }
        // What fails here is done again with the next beat: only then is the generation known, and the lease counted on.
        if tenure.is_unverified() {
            self.verify(anew).await?;
        } else if anew {
            self.reconcile(Absent::Forgotten).await?;
        }
        tenure.extended(asked, generation);
        self.say_anew(said, held).await?;
        self.look_around().await
    }

    /// Writes what this replica says of itself, if that has changed: its lease, which was extended a moment ago, goes on.
    async fn say_anew(&self, said: &Said, held: Held) -> Result<(), StoreError> {
        let (tenure, leases) = (&self.membership.tenure, &self.stores.leases);
        let Some(lease) = said.unwritten().filter(|_| tenure.is_held()) else { return Ok(()) };
        leases.take(Lease { held, ..Lease::clone(&lease) }, tenure.lease()).await?;
        said.wrote(lease);
        if !tenure.is_held() {
            // It may have run out before the store took this, and the next heartbeat would not see that.
            tenure.lost();
        }
        Ok(())
    }

    /// The lease was taken anew, and what was owned before may have been adopted meanwhile: each session is looked at
    /// before anything is served. Whoever saw no lease a moment ago adopts until then, or not at all.
    async fn verify(&self, anew: bool) -> Result<(), StoreError> {
        if !self.by_store_name.is_empty() {
            sleep(self.membership.tenure.lease() / SETTLED).await;
        }
        self.reconcile(if anew { Absent::Forgotten } else { Absent::Ended }).await
    }

    /// Takes note of what the others hold.
    async fn look_around(&self) -> Result<(), StoreError> {
        let all = self.stores.leases.all().await?;
        let Company::Peers(said) = &self.membership.company else { return Ok(()) };
        let own = said.now();
        let others: Arc<[Lease]> = all.into_iter().filter(|lease| lease.replica != own.replica).collect();
        let alike = others.iter().filter(|lease| lease.config_hash == own.config_hash).count();
        self.metrics.cluster().config_mismatch(others.len() - alike);
        self.others.hear(&others);
        *lock(&self.peers) = PeersSeen { others, alike };
        self.routes.forget_old();
        Ok(())
    }

    /// What the others hold, for caps and quotas that hold over all replicas.
    pub fn others(&self) -> Arc<Others> {
        self.others.clone()
    }

    /// Whether other replicas have another config than this one has now, as the last heartbeat showed them.
    pub fn configs_differ(&self) -> bool {
        let Company::Peers(said) = &self.membership.company else { return false };
        let own = said.now().config_hash;
        lock(&self.peers).others.iter().any(|lease| lease.config_hash != own)
    }

    /// What the last heartbeat showed of the other replicas.
    pub fn peers_seen(&self) -> PeersSeen {
        lock(&self.peers).clone()
    }

    /// Whether a server may be sent a call of this session: no other replica can have taken it over. An implicit one only
    /// has a record for servers that keep state, and is asked for it where such a call begins.
    pub fn may_send(&self, session: &Session<A>) -> bool {
        session.is_implicit() || self.membership.tenure.is_held()
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
