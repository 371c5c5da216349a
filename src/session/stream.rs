//! One stream: its log, who reads it, and whether more will come.

use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use bytes::Bytes;

use super::event::StreamId;
use super::journal::{About, Journal, Origin, UNLOGGED};
use super::log::{Entry, EventKind, Log, Usage};
use super::reader::ReaderId;
use super::stream_places::StreamPlace;

/// How many events may wait for a reader that does not come back for them; then it loses its connection.
const LAG_EVENTS: u32 = 16;
/// How long such a reader may stay away.
const LAG_TIME: std::time::Duration = std::time::Duration::from_secs(1);
/// How many older connections of the standalone GET stay open beside the newest.
const STANDBYS: usize = 3;

/// What a stream belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamRole {
    /// A POST whose answer became a stream.
    Post,
    /// The standalone GET.
    Get,
    /// A `subscriptions/listen`: it tells of changes as the GET does, and is read once as the stream of a POST is.
    Listen,
}

/// When the reader hears of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// At once.
    Now,
    /// With those that come right behind it, so that they leave in one write.
    Later,
}

/// Whether more will come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Open,
    Complete { since: Instant },
}

/// Why a reader must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// Another connection took its place, or the stream is over: nothing more to say.
    Plain,
    /// The caller shall come back: `retry:` behind what there is.
    Retry,
    /// The same, and nothing of what there is: another replica may give it to the caller.
    RetryAtOnce,
}

/// One connection that reads the stream.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) id: ReaderId,
    /// Place of the last event it was given.
    pub(super) cursor: u64,
    pub(super) waker: Option<Waker>,
    pub(super) ending: Option<Ending>,
    /// Its place among the long-lived streams, if it takes one.
    pub(super) place: Option<StreamPlace>,
    /// Events that came since it last asked, and when the first of them did.
    unread: u32,
    unread_since: Option<Instant>,
}

/// An event as the journal is told of it.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) kind: EventKind,
    pub(super) payload: Bytes,
    pub(super) origin: Origin,
}

/// One stream of a session.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) role: StreamRole,
    pub(super) log: Log,
    pub(super) phase: Phase,
    /// Newest last.
    pub(super) slots: Vec<Slot>,
    /// The highest place any reader was given.
    pub(super) delivered: u64,
    /// Whether a caller was ever given an event id of this stream; without one nobody can resume it.
    pub(super) resumable: bool,
    /// What it is about, until that is logged.
    pub(super) about: Option<About>,
    last_place: u64,
}

// === impl Stream ===

impl Stream {
    pub(super) fn new(role: StreamRole, usage: Arc<Usage>) -> Self {
        Self {
            role,
            log: Log::new(usage),
            phase: Phase::Open,
            slots: Vec::new(),
            delivered: 0,
            resumable: false,
            about: None,
            last_place: 0,
        }
    }

    /// Adds an event and wakes the reader. `false` if nobody can ever read it.
    pub(super) fn push(&mut self, kind: EventKind, payload: Bytes, now: Instant, wake: Wake) -> bool {
        let unreadable = self.role != StreamRole::Get && self.slots.is_empty() && !self.resumable;
        if unreadable || self.phase != Phase::Open {
            return false;
        }
        self.last_place += 1;
        self.log.push(Entry { place: self.last_place, kind, payload, id: UNLOGGED });
        if let Some(slot) = self.current() {
            slot.note_unread(now);
            if wake == Wake::Now {
                slot.wake();
            }
            if slot.ending.is_some() {
                self.promote();
            }
        }
        true
    }

    /// Tells the journal that the stream began, unless it knows.
    pub(super) fn journal_began(&mut self, journal: &Journal, id: StreamId) {
        if let Some(about) = self.about.take() {
            self.log.began = journal.began(id, about);
        }
    }

    /// Tells the journal of the event just added, but for one over `max_event` bytes.
    pub(super) fn journal_event(&mut self, journal: &Journal, id: StreamId, event: Told, max_event: usize) {
        self.journal_began(journal, id);
        let Told { kind, payload, origin } = event;
        if payload.len() <= max_event {
            let logged = journal.event(id, self.last_place, payload, origin);
            self.log.is_logged(self.last_place, logged);
        } else if kind == EventKind::Response {
            journal.skipped(id);
        }
    }

    /// Tells the journal that the stream is complete, if it is not yet and the journal knows of it.
    pub(super) fn journal_ended(&mut self, journal: &Journal, id: StreamId) {
        if self.phase == Phase::Open && self.log.began != UNLOGGED {
            self.log.ended = journal.ended(id);
        }
    }

    /// Whether a caller that loses its connection can come back for the rest: a POST's caller only once it was
    /// given an event id, which before 2025-11-25 comes with the first message.
    pub(super) fn can_be_left(&self) -> bool {
        self.role == StreamRole::Get || self.resumable
    }

    /// Wakes whoever gets the messages.
    pub(super) fn wake_reader(&mut self) {
        if let Some(slot) = self.current() {
            slot.wake();
        }
    }

    /// The connection that gets the messages: the newest that is not to end; without one, the newest, which takes
    /// along what there is as it ends.
    pub(super) fn reader(&self) -> Option<ReaderId> {
        let going_on = self.slots.iter().rev().find(|s| s.ending.is_none());
        going_on.or(self.slots.last()).map(|s| s.id)
    }

    /// Whether some connection goes on reading.
    pub(super) fn is_attended(&self) -> bool {
        self.slots.iter().any(|s| s.ending.is_none())
    }

    /// Up to which place an event may be lost: what waits for a connection that reads is on its way.
    pub(super) fn expendable(&self) -> u64 {
        if self.is_attended() { self.delivered } else { u64::MAX }
    }

    /// No more will come; readers end once they have read it all.
    pub(super) fn complete(&mut self, now: Instant) {
        if self.phase == Phase::Open {
            self.phase = Phase::Complete { since: now };
        }
        self.wake_all();
    }

    /// Makes a new connection the reader; older ones end (POST) or stand by (GET).
    pub(super) fn attach(&mut self, id: ReaderId, cursor: u64) {
        match self.role {
            StreamRole::Post | StreamRole::Listen => self.slots.iter_mut().for_each(|s| s.end(Ending::Plain)),
            StreamRole::Get => {
                let going_on = self.slots.iter_mut().filter(|s| s.ending.is_none());
                going_on.rev().skip(STANDBYS).for_each(|s| s.end(Ending::Plain));
            }
        }
        let slot = Slot { id, cursor, waker: None, ending: None, place: None, unread: 0, unread_since: None };
        self.slots.push(slot);
    }

    /// Forgets a connection. If it was the one that read, the next newest goes on where the stream is.
    pub(super) fn detach(&mut self, id: ReaderId) {
        let read = self.reader() == Some(id);
        self.slots.retain(|s| s.id != id);
        if read {
            self.promote();
        }
    }

    /// Ends one connection so that its caller comes back.
    pub(super) fn end_reader(&mut self, id: ReaderId, ending: Ending) {
        let read = self.reader() == Some(id);
        self.slots.iter_mut().filter(|s| s.id == id).for_each(|s| s.end(ending));
        if read && self.reader() != Some(id) {
            self.promote();
        }
    }

    /// Ends all connections so that their callers come back.
    pub(super) fn end_readers(&mut self, ending: Ending) {
        self.slots.iter_mut().for_each(|s| s.end(ending));
    }

    /// Lets a standby take over from where the stream is.
    fn promote(&mut self) {
        let delivered = self.delivered;
        if let Some(slot) = self.current() {
            slot.cursor = slot.cursor.max(delivered);
            slot.wake();
        }
    }

    fn current(&mut self) -> Option<&mut Slot> {
        let id = self.reader()?;
        self.slots.iter_mut().find(|s| s.id == id)
    }

    pub(super) fn wake_all(&mut self) {
        self.slots.iter_mut().for_each(Slot::wake);
    }

    /// Whether a resume from `place` would get nothing any more.
    pub(super) fn is_over_after(&self, place: u64) -> bool {
        self.phase != Phase::Open && self.log.after(place).next().is_none()
    }

    /// The place that will be given out next is behind this one.
    pub(super) fn last_place(&self) -> u64 {
        self.last_place
    }

    /// Goes on where an earlier owner was: what the log shows up to `shown` was given to a caller, who may have seen
    /// more up to `last`.
    pub(super) fn go_on_from(&mut self, shown: u64, last: u64) {
        (self.delivered, self.last_place, self.resumable) = (shown, last, true);
    }

    /// Whether every event was given to a reader and no more will come.
    pub(super) fn is_read(&self) -> bool {
        self.phase != Phase::Open && self.delivered >= self.last_place
    }
}

// === impl Slot ===

impl Slot {
    pub(super) fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    pub(super) fn end(&mut self, ending: Ending) {
        match ending {
            Ending::RetryAtOnce => self.ending = Some(ending),
            Ending::Plain | Ending::Retry => _ = self.ending.get_or_insert(ending),
        }
        // Whoever takes no events any more takes no place, however long its connection lasts.
        self.place = None;
        self.wake();
    }

    /// The reader came for events.
    pub(super) fn seen(&mut self) {
        self.unread = 0;
        self.unread_since = None;
    }

    /// A caller that does not read keeps its log, not its connection.
    fn note_unread(&mut self, now: Instant) {
        self.unread = self.unread.saturating_add(1);
        let since = *self.unread_since.get_or_insert(now);
        if self.unread > LAG_EVENTS && now.duration_since(since) > LAG_TIME {
            self.end(Ending::Retry);
        }
    }
}
