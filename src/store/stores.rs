//! The parts of one store, as those who build on it are given them.

use std::sync::Arc;

use super::{ChangeBus, EventLog, Leases, MemoryBus, MemoryLeases, MemoryStore, SessionStore};

/// The parts of one store.
#[derive(Clone)]
pub struct Stores {
    /// Session records.
    pub sessions: Arc<dyn SessionStore>,
    /// The logs of the same sessions.
    pub log: Arc<dyn EventLog>,
    /// Which replicas live.
    pub leases: Arc<dyn Leases>,
    /// What they tell each other.
    pub bus: Arc<dyn ChangeBus>,
}

// === impl Stores ===

impl Stores {
    /// An empty one in this process's memory.
    pub fn memory() -> Self {
        let store = Arc::new(MemoryStore::default());
        Self {
            sessions: store.clone(),
            log: store,
            leases: Arc::new(MemoryLeases::new()),
            bus: Arc::new(MemoryBus::new()),
        }
    }
}

impl std::fmt::Debug for Stores {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stores")
    }
}
