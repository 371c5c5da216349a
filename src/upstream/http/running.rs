//! The calls that run on one link, so that their progress finds them on whatever stream it comes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::store::lock;
use crate::upstream::{Listener, UpstreamId};

type Listeners = HashMap<UpstreamId, Arc<dyn Listener>>;

/// Who listens to which call. It holds one entry for each call in flight.
#[derive(Default)]
pub(super) struct Running(Mutex<Listeners>);

/// Keeps one call's entry for as long as it lives.
pub(super) struct Entry<'a> {
    running: &'a Running,
    id: UpstreamId,
}

// === impl Running ===

impl Running {
    pub(super) fn enter(&self, id: UpstreamId, listener: &Arc<dyn Listener>) -> Entry<'_> {
        lock(&self.0).insert(id, Arc::clone(listener));
        Entry { running: self, id }
    }

    pub(super) fn listener(&self, id: UpstreamId) -> Option<Arc<dyn Listener>> {
        lock(&self.0).get(&id).cloned()
    }
}

// === impl Entry ===

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        // Taken out under the lock, dropped after it: a listener's drop is none of the lock's business.
        let listener = lock(&self.running.0).remove(&self.id);
        drop(listener);
    }
}
