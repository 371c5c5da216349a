//! Leases: which replicas live, and where they are reached.
//!
//! Each replica holds one and extends it by heartbeat; the forwarder between replicas looks owners up here, and
//! an adopter learns from a lease that is gone that its holder may be taken for dead.

use std::time::Duration;

use super::shares::Shares;
use super::{ReplicaId, Stored};

/// What a replica says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Who holds it.
    pub replica: ReplicaId,
    /// Where its peers reach it.
    pub address: Box<str>,
    /// Hash of the key it made at its start; peers pin it.
    pub key_hash: [u8; 32],
    /// Proves by the cluster key that hash and replica belong together.
    pub proof: [u8; 32],
    /// The formats of stored values it can read, oldest and newest.
    pub formats: (u16, u16),
    /// Tells configs apart.
    pub config_hash: [u8; 32],
    /// What it holds at the moment.
    pub held: Held,
}

/// What a replica holds at the moment, as its last heartbeat said. It vanishes with the lease, so nothing needs a
/// decrement to be right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// In all.
    pub counts: Counts,
    /// By whose it is, of what all replicas together are held to.
    pub shares: Shares,
}

/// How much of each a replica holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sessions it owns.
    pub sessions: u64,
    /// Open long-lived streams to callers: standalone GETs of sessions, and listens that their callers opened here.
    pub streams: u64,
    /// Running exchanges.
    pub exchanges: u64,
    /// Child processes.
    pub children: u64,
    /// Calls that wait for input which a modern caller will bring.
    pub parked: u64,
}

/// Tells one life of the store from the next: it changes when the store lost what it held.
#[derive(Clone, Debug)]
pub struct Generation {
    /// Its name, which no other has; two are the same if it is.
    pub name: Box<str>,
    /// How long ago it began, by the store's clock.
    pub age: Duration,
}

impl PartialEq for Generation {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Generation {}

#[cfg(test)]
impl Lease {
    /// One of a replica of this name, which holds nothing.
    pub(crate) fn named(name: &str) -> Self {
        Self {
            replica: ReplicaId(name.into()),
            address: "127.0.0.1:1".into(),
            key_hash: [0; 32],
            proof: [0; 32],
            formats: (1, 1),
            config_hash: [0; 32],
            held: Held::default(),
        }
    }
}

/// Keeps leases. They run out by the store's own clock.
pub trait Leases: Send + Sync {
    /// Takes a lease, at a replica's start or after it lost one.
    fn take(&self, lease: Lease, time: Duration) -> Stored<'_, Generation>;
    /// Extends a lease that is held; never takes one. `Gone`: it was lost, and the epoch of every session must be
    /// verified before it is served again.
    fn extend(&self, replica: ReplicaId, held: Held, time: Duration) -> Stored<'_, Generation>;
    /// Gives a lease up, at a replica's end.
    fn give_up(&self, replica: ReplicaId) -> Stored<'_, ()>;
    /// The lease of one replica, if it is held.
    fn find(&self, replica: ReplicaId) -> Stored<'_, Option<Lease>>;
    /// All leases that are held and can be read.
    fn all(&self) -> Stored<'_, Vec<Lease>>;
}
