//! The body of a forwarded answer, which is read from the hop whether its caller takes it or not.
//!
//! A caller that takes what comes gets it as it comes. For one that does not, the connection's task reads on
//! ([`Flow::tend`]) into a buffer with a bound, and cuts the stream if the caller takes nothing for too long. So a
//! slow caller never holds back others, and its memory is bounded by the buffer and the stream's window.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use h2::RecvStream;
use http_body::{Frame, SizeHint};
use tokio::time::Instant;

use super::connection::Seat;

/// The most that is handed over at once of what was kept.
const PIECE: usize = 16 << 10;

/// The body of a forwarded answer. Dropping it tells the peer that its caller is gone.
#[derive(Debug)]
pub struct HopBody(Kind);

/// Why the body of an answer ends early.
#[derive(Clone, Debug, thiserror::Error)]
pub enum HopBodyError {
    /// The peer or the connection to it failed; what is left of the answer is still at the session's owner.
    #[error("the connection to the replica broke in the middle of its answer: {0}")]
    Broken(Arc<str>),
    /// The caller took nothing for too long.
    #[error("the caller took nothing of its answer for too long")]
    NotTaken,
}

#[derive(Debug)]
enum Kind {
    /// All of it came together with the head.
    Whole(Bytes),
    /// It is still to come.
    Flowing(Arc<Flow>),
}

/// An answer on its way.
#[derive(Debug)]
pub(super) struct Flow(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    source: Source,
    /// What was read and not taken.
    kept: BytesMut,
    caller: Taker,
}

/// What the caller does.
#[derive(Clone, Copy, Debug)]
enum Taker {
    /// It waits for more.
    Waits,
    /// It has not asked for more since it was given the last, and for so long something waits for it.
    Holds { since: Option<Instant> },
}

/// Where the rest comes from.
#[derive(Debug)]
enum Source {
    /// The stream, which holds its seat on the connection.
    Open { stream: RecvStream, _seat: Seat },
    /// It ended, well or not; the error is told once.
    Over(Option<HopBodyError>),
}

/// What [`Flow::tend`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tended {
    /// There may be more to do.
    Open,
    /// Nothing will come any more.
    Over,
}

// === impl HopBody ===

impl HopBody {
    /// The body of an answer whose head came just now. What came with the head is taken at once: the answer to most
    /// calls, which then need no further care.
    pub(super) fn new(mut stream: RecvStream, seat: Seat, tended: impl FnOnce(&Arc<Flow>)) -> Self {
        let mut kept = BytesMut::new();
        // A waker is not needed: whoever asks for more brings its own.
        let source = match stream.poll_data(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Some(Ok(bytes))) => {
                let _ = stream.flow_control().release_capacity(bytes.len());
                if stream.is_end_stream() {
                    return Self(Kind::Whole(bytes));
                }
                kept.extend_from_slice(&bytes);
                Source::Open { stream, _seat: seat }
            }
            Poll::Ready(None) => return Self(Kind::Whole(Bytes::new())),
            Poll::Ready(Some(Err(error))) => Source::Over(Some(broken(&error))),
            Poll::Pending => Source::Open { stream, _seat: seat },
        };
        let flow = Arc::new(Flow(Mutex::new(Inner { source, kept, caller: Taker::Holds { since: None } })));
        tended(&flow);
        Self(Kind::Flowing(flow))
    }
}

fn broken(error: &h2::Error) -> HopBodyError {
    HopBodyError::Broken(error.to_string().into())
}

impl http_body::Body for HopBody {
    type Data = Bytes;
    type Error = HopBodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HopBodyError>>> {
        match &mut self.get_mut().0 {
            Kind::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Kind::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Kind::Flowing(flow) => flow.poll(cx).map_ok(Frame::data),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Whole(bytes) => bytes.is_empty(),
            Kind::Flowing(flow) => flow.is_over(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Flowing(_) => SizeHint::default(),
        }
    }
}

impl Drop for HopBody {
    fn drop(&mut self) {
        if let Kind::Flowing(flow) = &self.0 {
            // The stream is reset at the peer, even while the connection's task looks at it.
            flow.lock().source = Source::Over(None);
        }
    }
}

// === impl Flow ===

impl Flow {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, HopBodyError>>> {
        let mut inner = self.lock();
        if !inner.kept.is_empty() {
            let piece = inner.kept.len().min(PIECE);
            inner.caller = Taker::Holds { since: None };
            return Poll::Ready(Some(Ok(inner.kept.split_to(piece).freeze())));
        }
        let next = inner.next(cx);
        inner.caller = if next.is_ready() { Taker::Holds { since: None } } else { Taker::Waits };
        next
    }

    fn is_over(&self) -> bool {
        let inner = self.lock();
        inner.kept.is_empty() && matches!(inner.source, Source::Over(None))
    }

    /// Reads on for a caller that does not, and gives it up in the end.
    pub(super) fn tend(&self, most_kept: usize, patience: Duration) -> Tended {
        let mut inner = self.lock();
        let Taker::Holds { since } = inner.caller else { return inner.tended() };
        while inner.kept.len() < most_kept && matches!(inner.source, Source::Open { .. }) {
            match inner.next(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Some(Ok(bytes))) => inner.kept.extend_from_slice(&bytes),
                Poll::Ready(Some(Err(error))) => inner.source = Source::Over(Some(error)),
                Poll::Ready(None) | Poll::Pending => break,
            }
        }
        if !inner.kept.is_empty() {
            let since = since.unwrap_or_else(Instant::now);
            inner.caller = Taker::Holds { since: Some(since) };
            if since.elapsed() >= patience {
                inner.kept = BytesMut::new();
                inner.source = Source::Over(Some(HopBodyError::NotTaken));
            }
        }
        inner.tended()
    }
}

// === impl Inner ===

impl Inner {
    fn tended(&self) -> Tended {
        let over = self.kept.is_empty() && matches!(self.source, Source::Over(_));
        if over { Tended::Over } else { Tended::Open }
    }

    /// The next of the stream itself; gives the seat back at its end.
    fn next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, HopBodyError>>> {
        let Source::Open { stream, .. } = &mut self.source else {
            let Source::Over(error) = &mut self.source else { return Poll::Ready(None) };
            return Poll::Ready(error.take().map(Err));
        };
        match stream.poll_data(cx) {
            Poll::Ready(Some(Ok(bytes))) => {
                // Fails only for a stream that is over, which needs no window.
                let _ = stream.flow_control().release_capacity(bytes.len());
                if stream.is_end_stream() {
                    self.source = Source::Over(None);
                }
                Poll::Ready(Some(Ok(bytes)))
            }
            Poll::Ready(Some(Err(error))) => {
                self.source = Source::Over(None);
                Poll::Ready(Some(Err(broken(&error))))
            }
            Poll::Ready(None) => {
                self.source = Source::Over(None);
                Poll::Ready(None)
            }
            Poll::Pending => Poll::Pending,
        }
    }
}
