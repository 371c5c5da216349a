//! How many sessions there may be, in all and for one principal, over all replicas as far as the others' leases say.
//!
//! A session that is adopted was let in before: it is counted, and never refused.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::live::Attachment;
use super::others::{Others, Tally, least_told};
use super::sessions::OpenError;
use super::{Arrival, Session, Sessions};
use crate::store::lock;
use crate::store::shares::ShareKind;

/// How often at most expired sessions are looked for to make place for a new one.
const SWEEP_FOR_PLACE: Duration = Duration::from_secs(1);

/// For how many lease times the counts of an owner that is gone may last: its lease, and the time until the next look.
const LEASES: u32 = 2;

/// Counts the sessions of this replica, apart from the sessions themselves, so that many callers at once cannot pass
/// the caps together.
#[derive(Debug)]
pub(super) struct Caps {
    count: AtomicUsize,
    others: Arc<Others>,
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
    pub(super) fn new(most: usize, most_per_principal: usize, others: Arc<Others>) -> Self {
        let count = AtomicUsize::new(0);
        Self { count, others, per_principal: Mutex::default(), most, most_per_principal }
    }

    /// Tells how many each principal has here.
    pub(super) fn tell(&self, tally: &mut Tally) {
        let per_principal = lock(&self.per_principal);
        let held = per_principal.iter().map(|(key, held)| (*key, *held));
        tally.add(ShareKind::Sessions, least_told(self.most_per_principal), held);
    }

    /// Counts a session in, under both caps.
    ///
    /// # Errors
    /// [`OpenError::Full`] and [`OpenError::PrincipalFull`]
    pub(super) fn take(&self, cap: PrincipalCap) -> Result<(), OpenError> {
        let here = self.count.fetch_add(1, Relaxed);
        if here.saturating_add(self.others.sessions()) >= self.most {
            self.count.fetch_sub(1, Relaxed);
            return Err(OpenError::Full);
        }
        if let PrincipalCap::Held(key) = cap {
            let elsewhere = self.others.hold(ShareKind::Sessions, &key);
            let mut per_principal = lock(&self.per_principal);
            let held = per_principal.get(&key).copied().unwrap_or_default();
            if held.saturating_add(elsewhere) >= self.most_per_principal {
                self.count.fetch_sub(1, Relaxed);
                return Err(OpenError::PrincipalFull);
            }
            per_principal.insert(key, held + 1);
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

// === impl Sessions ===

impl<A: Attachment> Sessions<A> {
    /// Counts a session in, under both caps; expired ones give way first, but are not looked for each time, so that
    /// a flood at the cap stays cheap (case-I05).
    pub(super) async fn take_place(&self, cap: PrincipalCap) -> Result<(), OpenError> {
        let first_try = self.caps.take(cap);
        if first_try.is_ok() || !self.sweep_is_due(Instant::now()) {
            return first_try;
        }
        self.sweep().await;
        self.caps.take(cap)
    }

    /// How a session came here, for what it takes places for. One that was taken over counts as such while the lease of its
    /// earlier owner may still count what it had there.
    pub fn arrival(&self, session: &Session<A>) -> Arrival {
        let counted = self.tenure().lease() * LEASES;
        if session.was_handed_over_within(counted) { Arrival::HandedOver } else { Arrival::New }
    }

    pub(super) fn sweep_is_due(&self, now: Instant) -> bool {
        let mut swept = lock(&self.swept);
        let due = swept.is_none_or(|last| now.duration_since(last) >= SWEEP_FOR_PLACE);
        if due {
            *swept = Some(now);
        }
        due
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
