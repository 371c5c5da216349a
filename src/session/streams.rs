//! All streams of one session under one lock: numbering, bounds, replay.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::Notify;

use super::event::{EventId, StreamId};
use super::journal::{About, Journal, Origin};
use super::log::{Budget, EventKind, Surplus, Usage};
use super::notices::{Notice, Notices};
use super::reader::{Reader, ReaderId};
use super::restore::first_place;
use super::stream::{Ending, Phase, Stream, StreamRole, Told, Wake};
use crate::protocol::revision::{Era, Revision};
use crate::settings::StreamSettings;
use crate::store::{Epoch, lock};

/// How many streams a session keeps for resumption, running ones not counted.
const MOST_STREAMS: usize = 512;

/// The streams of one session.
#[derive(Debug)]
pub struct Streams {
    pub(super) inner: Mutex<Inner>,
    pub(super) settings: Arc<StreamSettings>,
    pub(super) numbering: Numbering,
    /// Where an adopter finds them; none if nobody can adopt the session.
    pub(super) journal: Option<Journal>,
    /// Told when the standalone GET is opened.
    get_opened: Notify,
}

/// Whether callers can come back to a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Numbering {
    /// They cannot: its events have no ids (2026-07-28).
    Plain,
    /// They can, by the id of an event (T27).
    Numbered,
    /// They can from the start: the first event is an empty one with an id (T21).
    Primed,
}

/// What the lock guards.
#[derive(Debug)]
pub(super) struct Inner {
    /// Boxed: a map's node has room for a dozen, and most sessions have one.
    pub(super) streams: BTreeMap<StreamId, Box<Stream>>,
    pub(super) notices: Notices,
    epoch: Epoch,
    /// The standalone GET is one stream over all owners: it keeps the id that the first who had it gave it.
    pub(super) get: StreamId,
    next_stream: u32,
    next_reader: u64,
    pub(super) usage: Arc<Usage>,
    dropped: u64,
    over: bool,
}

/// Why a stream cannot be resumed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ResumeError {
    /// No stream of this session has such an id, or its retention is over: 400, never 404.
    #[error(
        "no stream of this session can be resumed from this Last-Event-ID; it was never given out or is no longer kept"
    )]
    Unknown,
    /// All was read: 204, which tells an SSE client to stop.
    #[error("the stream is complete and was read to its end")]
    Over,
}

// === impl Streams ===

impl Streams {
    /// No streams yet.
    pub fn new(settings: Arc<StreamSettings>, revision: Revision, epoch: Epoch, budget: Arc<Budget>) -> Self {
        let inner = Inner {
            streams: BTreeMap::new(),
            notices: Notices::default(),
            epoch,
            get: StreamId { epoch, number: 0 },
            next_stream: 1,
            next_reader: 1,
            usage: Arc::new(Usage::new(settings.max_event, budget)),
            dropped: 0,
            over: false,
        };
        Self {
            inner: Mutex::new(inner),
            settings,
            numbering: Numbering::of(revision),
            journal: None,
            get_opened: Notify::new(),
        }
    }

    /// The same streams, journaled.
    #[must_use]
    pub fn with_journal(self, journal: Journal) -> Self {
        Self { journal: Some(journal), ..self }
    }

    /// Their journal, if they have one.
    pub fn journal(&self) -> Option<&Journal> {
        self.journal.as_ref()
    }

    /// Begins the stream of a POST and attaches its caller. What it is about matters to the journal only.
    pub fn begin_post(self: &Arc<Self>, about: About) -> Reader {
        let mut inner = lock(&self.inner);
        inner.forget_surplus();
        let id = StreamId { epoch: inner.epoch, number: inner.next_stream };
        inner.next_stream = inner.next_stream.saturating_add(1);
        let mut stream = Stream::new(StreamRole::Post, inner.usage.clone());
        self.journal_begin(&mut stream, id, about);
        inner.streams.insert(id, Box::new(stream));
        self.journal_gone(&mut inner);
        self.attach(&mut inner, id, 0)
    }

    /// Opens the standalone GET, now the newest connection of it.
    pub fn open_get(self: &Arc<Self>) -> Reader {
        let mut inner = lock(&self.inner);
        self.attach_get(&mut inner)
    }

    /// Begins the one stream of a `subscriptions/listen`, whose raw id marks all that it tells, and attaches its
    /// caller. It takes the place that the standalone GET has elsewhere: [`Streams::push_get`] and
    /// [`Streams::notice`] are for it.
    pub fn begin_listen(self: &Arc<Self>, listen: &str) -> Reader {
        let mut inner = lock(&self.inner);
        let id = inner.get_id();
        inner.notices.mark(listen);
        let stream = Stream::new(StreamRole::Listen, inner.usage.clone());
        inner.streams.insert(id, Box::new(stream));
        self.attach(&mut inner, id, 0)
    }

    /// Ends a listen: what it has to tell yet, then its response, and no more (N5).
    pub fn end_listen(&self, response: Bytes) {
        let mut inner = lock(&self.inner);
        let inner = &mut *inner;
        let id = inner.get_id();
        let Some(stream) = inner.streams.get_mut(&id) else { return };
        let now = Instant::now();
        for message in inner.notices.take() {
            stream.push(EventKind::Notification, message, now, Wake::Later);
        }
        stream.push(EventKind::Response, response, now, Wake::Later);
        stream.complete(now);
    }

    /// Attaches a caller that comes back with the id of the last event it saw.
    ///
    /// # Errors
    /// [`ResumeError`]
    pub fn resume(self: &Arc<Self>, last: EventId) -> Result<Reader, ResumeError> {
        let mut inner = lock(&self.inner);
        if inner.is_silent_get(last.stream) {
            if inner.streams.contains_key(&inner.get) {
                // Its caller came back without the id before, and so to another one.
                return Ok(self.attach_get(&mut inner));
            }
            self.go_on_with_get(&mut inner, last.stream);
        }
        let stream = inner.streams.get_mut(&last.stream).ok_or(ResumeError::Unknown)?;
        if last.place > stream.last_place() {
            return Err(ResumeError::Unknown);
        }
        if stream.is_over_after(last.place) {
            return Err(ResumeError::Over);
        }
        Ok(self.attach(&mut inner, last.stream, last.place))
    }

    /// Whether a GET was ever opened.
    pub fn has_get(&self) -> bool {
        let inner = lock(&self.inner);
        inner.streams.contains_key(&inner.get_id())
    }

    /// Whether a GET is open at this moment.
    pub fn get_is_open(&self) -> bool {
        let inner = lock(&self.inner);
        inner.streams.get(&inner.get_id()).is_some_and(|s| !s.slots.is_empty())
    }

    /// Waits until a GET was opened once.
    pub async fn get_opened(&self) {
        let opened = self.get_opened.notified();
        tokio::pin!(opened);
        opened.as_mut().enable();
        if !self.has_get() {
            opened.await;
        }
    }

    /// Adds an event to a stream. `false` if nobody can ever read it, or there is no such stream.
    pub fn push(&self, id: StreamId, kind: EventKind, payload: Bytes) -> bool {
        self.append(id, kind, payload, Wake::Now, Origin::default())
    }

    /// The same for what came from a server, waking the reader now or with [`Streams::wake`].
    pub fn append(&self, id: StreamId, kind: EventKind, payload: Bytes, wake: Wake, origin: Origin) -> bool {
        let mut inner = lock(&self.inner);
        let now = Instant::now();
        let Some(stream) = inner.streams.get_mut(&id) else { return false };
        let journal = self.journal.as_ref().map(|journal| (journal, payload.clone()));
        let kept = stream.push(kind, payload, now, wake);
        if let Some((journal, payload)) = journal
            && kept
        {
            stream.journal_event(journal, id, Told { kind, payload, origin }, self.settings.max_event);
        }
        inner.trim(&self.settings);
        self.journal_gone(&mut inner);
        kept
    }

    /// Wakes the reader of a stream.
    pub fn wake(&self, id: StreamId) {
        if let Some(stream) = lock(&self.inner).streams.get_mut(&id) {
            stream.wake_reader();
        }
    }

    /// Adds an event to the standalone GET, or the listen. `false` if none was opened yet.
    pub fn push_get(&self, kind: EventKind, payload: Bytes) -> bool {
        self.append_get(kind, payload, Origin::default())
    }

    /// The same for what came from a server.
    pub fn append_get(&self, kind: EventKind, payload: Bytes, origin: Origin) -> bool {
        let id = lock(&self.inner).get_id();
        self.append(id, kind, payload, Wake::Now, origin)
    }

    /// Notes a change for the standalone GET: a dirty bit, told once however often it is noted.
    pub fn notice(&self, notice: Notice) {
        let mut inner = lock(&self.inner);
        inner.notices.add(notice);
        let id = inner.get_id();
        if let Some(get) = inner.streams.get_mut(&id) {
            get.wake_reader();
        }
    }

    /// No more will come on this stream.
    pub fn complete(&self, id: StreamId) {
        let mut inner = lock(&self.inner);
        if let Some(stream) = inner.streams.get_mut(&id) {
            if let Some(journal) = &self.journal {
                stream.journal_ended(journal, id);
            }
            stream.complete(Instant::now());
            if stream.slots.is_empty() && !stream.resumable {
                inner.streams.remove(&id);
                self.journal_gone(&mut inner);
            }
        }
    }

    /// Whether callers of this revision may be told to come back before the response was sent (T22).
    pub fn can_poll(&self) -> bool {
        self.numbering == Numbering::Primed
    }

    /// Ends the connections of one stream with `retry:`; the stream itself goes on.
    pub fn ask_to_poll(&self, id: StreamId) {
        if let Some(stream) = lock(&self.inner).streams.get_mut(&id) {
            stream.end_readers(Ending::Retry);
        }
    }

    /// Ends all connections with `retry:` whose callers can come back.
    pub fn end_connections(&self) {
        lock(&self.inner)
            .streams
            .values_mut()
            .filter(|s| s.can_be_left())
            .for_each(|s| s.end_readers(Ending::Retry));
    }

    /// Ends the connections of the standalone GET with `retry:`.
    pub fn end_get(&self) {
        let id = lock(&self.inner).get_id();
        self.ask_to_poll(id);
    }

    /// Ends the standalone GET for good. The stream of a POST ends with its exchange, which says why. Nothing is
    /// journaled any more.
    pub fn close(&self) {
        if let Some(journal) = &self.journal {
            journal.stop();
        }
        let mut inner = lock(&self.inner);
        inner.over = true;
        let id = inner.get_id();
        if let Some(get) = inner.streams.get_mut(&id) {
            get.complete(Instant::now());
        }
    }

    /// Forgets streams that ended longer ago than `retention`, and makes room if the process needs it.
    pub fn prune(&self, now: Instant, retention: Duration) {
        let mut inner = lock(&self.inner);
        inner.streams.retain(|_, s| match s.phase {
            Phase::Complete { since } => s.is_attended() || now.duration_since(since) < retention,
            Phase::Open => true,
        });
        inner.trim(&self.settings);
        self.journal_gone(&mut inner);
        if let Some(journal) = &self.journal {
            journal.retain(|id| inner.streams.contains_key(&id));
        }
    }

    /// Whether any connection goes on reading.
    pub fn has_readers(&self) -> bool {
        lock(&self.inner).streams.values().any(|s| s.is_attended())
    }

    /// Events dropped from full logs since last asked.
    pub fn take_dropped(&self) -> u64 {
        std::mem::take(&mut lock(&self.inner).dropped)
    }

    /// Attaches a caller to the standalone GET, which begins if there was none.
    fn attach_get(self: &Arc<Self>, inner: &mut Inner) -> Reader {
        let id = inner.get_id();
        if !inner.streams.contains_key(&id) {
            let mut stream = Stream::new(StreamRole::Get, inner.usage.clone());
            self.journal_begin(&mut stream, id, About::default());
            inner.streams.insert(id, Box::new(stream));
        }
        let from = inner.streams.get(&id).map_or(0, |s| s.delivered);
        self.get_opened.notify_waiters();
        self.attach(inner, id, from)
    }

    /// Goes on with the standalone GET of an earlier owner, of which the log knows nothing.
    fn go_on_with_get(&self, inner: &mut Inner, id: StreamId) {
        let mut stream = Stream::new(StreamRole::Get, inner.usage.clone());
        self.journal_begin(&mut stream, id, About::default());
        stream.go_on_from(0, first_place(inner.epoch));
        inner.get = id;
        inner.streams.insert(id, Box::new(stream));
        self.get_opened.notify_waiters();
    }

    /// Notes what a stream is about, and tells the journal at once if its first event is an id that cannot be
    /// understood without. That of a standalone GET can: most sessions have one that tells nothing, and its beginning
    /// would be all that the store holds of their logs.
    fn journal_begin(&self, stream: &mut Stream, id: StreamId, about: About) {
        if let Some(journal) = &self.journal {
            stream.about = Some(about);
            if self.numbering == Numbering::Primed && stream.role == StreamRole::Post {
                stream.journal_began(journal, id);
            }
        }
    }

    /// Tells the journal what the streams keep no longer, or otherwise than before.
    pub(super) fn journal_gone(&self, inner: &mut Inner) {
        let Some(journal) = &self.journal else { return };
        let gone = inner.usage.take_gone();
        if gone.is_empty() {
            return;
        }
        for (id, stream) in &mut inner.streams {
            for (place, payload) in stream.log.take_changed() {
                let logged = journal.event(*id, place, payload, Origin::default());
                stream.log.is_logged(place, logged);
            }
        }
        journal.forget(gone);
    }

    fn attach(self: &Arc<Self>, inner: &mut Inner, id: StreamId, from: u64) -> Reader {
        let reader = ReaderId(inner.next_reader);
        inner.next_reader += 1;
        let over = inner.over;
        let mut role = StreamRole::Get;
        if let Some(stream) = inner.streams.get_mut(&id) {
            role = stream.role;
            stream.attach(reader, from);
            if over && role == StreamRole::Get {
                stream.complete(Instant::now());
            }
        }
        Reader::new(self.clone(), id, reader, role)
    }
}

// === impl Numbering ===

impl Numbering {
    fn of(revision: Revision) -> Self {
        match revision.era() {
            Era::Modern => Self::Plain,
            Era::Legacy if revision.primes_streams() => Self::Primed,
            Era::Legacy => Self::Numbered,
        }
    }
}

// === impl Inner ===

impl Inner {
    /// The standalone GET is one stream however many connections come and go.
    pub(super) fn get_id(&self) -> StreamId {
        self.get
    }

    /// Whether an earlier owner may have given out this id of the standalone GET, and logged nothing of it.
    fn is_silent_get(&self, id: StreamId) -> bool {
        id.number == self.get.number && id.epoch < self.epoch && !self.streams.contains_key(&id)
    }

    /// Forgets the oldest ended stream when there are too many; a resume of it is then unknown.
    fn forget_surplus(&mut self) {
        if self.streams.len() < MOST_STREAMS {
            return;
        }
        let ended = |s: &Stream| s.phase != Phase::Open && s.slots.is_empty();
        let oldest = self.streams.iter().find(|(_, s)| ended(s) && s.is_read());
        let oldest = oldest.or_else(|| self.streams.iter().find(|(_, s)| ended(s))).map(|(id, _)| *id);
        if let Some(id) = oldest {
            self.streams.remove(&id);
        }
    }

    /// Holds the session to its bounds: superseded progress goes first, then other notifications, then streams
    /// read to the end, then requests and, if there are too many bytes, responses. Trims a tenth
    /// more than it must, so that a full log is not scanned for each event.
    ///
    /// What waits for a connection that reads is not lost: its bound is how long a caller may take nothing.
    pub(super) fn trim(&mut self, settings: &StreamSettings) {
        if self.usage.surplus(settings.max_events, settings.max_bytes).is_none() {
            return;
        }
        let keep_events = settings.max_events - settings.max_events / 10;
        let keep_bytes = settings.max_bytes - settings.max_bytes / 10;
        for step in STEPS {
            for stream in self.streams.values_mut() {
                let Some(surplus) = self.usage.surplus(keep_events, keep_bytes) else { return };
                self.dropped += step(stream, surplus) as u64;
            }
        }
    }
}

/// What goes first; each gives how many events went.
const STEPS: [fn(&mut Stream, Surplus) -> usize; 5] = [
    |s, surplus| s.log.drop_superseded(surplus),
    |s, surplus| s.log.drop_notifications(surplus),
    |s, _| if s.is_read() { s.log.clear() } else { 0 },
    |s, surplus| s.log.drop_requests(surplus, s.expendable()),
    |s, surplus| s.log.lose_responses(surplus, s.expendable()),
];

#[cfg(test)]
mod tests;
