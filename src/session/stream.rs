//! One stream: its log, who reads it, and whether more will come.

use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use bytes::Bytes;

use super::log::{Entry, EventKind, Log, Usage};
use super::reader::ReaderId;

/// How many events may wait for a reader that does not come back for them; then it loses its connection.
const LAG_EVENTS: u32 = 16;
/// How long such a reader may stay away.
const LAG_TIME: std::time::Duration = std::time::Duration::from_secs(1);
/// How many older connections of the standalone GET stay open beside the newest (design section 6).
const STANDBYS: usize = 3;

/// What a stream belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamRole {
    /// A POST whose answer became a stream.
    Post,
    /// The standalone GET.
    Get,
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
    /// The caller shall come back: `retry:` first.
    Retry,
}

/// One connection that reads the stream.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) id: ReaderId,
    /// Place of the last event it was given.
    pub(super) cursor: u64,
    pub(super) waker: Option<Waker>,
    pub(super) ending: Option<Ending>,
    /// Events that came since it last asked, and when the first of them did.
    unread: u32,
    unread_since: Option<Instant>,
}

/// One stream of a session.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) role: StreamRole,
    pub(super) log: Log,
    pub(super) phase: Phase,
    /// Newest last: it is the one that gets the messages.
    pub(super) slots: Vec<Slot>,
    /// The highest place any reader was given.
    pub(super) delivered: u64,
    /// Whether a caller was ever given an event id of this stream; without one nobody can resume it.
    pub(super) resumable: bool,
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
            last_place: 0,
        }
    }

    /// Adds an event and wakes the reader. `false` if nobody can ever read it.
    pub(super) fn push(&mut self, kind: EventKind, payload: Bytes, now: Instant) -> bool {
        if self.role == StreamRole::Post && self.slots.is_empty() && !self.resumable {
            return false;
        }
        self.last_place += 1;
        self.log.push(Entry { place: self.last_place, kind, payload });
        if let Some(slot) = self.slots.last_mut() {
            slot.note_unread(now);
            slot.wake();
        }
        true
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
            StreamRole::Post => self.slots.iter_mut().for_each(|s| s.end(Ending::Plain)),
            StreamRole::Get => {
                let standbys = self.slots.len();
                let surplus = (standbys + 1).saturating_sub(STANDBYS + 1);
                self.slots.iter_mut().take(surplus).for_each(|s| s.end(Ending::Plain));
            }
        }
        let slot = Slot { id, cursor, waker: None, ending: None, unread: 0, unread_since: None };
        self.slots.push(slot);
    }

    /// Forgets a connection; the next newest goes on where the stream is.
    pub(super) fn detach(&mut self, id: ReaderId) {
        self.slots.retain(|s| s.id != id);
        let delivered = self.delivered;
        if let Some(slot) = self.slots.last_mut() {
            slot.cursor = slot.cursor.max(delivered);
            slot.wake();
        }
    }

    /// Ends all connections so that their callers come back.
    pub(super) fn end_readers(&mut self, ending: Ending) {
        self.slots.iter_mut().for_each(|s| s.end(ending));
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
        self.ending.get_or_insert(ending);
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
