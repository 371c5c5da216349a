//! The journal of one session: what its streams write to the store's event log, for whoever adopts the session.
//!
//! Entries are queued in the order of their events, under the lock of the streams, and written by one task in
//! batches. What a caller is owed (responses, requests) leaves once it is stored; if the store does not take it in
//! a second, it leaves all the same, and the session counts as unlogged until all is written. Knows no stream: the
//! streams tell it what there is, and ask what may go out.

mod queue;
mod writer;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::queue::{Mode, Queue};
use super::StreamId;
use super::reader::ReaderId;
use crate::protocol::envelope::{Message, Request};
use crate::store::event_log::{EntryId, LogEntry, Logged, Question};
use crate::store::{Epoch, EventLog, SessionKey, StoreError, lock};

/// The id of what is not in the store's log.
pub(super) const UNLOGGED: EntryId = EntryId { epoch: Epoch(0), number: 0 };

/// How many entries an adopter reads at once.
const PAGE: usize = 512;

/// Writes what a session's streams tell it to the store. Dropped with the streams, and then writes no more.
pub struct Journal {
    shared: Arc<Shared>,
}

/// What the stream of a POST is about, for whoever has to answer in its owner's place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// The caller's request ids, raw.
    pub requests: Vec<Box<str>>,
    /// The method of the first.
    pub method: Box<str>,
    /// The server that they went to, once known.
    pub server: Option<Box<str>>,
}

/// What an adopter needs to go on with an event at the server that it came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The server's own id of the event.
    pub cursor: Option<Box<str>>,
    /// For a server's request: where its answer goes.
    pub question: Option<Question>,
}

/// Whether an event may go to its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// It may.
    Free,
    /// Not before it is stored.
    Held,
    /// Never: the session has another owner, who answers in its place.
    Lost,
}

/// What the streams and the writer share.
struct Shared {
    log: Arc<dyn EventLog>,
    key: SessionKey,
    epoch: Epoch,
    tasks: TaskTracker,
    queue: Mutex<Queue>,
    /// Up to which entry of this epoch events may go out; changed under the queue's lock.
    released: AtomicU64,
    /// Set once another owner has the session: what is not stored never goes out.
    fenced: AtomicBool,
    /// How often the session became unlogged since last asked.
    unlogged: AtomicU64,
    /// Cancelled when the store refuses for good.
    lost: CancellationToken,
    /// Cancelled when nothing is written any more.
    over: CancellationToken,
    /// Told when all is written.
    settled: Notify,
}

// === impl About ===

impl About {
    /// What a stream is about that is there for these requests.
    pub fn of(requests: &[Request]) -> Self {
        let method = requests.first().map_or("", |first| first.method().as_str());
        Self {
            requests: requests.iter().map(|request| request.id().into()).collect(),
            method: method.into(),
            server: None,
        }
    }

    /// What a stream is about that is there for this response only.
    pub fn answered_by(response: &Bytes) -> Self {
        match Message::parse(response.clone()) {
            Ok(Message::Response(response)) => {
                Self { requests: vec![response.id().into()], ..Self::default() }
            }
            _ => Self::default(),
        }
    }
}

// === impl Journal ===

impl Journal {
    /// The journal of an owner. The writer runs on `tasks` while there is something to write.
    pub fn new(log: Arc<dyn EventLog>, key: SessionKey, epoch: Epoch, tasks: TaskTracker) -> Self {
        let shared = Shared {
            log,
            key,
            epoch,
            tasks,
            queue: Mutex::new(Queue::new(epoch)),
            released: AtomicU64::new(0),
            fenced: AtomicBool::new(false),
            unlogged: AtomicU64::new(0),
            lost: CancellationToken::new(),
            over: CancellationToken::new(),
            settled: Notify::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// An adopter's first act: from here on the store refuses what earlier owners write.
    ///
    /// # Errors
    /// [`StoreError`]
    pub async fn adopt(&self) -> Result<(), StoreError> {
        let Shared { log, key, epoch, .. } = &*self.shared;
        // Streams count from 1.
        let id = EntryId { epoch: *epoch, number: 0 };
        log.append(key.clone(), vec![LogEntry { id, what: Logged::Adopted }]).await
    }

    /// The whole log, for `Streams::restore`; it is as bounded as the streams of the owners who wrote it.
    ///
    /// # Errors
    /// [`StoreError`]
    pub async fn read_back(&self) -> Result<Vec<LogEntry>, StoreError> {
        let Shared { log, key, .. } = &*self.shared;
        let mut all: Vec<LogEntry> = Vec::new();
        loop {
            let page = log.read(key.clone(), all.last().map(|entry| entry.id), PAGE).await?;
            let is_last = page.len() < PAGE;
            all.extend(page);
            if is_last {
                return Ok(all);
            }
        }
    }

    /// Cancelled once the store refused a write for good: the session has another owner, or is no more.
    pub fn lost(&self) -> &CancellationToken {
        &self.shared.lost
    }

    /// Whether events go out at this moment that are not stored.
    pub fn is_unlogged(&self) -> bool {
        lock(&self.shared.queue).mode == Mode::Unlogged
    }

    /// How often the session became unlogged since last asked.
    pub fn take_unlogged(&self) -> u64 {
        self.shared.unlogged.swap(0, Ordering::Relaxed)
    }

    /// Waits until all that was told is written, or nothing is written any more: before the session is released.
    pub async fn settled(&self) {
        loop {
            let settled = self.shared.settled.notified();
            tokio::pin!(settled);
            settled.as_mut().enable();
            if lock(&self.shared.queue).is_settled() {
                return;
            }
            settled.await;
        }
    }

    /// Writes no more; what waits goes out, unless another owner answers for it.
    pub(super) fn stop(&self) {
        self.shared.end();
    }

    /// A stream began.
    pub(super) fn began(&self, stream: StreamId, about: About) -> EntryId {
        let About { requests, method, server } = about;
        self.record(stream, Logged::Began { stream: stream.into(), requests, method, server })
    }

    /// An event was added to a stream that began here.
    pub(super) fn event(&self, stream: StreamId, place: u64, payload: Bytes, origin: Origin) -> EntryId {
        let Origin { cursor, question } = origin;
        self.record(stream, Logged::Event { stream: stream.into(), place, payload, cursor, question })
    }

    /// A stream is complete. Not said of one that the log does not hold whole: an adopter shall look for what is
    /// missing.
    pub(super) fn ended(&self, stream: StreamId) -> EntryId {
        self.record(stream, Logged::Ended { stream: stream.into() })
    }

    /// A stream has something that is never stored.
    pub(super) fn skipped(&self, stream: StreamId) {
        lock(&self.shared.queue).skip(stream);
    }

    /// The streams keep these no longer.
    pub(super) fn forget(&self, entries: Vec<EntryId>) {
        if entries.is_empty() {
            return;
        }
        let mut queue = lock(&self.shared.queue);
        for id in entries {
            queue.forget(id);
        }
        self.shared.rouse(&mut queue);
    }

    /// Forgets of which streams something is missing, but for these.
    pub(super) fn retain(&self, kept: impl Fn(StreamId) -> bool) {
        lock(&self.shared.queue).gaps.retain(|stream, _| kept(*stream));
    }

    /// Whether what a caller is owed may go out.
    pub(super) fn hold(&self, id: EntryId) -> Hold {
        let shared = &self.shared;
        let of_others = id != UNLOGGED && id.epoch != shared.epoch;
        if of_others {
            return Hold::Free;
        }
        let stored = id != UNLOGGED && id.number <= shared.released.load(Ordering::Acquire);
        if stored {
            Hold::Free
        } else if shared.fenced.load(Ordering::Acquire) {
            Hold::Lost
        } else if id == UNLOGGED {
            Hold::Free
        } else {
            Hold::Held
        }
    }

    /// Whether the log surely knows of a stream that began as `began`: an adopter can go on with it.
    pub(super) fn knows(&self, stream: StreamId, began: EntryId) -> bool {
        let of_others = began != UNLOGGED && began.epoch != self.shared.epoch;
        of_others || (began != UNLOGGED && lock(&self.shared.queue).has_stored(stream, began.number))
    }

    /// Wakes a reader once something more may go out; at once if that is so already.
    pub(super) fn park(&self, reader: ReaderId, id: EntryId, waker: &Waker) {
        let mut queue = lock(&self.shared.queue);
        if self.hold(id) != Hold::Held {
            drop(queue);
            return waker.wake_by_ref();
        }
        // One place for each reader, so no more than there are connections.
        match queue.waiting.iter_mut().find(|(other, _)| *other == reader) {
            Some((_, old)) => old.clone_from(waker),
            None => queue.waiting.push((reader, waker.clone())),
        }
    }

    fn record(&self, stream: StreamId, what: Logged) -> EntryId {
        let mut queue = lock(&self.shared.queue);
        let before = queue.mode;
        let Some(number) = queue.push(stream, what, Instant::now()) else { return UNLOGGED };
        if queue.mode != before {
            self.shared.is_unlogged(&mut queue).into_iter().for_each(Waker::wake);
        }
        self.shared.rouse(&mut queue);
        EntryId { epoch: self.shared.epoch, number }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.stop();
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").field("epoch", &self.shared.epoch).finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(super) mod scripted;
#[cfg(test)]
mod tests;
