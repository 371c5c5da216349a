//! How many calls may wait for their callers: of one tenant, and of one session.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use crate::store::lock;

/// The places for parked calls of all tenants.
#[derive(Debug)]
pub(in crate::relay) struct Room {
    /// Of one tenant.
    most: usize,
    taken: Mutex<HashMap<Option<Box<str>>, usize>>,
}

/// The places for parked calls of one session.
#[derive(Debug)]
pub(in crate::relay) struct SessionRoom {
    all: Arc<Room>,
    tenant: Option<Box<str>>,
    most: usize,
    taken: AtomicUsize,
}

/// A place for one call, for as long as this lives.
#[derive(Debug)]
pub(in crate::relay) struct Place(Arc<SessionRoom>);

// === impl Room ===

impl Room {
    /// `most` places for each tenant.
    pub(in crate::relay) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, taken: Mutex::default() })
    }

    /// The places for a session of `tenant`, which may run `in_flight` requests: a parked call is one of them, and
    /// half of them stay for others.
    pub(in crate::relay) fn of_session(
        self: &Arc<Self>,
        tenant: Option<Box<str>>,
        in_flight: usize,
    ) -> Arc<SessionRoom> {
        let most = (in_flight / 2).max(1);
        Arc::new(SessionRoom { all: self.clone(), tenant, most, taken: AtomicUsize::new(0) })
    }

    fn take(&self, tenant: Option<&str>) -> bool {
        let mut taken = lock(&self.taken);
        let taken = taken.entry(tenant.map(Into::into)).or_default();
        let free = *taken < self.most;
        *taken += usize::from(free);
        free
    }

    fn give_back(&self, tenant: &Option<Box<str>>) {
        let mut taken = lock(&self.taken);
        if let Some(of_tenant) = taken.get_mut(tenant) {
            *of_tenant = of_tenant.saturating_sub(1);
            if *of_tenant == 0 {
                taken.remove(tenant);
            }
        }
    }
}

// === impl SessionRoom ===

impl SessionRoom {
    /// A place, if there is one left.
    pub(in crate::relay) fn take(self: &Arc<Self>) -> Option<Place> {
        if self.taken.fetch_add(1, Relaxed) >= self.most {
            self.taken.fetch_sub(1, Relaxed);
            return None;
        }
        if !self.all.take(self.tenant.as_deref()) {
            self.taken.fetch_sub(1, Relaxed);
            return None;
        }
        Some(Place(self.clone()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.all.give_back(&self.0.tenant);
        self.0.taken.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenants_and_sessions_are_held_to_their_own_number() {
        let room = Room::new(3);
        let (a, b, other) = (
            room.of_session(Some("acme".into()), 4),
            room.of_session(Some("acme".into()), 4),
            room.of_session(None, 1),
        );
        let of_a = (a.take(), a.take());
        assert!(of_a.0.is_some() && of_a.1.is_some() && a.take().is_none(), "half of four");
        let of_b = b.take();
        assert!(of_b.is_some() && b.take().is_none(), "the tenant's last");
        assert!(other.take().is_some(), "one at least");
        drop(of_a);
        assert!(b.take().is_some());
        drop(of_b);
        assert!(lock(&room.taken).is_empty(), "nothing is left of those that have none");
    }
}
