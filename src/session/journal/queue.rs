//! What waits to be written to the store's log, and its bounds. Holds no lock and waits for nothing.
//!
//! Everything here is also in the streams' memory, whose bounds hold for it too; the bounds here are for what comes
//! while the store takes nothing.

use std::collections::{BTreeMap, VecDeque};
use std::task::Waker;

use tokio::time::Instant;

use crate::session::StreamId;
use crate::session::reader::ReaderId;
use crate::store::Epoch;
use crate::store::event_log::{EntryId, LogEntry, Logged};

/// How many entries may wait; then a tenth goes, the oldest first, and their streams count as unlogged.
pub(super) const MOST_ENTRIES: usize = 4096;
/// How many payload bytes may wait; the same happens then.
pub(super) const MOST_BYTES: usize = 16 << 20;
/// How many entries are written at once.
const BATCH_ENTRIES: usize = 256;
/// How many payload bytes are written at once, but for one entry that is larger.
const BATCH_BYTES: usize = 1 << 20;
/// How many entries are taken out at once.
const FORGET_AT_ONCE: usize = 1024;

/// What waits to be written.
#[derive(Debug)]
pub(super) struct Queue {
    epoch: Epoch,
    pub(super) mode: Mode,
    /// The number of the last entry; each gets the next.
    last: u64,
    /// Up to which entry all is stored that was not dropped.
    stored: u64,
    pending: VecDeque<Pending>,
    /// Payload bytes in `pending`.
    bytes: usize,
    /// What is stored and is to be taken out; no more than is stored.
    forgets: Vec<EntryId>,
    /// Streams of which something is missing in the log.
    pub(super) gaps: BTreeMap<StreamId, Gap>,
    /// Readers that wait for something to be stored.
    pub(super) waiting: Vec<(ReaderId, Waker)>,
    /// Whether a writer is at it.
    pub(super) writer: Writer,
}

/// Whether what callers are owed waits for the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// It does.
    Logged,
    /// It does not: the store was too slow, and is behind.
    Unlogged,
    /// Nothing is written any more.
    Over,
}

/// Whether a writer is at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writer {
    Idle,
    Writing,
}

/// What is missing of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gap {
    /// Some event: its end is not logged, so that an adopter looks for the responses.
    Event,
    /// Its beginning: nothing more of it is logged, since an adopter could make nothing of it.
    Beginning,
}

/// An entry that waits.
#[derive(Debug)]
struct Pending {
    number: u64,
    stream: StreamId,
    since: Instant,
    what: Logged,
}

/// Entries to write together.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) entries: Vec<LogEntry>,
    /// Since when the oldest waits.
    pub(super) since: Instant,
}

/// What the writer does next.
#[derive(Debug)]
pub(super) enum Work {
    Append(Batch),
    Forget(Vec<EntryId>),
}

// === impl Queue ===

impl Queue {
    pub(super) fn new(epoch: Epoch) -> Self {
        Self {
            epoch,
            mode: Mode::Logged,
            last: 0,
            stored: 0,
            pending: VecDeque::new(),
            bytes: 0,
            forgets: Vec::new(),
            gaps: BTreeMap::new(),
            waiting: Vec::new(),
            writer: Writer::Idle,
        }
    }

    /// Adds an entry and gives its number; none if it is not to be logged. Over a bound the session is unlogged.
    pub(super) fn push(&mut self, stream: StreamId, what: Logged, now: Instant) -> Option<u64> {
        if self.mode == Mode::Over {
            return None;
        }
        match self.gaps.get(&stream) {
            Some(Gap::Beginning) => return None,
            Some(Gap::Event) if matches!(what, Logged::Ended { .. }) => return None,
            Some(Gap::Event) | None => {}
        }
        self.last += 1;
        self.bytes += size(&what);
        self.pending.push_back(Pending { number: self.last, stream, since: now, what });
        if self.pending.len() > MOST_ENTRIES || self.bytes > MOST_BYTES {
            self.drop_oldest();
        }
        Some(self.last)
    }

    /// A stream has an event that is never stored.
    pub(super) fn skip(&mut self, stream: StreamId) {
        self.gaps.entry(stream).or_insert(Gap::Event);
    }

    /// Takes an entry out: of what waits, or of what is stored.
    pub(super) fn forget(&mut self, id: EntryId) {
        if self.mode == Mode::Over {
            return;
        }
        let waits = || self.pending.binary_search_by_key(&id.number, |p| p.number).ok();
        let waits = if id.epoch == self.epoch { waits() } else { None };
        match waits.and_then(|at| self.pending.remove(at)) {
            Some(pending) => self.bytes -= size(&pending.what),
            // At the bound the oldest stay in the log until it goes as a whole.
            None if self.forgets.len() >= MOST_ENTRIES => {}
            None => self.forgets.push(id),
        }
    }

    /// What is to be written next. What is to be taken out comes behind all that is to be written, so that it is
    /// there.
    pub(super) fn take(&mut self) -> Option<Work> {
        if let Some(since) = self.pending.front().map(|p| p.since) {
            let (mut entries, mut bytes) = (Vec::new(), 0);
            while let Some(next) = self.pending.front() {
                let size = size(&next.what);
                if entries.len() == BATCH_ENTRIES || (bytes + size > BATCH_BYTES && !entries.is_empty()) {
                    break;
                }
                let Some(next) = self.pending.pop_front() else { break };
                bytes += size;
                let id = EntryId { epoch: self.epoch, number: next.number };
                entries.push(LogEntry { id, what: next.what });
            }
            self.bytes -= bytes;
            return Some(Work::Append(Batch { entries, since }));
        }
        if self.forgets.is_empty() {
            return None;
        }
        let at_once = self.forgets.len().min(FORGET_AT_ONCE);
        Some(Work::Forget(self.forgets.drain(..at_once).collect()))
    }

    /// What could not be taken out is tried again with what is written next.
    pub(super) fn put_back(&mut self, ids: Vec<EntryId>) {
        self.forgets.extend(ids);
    }

    /// Notes that what was taken is written, while nothing is being written; gives up to which entry all is.
    pub(super) fn all_taken_is_written(&mut self) -> u64 {
        self.stored = self.written_through();
        self.stored
    }

    /// Up to which entry all is written while none is being written.
    pub(super) fn written_through(&self) -> u64 {
        self.pending.front().map_or(self.last, |next| next.number - 1)
    }

    /// Whether the beginning of a stream is in the log, as entry `number`.
    pub(super) fn has_stored(&self, stream: StreamId, number: u64) -> bool {
        number <= self.stored && self.gaps.get(&stream) != Some(&Gap::Beginning)
    }

    /// Whether nothing waits.
    pub(super) fn is_drained(&self) -> bool {
        self.pending.is_empty()
    }

    /// Whether there is something to do.
    pub(super) fn has_work(&self) -> bool {
        !self.pending.is_empty() || !self.forgets.is_empty()
    }

    /// Whether all is written, or nothing is written any more.
    pub(super) fn is_settled(&self) -> bool {
        self.mode == Mode::Over || (self.pending.is_empty() && self.writer == Writer::Idle)
    }

    /// Nothing is written any more.
    pub(super) fn end(&mut self) {
        self.mode = Mode::Over;
        self.pending = VecDeque::new();
        self.forgets = Vec::new();
        self.gaps = BTreeMap::new();
        self.bytes = 0;
    }

    /// Drops the oldest entries down to nine tenths of the bounds. Where streams begin stays for last: it is small,
    /// and without it an adopter cannot say that an outcome is unknown.
    fn drop_oldest(&mut self) {
        self.mode = Mode::Unlogged;
        let (most, most_bytes) = (MOST_ENTRIES - MOST_ENTRIES / 10, MOST_BYTES - MOST_BYTES / 10);
        for of in [Gap::Event, Gap::Beginning] {
            let mut surplus = self.pending.len().saturating_sub(most);
            let (gaps, bytes) = (&mut self.gaps, &mut self.bytes);
            self.pending.retain(|p| {
                let doomed = of == Gap::Beginning || !matches!(p.what, Logged::Began { .. });
                if !doomed || (surplus == 0 && *bytes <= most_bytes) {
                    return true;
                }
                surplus = surplus.saturating_sub(1);
                *bytes -= size(&p.what);
                gaps.entry(p.stream).and_modify(|gap| *gap = (*gap).max(of)).or_insert(of);
                false
            });
            // Nothing may say that a stream is whole which is not.
            self.pending.retain(|p| match gaps.get(&p.stream) {
                Some(Gap::Event) => !matches!(p.what, Logged::Ended { .. }),
                Some(Gap::Beginning) => {
                    *bytes -= size(&p.what);
                    false
                }
                None => true,
            });
        }
    }
}

fn size(what: &Logged) -> usize {
    match what {
        Logged::Event { payload, .. } => payload.len(),
        Logged::Adopted | Logged::Began { .. } | Logged::Ended { .. } => 0,
    }
}
