//! Leases in this process's memory.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

use super::done;
use crate::store::leases::{Generation, Held, Lease, Leases};
use crate::store::{ReplicaId, StoreError, Stored, lock};

/// Leases in this process's memory.
#[derive(Debug)]
pub struct MemoryLeases {
    held: Mutex<HashMap<ReplicaId, (Lease, Instant)>>,
    generation: Box<str>,
    began: Instant,
}

// === impl MemoryLeases ===

impl MemoryLeases {
    /// None is held yet.
    pub fn new() -> Self {
        let generation = uuid::Uuid::new_v4().to_string().into();
        Self { held: Mutex::default(), generation, began: Instant::now() }
    }

    fn generation(&self) -> Generation {
        Generation { name: self.generation.clone(), age: self.began.elapsed() }
    }

    /// Does something to the leases that are held; those that ran out are gone.
    fn with<T>(&self, act: impl FnOnce(&mut HashMap<ReplicaId, (Lease, Instant)>) -> T) -> T {
        let mut held = lock(&self.held);
        let now = Instant::now();
        held.retain(|_, (_, end)| *end > now);
        act(&mut held)
    }
}

impl Default for MemoryLeases {
    fn default() -> Self {
        Self::new()
    }
}

impl Leases for MemoryLeases {
    fn take(&self, lease: Lease, time: Duration) -> Stored<'_, Generation> {
        let end = Instant::now() + time;
        self.with(|held| held.insert(lease.replica.clone(), (lease, end)));
        done(Ok(self.generation()))
    }

    fn extend(&self, replica: ReplicaId, now: Held, time: Duration) -> Stored<'_, Generation> {
        done(self.with(|held| {
            let (lease, end) = held.get_mut(&replica).ok_or(StoreError::Gone)?;
            lease.held = now;
            *end = Instant::now() + time;
            Ok(self.generation())
        }))
    }

    fn give_up(&self, replica: ReplicaId) -> Stored<'_, ()> {
        self.with(|held| held.remove(&replica));
        done(Ok(()))
    }

    fn find(&self, replica: ReplicaId) -> Stored<'_, Option<Lease>> {
        done(Ok(self.with(|held| held.get(&replica).map(|(lease, _)| lease.clone()))))
    }

    fn all(&self) -> Stored<'_, Vec<Lease>> {
        done(Ok(self.with(|held| held.values().map(|(lease, _)| lease.clone()).collect())))
    }
}
