//! This replica's lease as it may count on it: less than the store grants, by a clock that no pause stops.
//!
//! With the store of a single replica there is no lease to lose: [`Tenure::alone`].

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::store::leases::Generation;
use crate::store::lock;

/// This replica's lease as it may count on it.
#[derive(Debug)]
pub struct Tenure {
    /// When it ends, as [`Moment`]; checked before each send, so it is one load.
    until: AtomicU64,
    /// What else is known.
    known: Mutex<Known>,
    /// How long the store grants it.
    lease: Duration,
}

/// Milliseconds of the clock that also counts while the machine or the process is suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub(super) u64);

#[derive(Debug, Default)]
struct Known {
    /// Since when it has been held without a gap, in one generation of the store.
    since: Option<Moment>,
    generation: Option<Generation>,
    /// Until when the store may not know sessions that live.
    forgetful_until: Option<Moment>,
}

/// The part of the lease that is not counted on: clocks need not agree by more.
const LESS: u32 = 5;
/// How many lease times unknown sessions may still be written again by their owners.
const FORGETFUL: u32 = 2;

// === impl Tenure ===

impl Tenure {
    /// A lease of `lease`, not held yet.
    pub fn new(lease: Duration) -> Self {
        Self { until: AtomicU64::new(0), known: Mutex::default(), lease }
    }

    /// That of the only replica: always held.
    pub fn alone() -> Self {
        let known = Known { since: Some(Moment(0)), ..Known::default() };
        Self { until: AtomicU64::new(u64::MAX), known: Mutex::new(known), lease: Duration::ZERO }
    }

    /// How long the store grants it.
    pub fn lease(&self) -> Duration {
        self.lease
    }

    /// Whether it is held now.
    pub fn is_held(&self) -> bool {
        let until = self.until.load(Relaxed);
        until == u64::MAX || Moment::now().0 < until
    }

    /// The store took or extended the lease, asked at `asked`.
    pub fn extended(&self, asked: Moment, generation: Generation) {
        let mut known = lock(&self.known);
        let gap = !self.is_held();
        let counted = self.lease - self.lease / LESS;
        self.until.store(asked.after(counted).0, Relaxed);
        let forgetful = (self.lease * FORGETFUL).saturating_sub(generation.age);
        let anew = known.generation.as_ref().is_some_and(|before| *before != generation);
        known.generation = Some(generation);
        known.forgetful_until = (!forgetful.is_zero()).then(|| asked.after(forgetful));
        if gap || anew || known.since.is_none() {
            known.since = Some(asked);
        }
    }

    /// Whether this generation is another than the last one that was seen.
    pub fn is_another(&self, generation: &Generation) -> bool {
        lock(&self.known).generation.as_ref().is_some_and(|known| known != generation)
    }

    /// The store knows of no lease: what was owned may have been adopted.
    pub fn lost(&self) {
        self.until.store(0, Relaxed);
        lock(&self.known).since = None;
    }

    /// Whether it was lost, or never held, and what was owned was not looked at since.
    pub fn is_unverified(&self) -> bool {
        lock(&self.known).since.is_none()
    }

    /// Whether sessions may be adopted: it has been held for one full lease time, without a gap and in one generation
    /// of the store.
    pub fn may_adopt(&self) -> bool {
        self.until_adopting() == Some(Duration::ZERO)
    }

    /// How long until sessions may be adopted, if the lease goes on; none if it is not held.
    pub fn until_adopting(&self) -> Option<Duration> {
        if !self.is_held() {
            return None;
        }
        let since = lock(&self.known).since?;
        Some(Duration::from_millis(since.after(self.lease).0.saturating_sub(Moment::now().0)))
    }

    /// Whether a session that the store does not know may live all the same, at an owner that will write it again.
    pub fn is_forgetful(&self) -> bool {
        lock(&self.known).forgetful_until.is_some_and(|until| Moment::now() < until)
    }
}

// === impl Moment ===

impl Moment {
    /// Now.
    pub fn now() -> Self {
        let now = clock_gettime(ClockId::Boottime);
        let millis = u64::try_from(now.tv_sec).unwrap_or(0) * 1000;
        Self(millis + u64::try_from(now.tv_nsec).unwrap_or(0) / 1_000_000)
    }

    fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(60);

    fn generation(name: &str) -> Generation {
        Generation { name: name.into(), age: Duration::from_secs(3600) }
    }

    fn ago(duration: Duration) -> Moment {
        Moment(Moment::now().0 - u64::try_from(duration.as_millis()).expect("short"))
    }

    #[test]
    fn a_lease_is_counted_from_when_it_was_asked_for_less_a_fifth() {
        let tenure = Tenure::new(LEASE);
        assert!(!tenure.is_held() && !tenure.may_adopt());
        tenure.extended(ago(Duration::from_secs(47)), generation("a"));
        assert!(tenure.is_held());
        tenure.extended(ago(Duration::from_secs(49)), generation("a"));
        assert!(!tenure.is_held(), "48 of 60 seconds count");
    }

    #[test]
    fn adopting_needs_a_full_lease_time_without_a_gap() {
        let tenure = Tenure::new(LEASE);
        tenure.extended(ago(Duration::from_secs(61)), generation("a"));
        tenure.extended(ago(Duration::ZERO), generation("a"));
        assert!(!tenure.may_adopt(), "there was a gap between the two");

        let tenure = Tenure::new(LEASE);
        tenure.extended(ago(Duration::from_secs(40)), generation("a"));
        assert!(!tenure.may_adopt());
        let rest = tenure.until_adopting().expect("held");
        assert!(rest > Duration::from_secs(18) && rest <= Duration::from_secs(20), "{rest:?}");
        lock(&tenure.known).since = Some(ago(Duration::from_secs(60)));
        assert!(tenure.may_adopt());
        tenure.lost();
        assert!(!tenure.is_held() && !tenure.may_adopt());
        tenure.extended(ago(Duration::ZERO), generation("a"));
        assert!(tenure.is_held() && !tenure.may_adopt(), "it begins anew");
    }

    #[test]
    fn a_new_generation_is_noticed_and_forgives_unknown_sessions() {
        let tenure = Tenure::new(LEASE);
        let now = || ago(Duration::ZERO);
        assert!(!tenure.is_another(&generation("a")), "the first");
        tenure.extended(now(), generation("a"));
        assert!(!tenure.is_another(&generation("a")) && !tenure.is_forgetful());
        let young = |seconds| Generation { age: Duration::from_secs(seconds), ..generation("b") };
        assert!(tenure.is_another(&young(1)));
        tenure.extended(now(), young(1));
        assert!(tenure.is_forgetful() && !tenure.may_adopt());
        tenure.extended(now(), young(121));
        assert!(!tenure.is_forgetful(), "two lease times after it began");
    }

    #[test]
    fn the_only_replica_needs_no_lease() {
        let tenure = Tenure::alone();
        assert!(tenure.is_held() && tenure.may_adopt() && !tenure.is_forgetful());
    }
}
