//! How many listens each principal has open, held to `limits.listensPerPrincipal` over all replicas.
//!
//! A listen counts among its principal's where its caller opened it. What this replica contributes to one at another
//! counts apart, by that replica, so that it takes no place from callers and is held to the same bound;
//! other replicas are not told of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::relay::Caller;
use crate::session::PrincipalCap;
use crate::session::others::{Others, Tally, least_told};
use crate::store::shares::ShareKind;
use crate::store::{ReplicaId, lock};

/// The listens of each principal, counted.
pub(in crate::relay) struct ListenPlaces {
    most: usize,
    others: Arc<Others>,
    taken: Arc<Mutex<Taken>>,
}

/// How many there are of each principal, and at which other replica, if at one.
type Taken = HashMap<Counted, usize>;
/// A principal, and the replica at which its callers' listens are that this one contributes to.
type Counted = ([u8; 32], Option<ReplicaId>);

/// The place of one listen, given back when dropped.
pub(super) struct ListenPlace {
    counted: Counted,
    taken: Arc<Mutex<Taken>>,
}

// === impl ListenPlaces ===

impl ListenPlaces {
    pub(in crate::relay) fn new(most: usize, others: Arc<Others>) -> Self {
        Self { most, others, taken: Arc::default() }
    }

    /// A place for one more listen of a caller, which is at the replica `at` if not here, if it may have one.
    pub(super) fn take(&self, caller: &Caller, at: Option<&ReplicaId>) -> Option<ListenPlace> {
        // However many clients a principal comes through, it is one.
        let principal = match caller.cap {
            PrincipalCap::Held(key) => key,
            PrincipalCap::Exempt => caller.binding,
        };
        let elsewhere = if at.is_none() { self.others.hold(ShareKind::Listens, &principal) } else { 0 };
        let mut taken = lock(&self.taken);
        let counted = (principal, at.cloned());
        let count = taken.get(&counted).copied().unwrap_or_default();
        if count.saturating_add(elsewhere) >= self.most {
            return None;
        }
        taken.insert(counted.clone(), count + 1);
        Some(ListenPlace { counted, taken: self.taken.clone() })
    }

    /// Tells how many each principal has here.
    pub(in crate::relay) fn tell(&self, tally: &mut Tally) {
        let taken = lock(&self.taken);
        let of_callers = taken.iter().filter(|((_, at), _)| at.is_none());
        let held = of_callers.map(|((principal, _), held)| (*principal, *held));
        tally.add(ShareKind::Listens, least_told(self.most), held);
    }
}

impl Drop for ListenPlace {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
        if let Some(count) = taken.get_mut(&self.counted) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.counted);
            }
        }
    }
}
