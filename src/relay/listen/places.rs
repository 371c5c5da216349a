//! How many listens each principal has open, held to `limits.listensPerPrincipal`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::relay::Caller;
use crate::session::PrincipalCap;
use crate::store::lock;

/// The listens of each principal, counted.
pub(in crate::relay) struct ListenPlaces {
    most: usize,
    taken: Arc<Mutex<HashMap<[u8; 32], usize>>>,
}

/// The place of one listen, given back when dropped.
pub(super) struct ListenPlace {
    principal: [u8; 32],
    taken: Arc<Mutex<HashMap<[u8; 32], usize>>>,
}

// === impl ListenPlaces ===

impl ListenPlaces {
    pub(in crate::relay) fn new(most: usize) -> Self {
        Self { most, taken: Arc::default() }
    }

    /// A place for one more listen of a caller, if it may have one.
    pub(super) fn take(&self, caller: &Caller) -> Option<ListenPlace> {
        // However many clients a principal comes through, it is one.
        let principal = match caller.cap {
            PrincipalCap::Held(key) => key,
            PrincipalCap::Exempt => caller.binding,
        };
        let mut taken = lock(&self.taken);
        let count = taken.entry(principal).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        Some(ListenPlace { principal, taken: self.taken.clone() })
    }
}

impl Drop for ListenPlace {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
        if let Some(count) = taken.get_mut(&self.principal) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.principal);
            }
        }
    }
}
