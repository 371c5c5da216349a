//! How many sessions there may be: in all, over all replicas, and for one principal.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::sessions::OpenError;
use crate::store::lock;

/// Counts the sessions of this replica, apart from the sessions themselves, so that many callers at once cannot pass
/// the caps together.
#[derive(Debug)]
pub(super) struct Caps {
    count: AtomicUsize,
    /// What other replicas hold, as their leases last said.
    elsewhere: AtomicUsize,
    per_principal: Mutex<HashMap<[u8; 32], usize>>,
    most: usize,
    most_per_principal: usize,
}

/// Whether a principal is held to `sessions.maxPerPrincipal`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrincipalCap {
    /// It is; what its sessions are counted by, whatever client they come through.
    Held([u8; 32]),
    /// It is not: anonymous on loopback stands for one person's many programs.
    Exempt,
}

/// A place that is given back unless it is kept.
#[derive(Debug)]
pub(super) struct HeldPlace<'a> {
    caps: &'a Caps,
    cap: Option<PrincipalCap>,
}

// === impl Caps ===

impl Caps {
    pub(super) fn new(most: usize, most_per_principal: usize) -> Self {
        let (count, elsewhere) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { count, elsewhere, per_principal: Mutex::default(), most, most_per_principal }
    }

    /// Takes what other replicas hold into account from now on.
    pub(super) fn elsewhere(&self, sessions: usize) {
        self.elsewhere.store(sessions, Relaxed);
    }

    /// Counts a session in, under both caps.
    ///
    /// # Errors
    /// [`OpenError::Full`] and [`OpenError::PrincipalFull`]
    pub(super) fn take(&self, cap: PrincipalCap) -> Result<(), OpenError> {
        let here = self.count.fetch_add(1, Relaxed);
        if here.saturating_add(self.elsewhere.load(Relaxed)) >= self.most {
            self.count.fetch_sub(1, Relaxed);
            return Err(OpenError::Full);
        }
        if let PrincipalCap::Held(key) = cap {
            let mut per_principal = lock(&self.per_principal);
            let held = per_principal.entry(key).or_default();
            if *held >= self.most_per_principal {
                self.count.fetch_sub(1, Relaxed);
                return Err(OpenError::PrincipalFull);
            }
            *held += 1;
        }
        Ok(())
    }

    /// Counts a session in whatever the caps say: one that is adopted was let in before.
    pub(super) fn take_over(&self, cap: PrincipalCap) {
        self.count.fetch_add(1, Relaxed);
        if let PrincipalCap::Held(key) = cap {
            *lock(&self.per_principal).entry(key).or_default() += 1;
        }
    }

    /// Gives a place that was taken back at the end of a scope, unless it is kept.
    pub(super) fn hold(&self, cap: PrincipalCap) -> HeldPlace<'_> {
        HeldPlace { caps: self, cap: Some(cap) }
    }

    /// A session ended.
    pub(super) fn give_back(&self, cap: PrincipalCap) {
        self.count.fetch_sub(1, Relaxed);
        if let PrincipalCap::Held(key) = cap {
            let mut per_principal = lock(&self.per_principal);
            if let Some(held) = per_principal.get_mut(&key) {
                *held -= 1;
                if *held == 0 {
                    per_principal.remove(&key);
                }
            }
        }
    }
}

// === impl HeldPlace ===

impl HeldPlace<'_> {
    /// The session takes it.
    pub(super) fn keep(mut self) -> PrincipalCap {
        self.cap.take().unwrap_or(PrincipalCap::Exempt)
    }
}

impl Drop for HeldPlace<'_> {
    fn drop(&mut self) {
        if let Some(cap) = self.cap.take() {
            self.caps.give_back(cap);
        }
    }
}
