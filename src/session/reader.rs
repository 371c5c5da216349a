//! The read side of a stream: one connection that takes events as they come.

use std::sync::Arc;
use std::task::{Context, Poll};

use super::event::{EventId, IdText, StreamId};
use super::journal::Hold;
use super::log::EventKind;
use super::stream::{Ending, Phase, StreamRole};
use super::stream_places::StreamPlace;
use super::streams::{Numbering, Streams};
use crate::protocol::sse::encode;
use crate::store::lock;

/// Names one connection within its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReaderId(pub(super) u64);

/// One connection to a stream. Dropping it detaches the caller; the stream goes on.
#[derive(Debug)]
pub struct Reader {
    streams: Arc<Streams>,
    stream: StreamId,
    id: ReaderId,
    role: StreamRole,
    opened: bool,
}

/// What a reader got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Bytes were appended; more may come.
    Data,
    /// The connection is to be closed; bytes may have been appended before.
    End,
}

// === impl Reader ===

impl Reader {
    pub(super) fn new(streams: Arc<Streams>, stream: StreamId, id: ReaderId, role: StreamRole) -> Self {
        Self { streams, stream, id, role, opened: false }
    }

    /// The same, holding a place until it ends.
    #[must_use]
    pub fn holding(self, place: StreamPlace) -> Self {
        let mut inner = lock(&self.streams.inner);
        let slots = inner.streams.get_mut(&self.stream).map(|stream| &mut stream.slots);
        let own = slots.and_then(|slots| slots.iter_mut().find(|slot| slot.id == self.id));
        if let Some(slot) = own.filter(|slot| slot.ending.is_none()) {
            slot.place = Some(place);
        }
        drop(inner);
        self
    }

    /// The stream it reads.
    pub fn stream(&self) -> StreamId {
        self.stream
    }

    /// What the stream belongs to.
    pub fn role(&self) -> StreamRole {
        self.role
    }

    /// Ends this connection with `retry:`, so that the caller comes back.
    pub fn end_with_retry(&self) {
        let mut inner = lock(&self.streams.inner);
        if let Some(stream) = inner.streams.get_mut(&self.stream).filter(|s| s.can_be_left()) {
            stream.end_reader(self.id, Ending::Retry);
        }
    }

    /// The same without a further event, if the log has them for another replica.
    pub fn end_at_once(&self) {
        if self.streams.journal.is_none() {
            return;
        }
        let mut inner = lock(&self.streams.inner);
        if let Some(stream) = inner.streams.get_mut(&self.stream).filter(|s| s.can_be_left()) {
            stream.end_reader(self.id, Ending::RetryAtOnce);
        }
    }

    /// Appends to `out` all events that are ready, in one piece; waits if there are none.
    pub fn poll_step(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Poll<Step> {
        let retry = self.streams.settings.retry;
        let mut inner = lock(&self.streams.inner);
        let inner = &mut *inner;
        let is_get = self.stream == inner.get_id();
        let Some(stream) = inner.streams.get_mut(&self.stream) else { return Poll::Ready(Step::End) };
        let reads = stream.reader() == Some(self.id);
        let Some(slot) = stream.slots.iter_mut().find(|s| s.id == self.id) else {
            return Poll::Ready(Step::End);
        };
        slot.seen();
        if slot.ending == Some(Ending::RetryAtOnce) {
            encode::retry(out, retry);
            return Poll::Ready(Step::End);
        }
        let start = out.len();
        let journal = self.streams.journal.as_ref();
        let hold = |id| journal.map_or(Hold::Free, |journal| journal.hold(id));
        // The first event id goes out once the log knows of the stream. Until then, for want of the store or of the
        // session, the caller can be answered here only, and gets no id to come back with.
        let beginning = if stream.resumable { Hold::Free } else { hold(stream.log.began) };
        let began = stream.log.began;
        // That of a standalone GET can be come back with whatever the log knows.
        let is_known = stream.resumable
            || stream.role == StreamRole::Get
            || journal.is_none_or(|journal| journal.knows(self.stream, began));
        // What the caller must wait for.
        let mut held = None;
        if beginning == Hold::Held && slot.ending != Some(Ending::Plain) {
            held = Some(stream.log.began);
        }
        if !self.opened && held.is_none() {
            self.opened = true;
            if self.streams.numbering == Numbering::Primed && is_known {
                let id = EventId { stream: self.stream, place: slot.cursor };
                encode::priming(out, IdText::of(id).as_str(), retry);
                stream.resumable = true;
            }
        }
        if reads && held.is_none() {
            for entry in stream.log.after(slot.cursor) {
                let is_owed = matches!(entry.kind, EventKind::Request | EventKind::Response);
                let hold = if is_owed { hold(entry.id) } else { beginning };
                if hold == Hold::Lost && stream.resumable {
                    // The caller comes back, and is led to the new owner.
                    slot.ending.get_or_insert(Ending::Retry);
                }
                if hold == Hold::Held || (hold == Hold::Lost && stream.resumable) {
                    held = Some(entry.id);
                    break;
                }
                slot.cursor = entry.place;
                if self.streams.numbering == Numbering::Plain || hold == Hold::Lost || !is_known {
                    encode::event(out, None, &entry.payload);
                    continue;
                }
                let id = EventId { stream: self.stream, place: entry.place };
                encode::event(out, Some(IdText::of(id).as_str()), &entry.payload);
                stream.resumable = true;
            }
            stream.delivered = stream.delivered.max(slot.cursor);
            // Behind the result of a listen nothing more is told.
            let tells = stream.role == StreamRole::Get || stream.phase == Phase::Open;
            if is_get && tells && held.is_none() && slot.ending.is_none() {
                for message in inner.notices.take() {
                    encode::event(out, None, &message);
                }
            }
        }
        if let Some(ending) = slot.ending
            && self.opened
        {
            if ending == Ending::Retry && self.streams.numbering != Numbering::Plain {
                encode::retry(out, retry);
            }
            return Poll::Ready(Step::End);
        }
        if stream.phase != Phase::Open && held.is_none() {
            return Poll::Ready(Step::End);
        }
        if out.len() > start {
            return Poll::Ready(Step::Data);
        }
        slot.waker = Some(cx.waker().clone());
        if let (Some(id), Some(journal)) = (held, journal) {
            journal.park(self.id, id, cx.waker());
        }
        Poll::Pending
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut inner = lock(&self.streams.inner);
        if let Some(stream) = inner.streams.get_mut(&self.stream) {
            stream.detach(self.id);
            // Read to its end by a caller that cannot resume it: nothing is left to keep.
            if stream.slots.is_empty() && !stream.resumable && stream.phase != Phase::Open {
                inner.streams.remove(&self.stream);
                self.streams.journal_gone(&mut inner);
            }
        }
    }
}
