//! The events of one stream that can still be sent or replayed, and what goes first when there are too many.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use bytes::Bytes;

use super::journal::UNLOGGED;
use crate::protocol::envelope::Message;
use crate::protocol::error::{Code, RpcError};
use crate::store::event_log::EntryId;
use crate::store::lock;

/// What an event is, as far as trimming cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// Progress of an exchange; newer progress of the same one supersedes it.
    Progress {
        /// Tells exchanges apart.
        exchange: u64,
    },
    /// Any other notification.
    Notification,
    /// A server's request to the caller.
    Request,
    /// The response to one of the caller's requests.
    Response,
}

/// Counts the bytes of all logs of the process against `streams.maxTotal`.
///
/// Once more is used than there is, a session that holds more than an equal share makes room as it logs further
/// events, and at the next sweep in any case; one that holds less loses nothing for it (promise 1). So at most
/// twice the budget is in use between two sweeps.
#[derive(Debug)]
pub struct Budget {
    used: AtomicUsize,
    most: usize,
    /// Sessions that share it.
    sharers: AtomicUsize,
}

/// Counts the events of one session's logs; part of the process's [`Budget`].
#[derive(Debug)]
pub(super) struct Usage {
    events: AtomicUsize,
    /// Payload bytes of events no larger than `max_event`.
    bytes: AtomicUsize,
    /// Payload bytes of all events.
    held: AtomicUsize,
    max_event: usize,
    total: Arc<Budget>,
    /// What is in the store's log and went here; there are no more of them than events.
    gone: Mutex<Vec<EntryId>>,
}

/// What a session's logs hold beyond their bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Surplus {
    /// Events over `streams.maxEvents`.
    pub(super) events: usize,
    /// Bytes over `streams.maxBytes`, or over the session's share of an exceeded `streams.maxTotal`.
    pub(super) bytes: usize,
    /// Size up to which losing an event helps.
    pub(super) within: usize,
}

/// One event that can still be sent.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) place: u64,
    pub(super) kind: EventKind,
    pub(super) payload: Bytes,
    /// Its place in the store's log.
    pub(super) id: EntryId,
}

/// The events of one stream, oldest first.
#[derive(Debug)]
pub(super) struct Log {
    entries: VecDeque<Entry>,
    usage: Arc<Usage>,
    /// Where the store's log says that the stream began.
    pub(super) began: EntryId,
    /// Where it says that the stream is complete.
    pub(super) ended: EntryId,
    /// Places whose events are others than those in the store's log.
    changed: Vec<u64>,
}

// === impl Budget ===

impl Budget {
    /// A budget of `most` bytes.
    pub fn new(most: usize) -> Self {
        Self { used: AtomicUsize::new(0), most, sharers: AtomicUsize::new(0) }
    }

    /// Whether more is used than there is.
    pub fn is_exceeded(&self) -> bool {
        self.used.load(Relaxed) > self.most
    }

    /// Bytes in use.
    pub fn used(&self) -> usize {
        self.used.load(Relaxed)
    }

    fn share(&self) -> usize {
        self.most / self.sharers.load(Relaxed).max(1)
    }
}

// === impl Usage ===

impl Usage {
    pub(super) fn new(max_event: usize, total: Arc<Budget>) -> Self {
        total.sharers.fetch_add(1, Relaxed);
        Self {
            events: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            held: AtomicUsize::new(0),
            max_event,
            total,
            gone: Mutex::default(),
        }
    }

    /// What is over these bounds, if anything is.
    pub(super) fn surplus(&self, events: usize, bytes: usize) -> Option<Surplus> {
        let events = self.events.load(Relaxed).saturating_sub(events);
        let bytes = self.bytes.load(Relaxed).saturating_sub(bytes);
        let share = if self.total.is_exceeded() { self.total.share() } else { usize::MAX };
        let unfair = self.held.load(Relaxed).saturating_sub(share);
        // What is larger than `max_event` is not counted in `bytes`, so losing it would not help there.
        let within = if unfair > 0 { usize::MAX } else { self.max_event };
        let surplus = Surplus { events, bytes: bytes.max(unfair), within };
        (surplus.events > 0 || surplus.bytes > 0).then_some(surplus)
    }

    /// Takes what is to be taken out of the store's log.
    pub(super) fn take_gone(&self) -> Vec<EntryId> {
        std::mem::take(&mut lock(&self.gone))
    }

    fn goes(&self, id: EntryId) {
        if id != UNLOGGED {
            lock(&self.gone).push(id);
        }
    }

    fn add(&self, size: usize) {
        self.events.fetch_add(1, Relaxed);
        self.held.fetch_add(size, Relaxed);
        if size <= self.max_event {
            self.bytes.fetch_add(size, Relaxed);
        }
        self.total.used.fetch_add(size, Relaxed);
    }

    fn sub(&self, size: usize) {
        self.events.fetch_sub(1, Relaxed);
        self.held.fetch_sub(size, Relaxed);
        if size <= self.max_event {
            self.bytes.fetch_sub(size, Relaxed);
        }
        self.total.used.fetch_sub(size, Relaxed);
    }
}

impl Drop for Usage {
    fn drop(&mut self) {
        self.total.sharers.fetch_sub(1, Relaxed);
    }
}

// === impl Log ===

impl Log {
    pub(super) fn new(usage: Arc<Usage>) -> Self {
        Self { entries: VecDeque::new(), usage, began: UNLOGGED, ended: UNLOGGED, changed: Vec::new() }
    }

    pub(super) fn push(&mut self, entry: Entry) {
        self.usage.add(entry.payload.len());
        self.entries.push_back(entry);
    }

    /// Notes where the event at `place` is in the store's log.
    pub(super) fn is_logged(&mut self, place: u64, id: EntryId) {
        let at = self.entries.partition_point(|e| e.place < place);
        if let Some(entry) = self.entries.get_mut(at).filter(|e| e.place == place) {
            entry.id = id;
        }
    }

    /// Takes what is to be written to the store's log in the place of what is there.
    pub(super) fn take_changed(&mut self) -> Vec<(u64, Bytes)> {
        let changed = std::mem::take(&mut self.changed);
        let now = |place: u64| self.after(place.saturating_sub(1)).next().filter(|e| e.place == place);
        changed.into_iter().filter_map(|place| Some((place, now(place)?.payload.clone()))).collect()
    }

    /// Entries behind `place`, oldest first.
    pub(super) fn after(&self, place: u64) -> impl Iterator<Item = &Entry> {
        let from = self.entries.partition_point(|e| e.place <= place);
        self.entries.range(from..)
    }

    /// Drops progress that newer progress of the same exchange supersedes, the oldest first, until enough went.
    pub(super) fn drop_superseded(&mut self, surplus: Surplus) -> usize {
        let mut newest: Vec<u64> = Vec::new();
        let mut superseded: Vec<u64> = Vec::new();
        for entry in self.entries.iter().rev() {
            if let EventKind::Progress { exchange } = entry.kind {
                if newest.contains(&exchange) {
                    superseded.push(entry.place);
                } else {
                    newest.push(exchange);
                }
            }
        }
        superseded.reverse();
        self.drop_where(surplus, |e| superseded.binary_search(&e.place).is_ok())
    }

    /// Drops notifications, the oldest first, until enough went.
    pub(super) fn drop_notifications(&mut self, surplus: Surplus) -> usize {
        self.drop_where(surplus, |e| matches!(e.kind, EventKind::Progress { .. } | EventKind::Notification))
    }

    /// Drops everything.
    pub(super) fn clear(&mut self) -> usize {
        self.drop_where(Surplus { events: usize::MAX, bytes: 0, within: 0 }, |_| true)
    }

    /// Drops requests up to place `through`, the oldest first, until enough went.
    pub(super) fn drop_requests(&mut self, surplus: Surplus, through: u64) -> usize {
        self.drop_where(surplus, |e| e.kind == EventKind::Request && e.place <= through)
    }

    /// Puts errors in the place of responses up to place `through`, the oldest first, until enough bytes went.
    /// An error with the call's id is what a resumed stream then says (promise 2: no silence).
    pub(super) fn lose_responses(&mut self, surplus: Surplus, through: u64) -> usize {
        let (mut lost, mut bytes) = (0, surplus.bytes);
        for entry in &mut self.entries {
            let size = entry.payload.len();
            if bytes == 0 || entry.place > through {
                break;
            }
            if entry.kind != EventKind::Response || size > surplus.within || size <= LOST_AT_MOST {
                continue;
            }
            let error = lost_response(&entry.payload);
            self.usage.sub(size);
            self.usage.add(error.len());
            bytes = bytes.saturating_sub(size.saturating_sub(error.len()));
            entry.payload = error;
            if entry.id != UNLOGGED {
                self.usage.goes(std::mem::replace(&mut entry.id, UNLOGGED));
                self.changed.push(entry.place);
            }
            lost += 1;
        }
        lost
    }

    fn drop_where(&mut self, surplus: Surplus, doomed: impl Fn(&Entry) -> bool) -> usize {
        let Surplus { mut events, mut bytes, within } = surplus;
        let mut dropped = 0;
        let usage = &self.usage;
        self.entries.retain(|entry| {
            let size = entry.payload.len();
            let helps = events > 0 || (bytes > 0 && size <= within);
            let drop = helps && doomed(entry);
            if drop {
                dropped += 1;
                events = events.saturating_sub(1);
                bytes = bytes.saturating_sub(if size <= within { size } else { 0 });
                usage.sub(size);
                usage.goes(entry.id);
            }
            !drop
        });
        dropped
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.clear();
        self.usage.goes(self.began);
        self.usage.goes(self.ended);
    }
}

/// Losing a response smaller than this gains nothing: the error is about as large, without an endless id.
const LOST_AT_MOST: usize = 1024;

fn lost_response(payload: &Bytes) -> Bytes {
    let id = match Message::parse(payload.clone()) {
        Ok(Message::Response(response)) => Some(response.id().to_owned()),
        _ => None,
    };
    let message = "The response was dropped from the session's full event log before it was read; its outcome is \
                   unknown here. Read streams sooner, or raise streams.maxBytes.";
    RpcError::new(Code::Internal, "response_lost", message).to_message(id.as_deref(), None)
}

#[cfg(test)]
mod tests;
