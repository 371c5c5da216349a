//! The change bus within one process.

use tokio::sync::broadcast;

use super::done;
use crate::store::Stored;
use crate::store::change_bus::{ChangeBus, Changed};

/// Changes that wait for a listener who is behind; further ones push the oldest out.
const MOST_WAITING: usize = 1024;

/// The change bus within one process.
#[derive(Debug)]
pub struct MemoryBus(broadcast::Sender<Changed>);

// === impl MemoryBus ===

impl MemoryBus {
    /// Nobody listens yet.
    pub fn new() -> Self {
        Self(broadcast::Sender::new(MOST_WAITING))
    }
}

impl Default for MemoryBus {
    fn default() -> Self {
        Self::new()
    }
}

impl ChangeBus for MemoryBus {
    fn publish(&self, changed: Changed) -> Stored<'_, ()> {
        // An error only says that nobody listens.
        let _ = self.0.send(changed);
        done(Ok(()))
    }

    fn subscribe(&self) -> broadcast::Receiver<Changed> {
        self.0.subscribe()
    }
}
