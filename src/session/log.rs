//! The events of one stream that can still be sent or replayed, and what goes first when there are too many.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use bytes::Bytes;

use crate::protocol::envelope::Message;
use crate::protocol::error::{Code, RpcError};

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
#[derive(Debug)]
pub struct Budget {
    used: AtomicUsize,
    most: usize,
}

/// Counts the events of one session's logs; part of the process's [`Budget`].
#[derive(Debug)]
pub(super) struct Usage {
    events: AtomicUsize,
    /// Payload bytes of events no larger than `max_event`.
    bytes: AtomicUsize,
    max_event: usize,
    total: Arc<Budget>,
}

/// One event that can still be sent.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) place: u64,
    pub(super) kind: EventKind,
    pub(super) payload: Bytes,
}

/// The events of one stream, oldest first.
#[derive(Debug)]
pub(super) struct Log {
    entries: VecDeque<Entry>,
    usage: Arc<Usage>,
}

// === impl Budget ===

impl Budget {
    /// A budget of `most` bytes.
    pub fn new(most: usize) -> Self {
        Self { used: AtomicUsize::new(0), most }
    }

    /// Whether more is used than there is.
    pub fn is_exceeded(&self) -> bool {
        self.used.load(Relaxed) > self.most
    }

    /// Bytes in use.
    pub fn used(&self) -> usize {
        self.used.load(Relaxed)
    }
}

// === impl Usage ===

impl Usage {
    pub(super) fn new(max_event: usize, total: Arc<Budget>) -> Self {
        Self { events: AtomicUsize::new(0), bytes: AtomicUsize::new(0), max_event, total }
    }

    /// How many events, and how many bytes, are over these bounds. An exceeded process budget counts as a byte.
    pub(super) fn surplus(&self, events: usize, bytes: usize) -> (usize, usize) {
        let over = self.bytes.load(Relaxed).saturating_sub(bytes);
        (self.events.load(Relaxed).saturating_sub(events), over.max(usize::from(self.total.is_exceeded())))
    }

    fn add(&self, size: usize) {
        self.events.fetch_add(1, Relaxed);
        if size <= self.max_event {
            self.bytes.fetch_add(size, Relaxed);
        }
        self.total.used.fetch_add(size, Relaxed);
    }

    fn sub(&self, size: usize) {
        self.events.fetch_sub(1, Relaxed);
        if size <= self.max_event {
            self.bytes.fetch_sub(size, Relaxed);
        }
        self.total.used.fetch_sub(size, Relaxed);
    }
}

// === impl Log ===

impl Log {
    pub(super) fn new(usage: Arc<Usage>) -> Self {
        Self { entries: VecDeque::new(), usage }
    }

    pub(super) fn push(&mut self, entry: Entry) {
        self.usage.add(entry.payload.len());
        self.entries.push_back(entry);
    }

    /// Entries behind `place`, oldest first.
    pub(super) fn after(&self, place: u64) -> impl Iterator<Item = &Entry> {
        let from = self.entries.partition_point(|e| e.place <= place);
        self.entries.range(from..)
    }

    /// Drops progress that newer progress of the same exchange supersedes; up to `most` events.
    pub(super) fn drop_superseded(&mut self, most: usize) -> usize {
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
        // The oldest go first.
        let doomed: Vec<u64> = superseded.into_iter().rev().take(most).collect();
        self.drop_where(most, |e| doomed.binary_search(&e.place).is_ok())
    }

    /// Drops notifications, the oldest first; up to `most` events.
    pub(super) fn drop_notifications(&mut self, most: usize) -> usize {
        self.drop_where(most, |e| matches!(e.kind, EventKind::Progress { .. } | EventKind::Notification))
    }

    /// Drops everything.
    pub(super) fn clear(&mut self) -> usize {
        self.drop_where(usize::MAX, |_| true)
    }

    /// Drops requests and puts errors in the place of responses, the oldest first; up to `most` events.
    /// An error with the call's id is what a resumed stream then says (promise 2: no silence).
    pub(super) fn lose_oldest(&mut self, most: usize) -> usize {
        let mut lost = self.drop_where(most, |e| e.kind == EventKind::Request);
        for at in 0..self.entries.len() {
            if lost >= most {
                break;
            }
            let Some(entry) = self.entries.get(at) else { break };
            let error = lost_response(&entry.payload);
            if entry.kind != EventKind::Response || entry.payload.len() <= error.len() {
                continue;
            }
            self.usage.sub(entry.payload.len());
            self.usage.add(error.len());
            if let Some(entry) = self.entries.get_mut(at) {
                entry.payload = error;
            }
            lost += 1;
        }
        lost
    }

    fn drop_where(&mut self, most: usize, doomed: impl Fn(&Entry) -> bool) -> usize {
        let mut dropped = 0;
        let usage = &self.usage;
        self.entries.retain(|entry| {
            let drop = dropped < most && doomed(entry);
            if drop {
                dropped += 1;
                usage.sub(entry.payload.len());
            }
            !drop
        });
        dropped
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.clear();
    }
}

fn lost_response(payload: &Bytes) -> Bytes {
    let id = match Message::parse(payload.clone()) {
        Ok(Message::Response(response)) => Some(response.id().to_owned()),
        _ => None,
    };
    let message = "The response was dropped from the session's full event log before it was read; its outcome is \
                   unknown here. Read streams sooner, or raise streams.maxBytes.";
    RpcError::new(Code::Internal, "response_lost", message).to_message(id.as_deref(), None)
}
