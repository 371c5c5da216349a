//! One live session: what its owner keeps in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::caps::PrincipalCap;
use super::end_reason::EndReason;
use super::implicit::ImplicitKey;
use super::owned::Owned;
use super::{SessionId, Streams};
use crate::protocol::capability::CapabilityClass;
use crate::protocol::revision::Revision;
use crate::store::sessions::StreamCursor;
use crate::store::{Epoch, Record, ServerState, SessionKey, lock};

/// What the layer above keeps for a session; it ends with it.
pub trait Attachment: Send + Sync + 'static {
    /// The session is over: fail what runs, take leave of servers. Must not block.
    fn on_end(&self, reason: EndReason);

    /// The URIs that are subscribed to.
    fn subscriptions(&self) -> BTreeSet<String> {
        BTreeSet::new()
    }

    /// The state at servers that an adopter needs.
    fn servers(&self) -> BTreeMap<Box<str>, ServerState> {
        BTreeMap::new()
    }

    /// Where streams of servers stand, as far as it was not told before.
    fn take_cursors(&self) -> Vec<(Box<str>, StreamCursor)> {
        Vec::new()
    }
}

/// Whom a session belongs to; everyone else is told that there is no such session (case-I01, case-I03).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Binding {
    /// Digest of tenant, issuer, subject and client id; never of a credential's bytes (case-F09).
    pub principal: [u8; 32],
    /// The endpoint's path.
    pub endpoint: Arc<str>,
}

impl Binding {
    /// Whether it is made of these, as a record has them.
    pub(super) fn is(&self, principal: [u8; 32], endpoint: &str) -> bool {
        self.principal == principal && *self.endpoint == *endpoint
    }
}

/// How what takes a place came to this replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It began here, or has been here for a while.
    New,
    /// Another owned it before: its caller was let in then, and what it goes on with is not refused for what others
    /// hold, which may be what is left of that owner.
    HandedOver,
}

/// What the caller said in `initialize`.
#[derive(Clone, Debug)]
pub struct Greeting {
    /// The negotiated revision.
    pub revision: Revision,
    /// The raw params.
    pub params: Box<str>,
    /// The client capabilities, as a raw JSON object.
    pub capabilities: Box<str>,
    /// The client's name and version, as a raw JSON object.
    pub client_info: Box<str>,
    /// The flags in `capabilities` that change what a server does.
    pub class: CapabilityClass,
}

/// A live session.
#[derive(Debug)]
pub struct Session<A> {
    /// Its id.
    pub id: SessionId,
    /// Whom it belongs to.
    pub binding: Binding,
    /// What the caller said in `initialize`.
    pub greeting: Greeting,
    /// The owner's epoch.
    pub epoch: Epoch,
    /// Its streams.
    pub streams: Arc<Streams>,
    /// What the layer above keeps for it.
    pub attached: A,
    /// Cancelled when it ends.
    pub ended: CancellationToken,
    pub(super) place: Place,
    /// How the store knows it, if it is an implicit one that this replica owns.
    pub(super) owned: OnceLock<Owned>,
    created: Instant,
    /// When it came to this replica.
    came: Instant,
    /// Milliseconds from `created` to the last activity.
    activity_ms: AtomicU64,
    /// The same for the last activity that was written to the store.
    written_ms: AtomicU64,
    running: AtomicUsize,
    initialized: AtomicBool,
    /// Its live parts are to be taken apart.
    lost: AtomicBool,
    log_level: Mutex<Option<Box<str>>>,
}

/// Where a session is counted, and found.
#[derive(Debug)]
pub(super) enum Place {
    /// By its id, and by this name in the store; under the caps for sessions.
    Named(SessionKey, PrincipalCap),
    /// By whom it is for, under the same caps, counted apart.
    Implicit(ImplicitKey, PrincipalCap),
}

/// Set in the count of running exchanges of a session that takes no more; a bit that no count reaches.
const RETIRED: usize = !(usize::MAX >> 1);

/// Counts one running exchange of a session; while it lives the session is active.
pub struct Running<A> {
    session: Arc<Session<A>>,
}

// === impl Session ===

impl<A> Session<A> {
    pub(super) fn new(
        id: SessionId,
        binding: Binding,
        greeting: Greeting,
        epoch: Epoch,
        streams: Arc<Streams>,
        place: Place,
        attached: A,
    ) -> Self {
        let now = Instant::now();
        Self {
            id,
            binding,
            greeting,
            epoch,
            streams,
            attached,
            place,
            owned: OnceLock::new(),
            ended: CancellationToken::new(),
            created: now,
            came: now,
            activity_ms: AtomicU64::new(0),
            written_ms: AtomicU64::new(0),
            running: AtomicUsize::new(0),
            initialized: AtomicBool::new(false),
            lost: AtomicBool::new(false),
            log_level: Mutex::new(None),
        }
    }

    /// Brings it to the state that its record shows.
    pub(super) fn restored(mut self, record: &Record) -> Self {
        let now = Instant::now();
        self.created = now.checked_sub(record.age).unwrap_or(now);
        let (age, idle) = (self.age(), record.idle_for);
        let activity = u64::try_from(age.saturating_sub(idle).as_millis()).unwrap_or(0);
        self.activity_ms = AtomicU64::new(activity);
        self.written_ms = AtomicU64::new(activity);
        self.initialized = AtomicBool::new(record.initialized);
        self.log_level = Mutex::new(record.log_level.clone());
        self
    }

    /// Whether it was taken over from another owner less than `time` ago.
    pub(super) fn was_handed_over_within(&self, time: Duration) -> bool {
        let named = matches!(self.place, Place::Named(..));
        named && self.epoch > Epoch::FIRST && self.came.elapsed() < time
    }

    /// The negotiated revision.
    pub fn revision(&self) -> Revision {
        self.greeting.revision
    }

    /// Something happened.
    pub fn touch(&self) {
        self.activity_ms.store(self.age_ms(), Relaxed);
    }

    /// How long ago something last happened; open streams and running exchanges count as activity (case-A07).
    pub fn idle_for(&self) -> Duration {
        if self.running.load(Relaxed) > 0 || self.streams.has_readers() {
            self.touch();
        }
        Duration::from_millis(self.age_ms().saturating_sub(self.activity_ms.load(Relaxed)))
    }

    /// How old it is.
    pub fn age(&self) -> Duration {
        self.created.elapsed()
    }

    /// Whether activity must be written to the store again; at most one caller is told so per `every`.
    pub(super) fn write_is_due(&self, every: Duration) -> bool {
        let now = self.age_ms();
        let last = self.written_ms.load(Relaxed);
        let due = Duration::from_millis(now.saturating_sub(last)) >= every;
        due && self.written_ms.compare_exchange(last, now, Relaxed, Relaxed).is_ok()
    }

    /// Counts a running exchange; `None` if `most` run already.
    pub fn run(self: &Arc<Self>, most: usize) -> Option<Running<A>> {
        if self.running.fetch_add(1, Relaxed) >= most {
            self.running.fetch_sub(1, Relaxed);
            return None;
        }
        Some(Running { session: self.clone() })
    }

    /// Shuts it to new exchanges, unless one runs.
    pub(super) fn retire(&self) -> bool {
        self.running.compare_exchange(0, RETIRED, Relaxed, Relaxed).is_ok()
    }

    /// Shuts it to new exchanges, whatever runs.
    pub(super) fn shut(&self) {
        self.running.fetch_or(RETIRED, Relaxed);
    }

    /// Whether it takes no exchanges any more, and another one is to be found or opened.
    pub fn is_retired(&self) -> bool {
        self.running.load(Relaxed) >= RETIRED
    }

    /// Whether it is one that its caller does not know of.
    pub fn is_implicit(&self) -> bool {
        self.implicit_place().is_some()
    }

    /// Where it is found and counted, if it is an implicit one.
    pub(super) fn implicit_place(&self) -> Option<(&ImplicitKey, PrincipalCap)> {
        match &self.place {
            Place::Implicit(key, cap) => Some((key, *cap)),
            Place::Named(..) => None,
        }
    }

    /// Its name in the store, if it has a record there.
    pub(super) fn store_key(&self) -> Option<&SessionKey> {
        match &self.place {
            Place::Named(key, _) => Some(key),
            Place::Implicit(..) => None,
        }
    }

    /// Its name in the store and its epoch there, if it has a record that this replica owns.
    pub(super) fn stored(&self) -> Option<(&SessionKey, Epoch)> {
        match &self.place {
            Place::Named(key, _) => Some((key, self.epoch)),
            Place::Implicit(..) => self.owned.get().map(|owned| (&owned.key, owned.epoch)),
        }
    }

    /// Notes that the store refused a write: another replica owns it, or it has ended.
    pub(super) fn lose(&self) {
        self.lost.store(true, Relaxed);
    }

    /// Whether the store refused a write for it.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Relaxed) || self.streams.journal().is_some_and(|journal| journal.lost().is_cancelled())
    }

    /// How many exchanges run.
    pub fn running(&self) -> usize {
        self.running.load(Relaxed) & !RETIRED
    }

    /// Whether `notifications/initialized` came; set by the first call. Returns whether it was new.
    pub fn set_initialized(&self) -> bool {
        !self.initialized.swap(true, Relaxed)
    }

    /// Whether `notifications/initialized` came.
    pub fn is_initialized(&self) -> bool {
        self.initialized.load(Relaxed)
    }

    /// The level of `logging/setLevel`, if one was set.
    pub fn log_level(&self) -> Option<Box<str>> {
        lock(&self.log_level).clone()
    }

    /// Remembers the level of `logging/setLevel`.
    pub fn set_log_level(&self, level: &str) {
        *lock(&self.log_level) = Some(level.into());
    }

    fn age_ms(&self) -> u64 {
        u64::try_from(self.created.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl<A> Drop for Running<A> {
    fn drop(&mut self) {
        self.session.running.fetch_sub(1, Relaxed);
        self.session.touch();
    }
}
