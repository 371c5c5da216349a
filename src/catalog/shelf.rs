//! The lists of one server for one class of callers: what is known, how far it can be trusted, and who reads it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::hints::{Hints, Scope};
use super::kind::Kind;
use super::list::List;
use crate::protocol::capability::CapabilityClass;
use crate::protocol::revision::Revision;
use crate::store::lock;

/// A list older than this is read again behind the back of the next who asks, if its server does not say how long it
/// may be kept: not all servers tell of changes.
pub(super) const FRESH_FOR: Duration = Duration::from_mins(5);
/// A list read within this time is not read again, whether a name is missed in it or its server says that it may not
/// be kept.
const JUST_READ: Duration = Duration::from_secs(1);
/// How long the last good list of a server that fails is shown.
const LAST_GOOD_FOR: Duration = Duration::from_hours(1);
/// The first and the longest wait after a failure; it doubles.
const RETRY_FIRST: Duration = Duration::from_secs(1);
/// See [`RETRY_FIRST`].
const RETRY_MOST: Duration = Duration::from_mins(1);

/// What two callers must share for a server to tell both the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallerClass {
    /// The revision asked of the server.
    pub revision: Revision,
    /// The capabilities offered to it.
    pub capabilities: CapabilityClass,
}

/// The lists of one server for one class of callers.
#[derive(Debug, Default)]
pub struct Shelf {
    slots: [Mutex<Slot>; 4],
}

/// How a reading ended: with the list, or not.
pub type Outcome = Option<Arc<List>>;

/// Who reads a list.
#[derive(Debug)]
pub enum Reading {
    /// The one who asked shall: send the outcome when done.
    Yours(watch::Sender<Option<Outcome>>, Waiting),
    /// Somebody does already.
    Theirs(Waiting),
}

/// A reading that runs.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// When it began.
    pub began: Instant,
    outcome: watch::Receiver<Option<Outcome>>,
}

#[derive(Debug, Default)]
struct Slot {
    list: Option<Arc<List>>,
    /// What its server says of keeping it, if it speaks an era that does.
    hints: Option<Hints>,
    age: Age,
    reading: Option<Waiting>,
    failing: Option<Failing>,
    /// Counts how often the server said that its list changed.
    changes: u64,
}

/// How old a list is.
#[derive(Clone, Copy, Debug, Default)]
enum Age {
    /// The server said that it changed, or it is from an earlier process: shown while it is read again.
    #[default]
    Stale,
    /// The server gave it at that time.
    ReadAt(Instant),
}

#[derive(Clone, Copy, Debug)]
struct Failing {
    since: Instant,
    retry_at: Instant,
    next_wait: Duration,
}

// === impl Shelf ===

impl Shelf {
    /// The list of one kind as callers see it; none if it was never read, or its server has failed for too long.
    pub fn known(&self, kind: Kind) -> Option<Arc<List>> {
        let slot = lock(self.slot(kind));
        let lost = slot.failing.is_some_and(|f| f.since.elapsed() > LAST_GOOD_FOR);
        if lost { None } else { slot.list.clone() }
    }

    /// The list of one kind, however old.
    pub fn last_good(&self, kind: Kind) -> Option<Arc<List>> {
        lock(self.slot(kind)).list.clone()
    }

    /// Whether the list should be read (again) in the background.
    pub fn is_due(&self, kind: Kind) -> bool {
        let slot = lock(self.slot(kind));
        let old = match slot.age {
            Age::Stale => true,
            Age::ReadAt(at) => at.elapsed() > slot.hints.map_or(FRESH_FOR, |h| h.ttl.max(JUST_READ)),
        };
        old && !slot.is_being_read() && !slot.rests()
    }

    /// Whether the list is older than its server lets anyone keep it, so that it is read before it is shown; the old one
    /// is shown if the server fails (K4). Servers of the eras that say nothing of keeping are not waited for.
    pub fn is_overdue(&self, kind: Kind) -> bool {
        let slot = lock(self.slot(kind));
        let Some(hints) = slot.hints else { return false };
        let old = match slot.age {
            Age::Stale => true,
            Age::ReadAt(at) => at.elapsed() > hints.ttl.max(JUST_READ),
        };
        old && !slot.rests()
    }

    /// How long the list may be kept from now on, and by whom: not at all where its server does not say, may have said
    /// that it changed, or fails (K6).
    pub fn hints(&self, kind: Kind) -> Hints {
        let slot = lock(self.slot(kind));
        match (slot.age, slot.hints) {
            (Age::ReadAt(at), Some(hints)) if slot.failing.is_none() => hints.after(at.elapsed()),
            _ => Hints::default(),
        }
    }

    /// Whether somebody who misses a name should have it read again.
    pub fn may_be_behind(&self, kind: Kind) -> bool {
        let slot = lock(self.slot(kind));
        let just_read = matches!(slot.age, Age::ReadAt(at) if at.elapsed() < JUST_READ);
        !just_read && !slot.rests()
    }

    /// When the server may be tried again after it failed.
    pub fn retry_at(&self, kind: Kind) -> Option<Instant> {
        lock(self.slot(kind)).failing.map(|f| f.retry_at)
    }

    /// Takes part in the one reading of this list.
    pub fn read(&self, kind: Kind) -> Reading {
        let mut slot = lock(self.slot(kind));
        if let Some(waiting) = slot.reading.as_ref().filter(|_| slot.is_being_read()) {
            return Reading::Theirs(waiting.clone());
        }
        let (sender, outcome) = watch::channel(None);
        let waiting = Waiting { began: Instant::now(), outcome };
        slot.reading = Some(waiting.clone());
        Reading::Yours(sender, waiting)
    }

    /// How often the server said that its list changed; see [`Shelf::put`].
    pub fn changes(&self, kind: Kind) -> u64 {
        lock(self.slot(kind)).changes
    }

    /// Puts a list that the server gave. `changes` is what [`Shelf::changes`] was before it was asked for: if the
    /// server has said since that its list changed, this one is old already. Tells whether callers see anything else
    /// than before.
    pub fn put(&self, kind: Kind, list: &Arc<List>, hints: Option<Hints>, changes: u64) -> bool {
        let mut slot = lock(self.slot(kind));
        let lost = slot.failing.is_some_and(|f| f.since.elapsed() > LAST_GOOD_FOR);
        let differs = lost || slot.list.as_ref().is_none_or(|old| !Arc::ptr_eq(old, list));
        slot.list = Some(list.clone());
        slot.hints = hints;
        slot.age = if slot.changes == changes { Age::ReadAt(Instant::now()) } else { Age::Stale };
        slot.reading = None;
        slot.failing = None;
        differs
    }

    /// Takes those lists of another class that are the same for all and may still be kept.
    pub fn take_public(&self, other: &Self) {
        for kind in Kind::ALL {
            let theirs = lock(other.slot(kind));
            let public = theirs.hints.is_some_and(|h| h.scope == Scope::Public);
            if public && matches!(theirs.age, Age::ReadAt(_)) && theirs.failing.is_none() {
                let (list, hints, age) = (theirs.list.clone(), theirs.hints, theirs.age);
                drop(theirs);
                let mut slot = lock(self.slot(kind));
                (slot.list, slot.hints, slot.age) = (list, hints, age);
            }
        }
    }

    /// Puts a list kept from an earlier process, if there is none yet.
    pub fn put_last_good(&self, kind: Kind, list: Arc<List>) {
        lock(self.slot(kind)).list.get_or_insert(list);
    }

    /// The server did not give its list. Tells whether callers lose what they were shown.
    pub fn fail(&self, kind: Kind) -> bool {
        let mut slot = lock(self.slot(kind));
        let now = Instant::now();
        let since = slot.failing.map_or(now, |f| f.since);
        let wait = slot.failing.map_or(RETRY_FIRST, |f| f.next_wait);
        slot.failing = Some(Failing { since, retry_at: now + wait, next_wait: (wait * 2).min(RETRY_MOST) });
        slot.reading = None;
        slot.list.is_some() && since.elapsed() > LAST_GOOD_FOR
    }

    /// The server said that its list changed, or may have.
    pub fn expire(&self, kind: Kind) {
        let mut slot = lock(self.slot(kind));
        slot.age = Age::Stale;
        slot.changes += 1;
        // It speaks, so it may be asked.
        slot.failing = None;
    }

    fn slot(&self, kind: Kind) -> &Mutex<Slot> {
        let [tools, prompts, resources, templates] = &self.slots;
        match kind {
            Kind::Tools => tools,
            Kind::Prompts => prompts,
            Kind::Resources => resources,
            Kind::Templates => templates,
        }
    }
}

// === impl Slot ===

impl Slot {
    /// A reader that broke off without a word reads no more.
    fn is_being_read(&self) -> bool {
        self.reading.as_ref().is_some_and(|r| r.outcome.has_changed().is_ok())
    }

    /// Whether it failed a moment ago.
    fn rests(&self) -> bool {
        self.failing.is_some_and(|f| Instant::now() < f.retry_at)
    }
}

// === impl Waiting ===

impl Waiting {
    /// Waits for the outcome.
    pub async fn outcome(mut self) -> Outcome {
        let done = self.outcome.wait_for(Option::is_some).await;
        done.ok().and_then(|outcome| outcome.clone()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn list(digest: u64) -> Arc<List> {
        Arc::new(List { items: Vec::new(), quarantined: 0, digest, hints: None, annotated: HashMap::new() })
    }

    #[test]
    fn one_reads_and_the_others_wait() {
        let shelf = Shelf::default();
        let Reading::Yours(done, _) = shelf.read(Kind::Tools) else { panic!("the first one reads") };
        assert!(matches!(shelf.read(Kind::Tools), Reading::Theirs(_)));
        assert!(matches!(shelf.read(Kind::Prompts), Reading::Yours(..)), "kinds are apart");
        drop(done);
        assert!(matches!(shelf.read(Kind::Tools), Reading::Yours(..)), "a reader that broke off is replaced");
    }

    #[test]
    fn a_list_that_changed_while_it_was_read_is_old_already() {
        let shelf = Shelf::default();
        let before = shelf.changes(Kind::Tools);
        shelf.expire(Kind::Tools);
        assert!(shelf.put(Kind::Tools, &list(1), None, before));
        assert!(shelf.is_due(Kind::Tools));
        assert!(shelf.put(Kind::Tools, &list(2), None, shelf.changes(Kind::Tools)));
        assert!(!shelf.is_due(Kind::Tools) && !shelf.may_be_behind(Kind::Tools));
    }

    #[test]
    fn a_server_that_fails_is_left_alone_for_a_while_and_its_last_good_list_stays() {
        let shelf = Shelf::default();
        shelf.put_last_good(Kind::Tools, list(1));
        assert!(shelf.is_due(Kind::Tools));
        assert!(!shelf.fail(Kind::Tools));
        assert!(!shelf.is_due(Kind::Tools) && !shelf.may_be_behind(Kind::Tools));
        assert!(shelf.known(Kind::Tools).is_some());
        shelf.expire(Kind::Tools);
        assert!(shelf.is_due(Kind::Tools));
    }

    #[tokio::test(start_paused = true)]
    async fn a_last_good_list_is_shown_for_an_hour_of_failure() {
        let shelf = Shelf::default();
        shelf.put(Kind::Tools, &list(1), None, 0);
        // Long ago, but nothing failed.
        tokio::time::advance(LAST_GOOD_FOR * 2).await;
        assert!(shelf.known(Kind::Tools).is_some() && shelf.is_due(Kind::Tools));
        assert!(!shelf.fail(Kind::Tools));
        tokio::time::advance(LAST_GOOD_FOR - RETRY_MOST).await;
        assert!(!shelf.fail(Kind::Tools) && shelf.known(Kind::Tools).is_some());
        tokio::time::advance(RETRY_MOST * 2).await;
        assert!(shelf.fail(Kind::Tools) && shelf.known(Kind::Tools).is_none(), "callers lose it");
        assert!(shelf.put(Kind::Tools, &list(1), None, 0), "and get it back");
        assert!(shelf.known(Kind::Tools).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn the_wait_after_failures_doubles_up_to_a_minute() {
        let shelf = Shelf::default();
        for wait in [1, 2, 4, 8, 16, 32, 60, 60].map(Duration::from_secs) {
            shelf.fail(Kind::Tools);
            tokio::time::advance(wait - Duration::from_millis(1)).await;
            assert!(!shelf.is_due(Kind::Tools), "{wait:?}");
            tokio::time::advance(Duration::from_millis(2)).await;
            assert!(shelf.is_due(Kind::Tools), "{wait:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_is_read_again_after_a_while_without_a_word_of_its_server() {
        let shelf = Shelf::default();
        shelf.put(Kind::Tools, &list(1), None, 0);
        tokio::time::advance(FRESH_FOR / 2).await;
        assert!(!shelf.is_due(Kind::Tools) && shelf.may_be_behind(Kind::Tools));
        tokio::time::advance(FRESH_FOR).await;
        assert!(shelf.is_due(Kind::Tools));
    }
}
