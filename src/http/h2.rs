//! What is watched on one HTTP/2 connection: how long its first request takes to come, how long no stream is open,
//! and how long the caller of one stream takes nothing of its answer.
//!
//! hyper asks for the next piece of an answer once the caller has taken the last one, and gives no other sign of it;
//! pings are answered by callers that take nothing, too. So an answer notes when it gave out a piece, and the task
//! of its stream ends if the next is not asked for in time: that stream is reset, and the others go on.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use http::Response;
use http_body::{Frame, SizeHint};
use hyper::rt::Executor;
use hyper_util::rt::TokioExecutor;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::connection::{NEVER, UNUSED, millis};
use crate::settings::LimitSettings;

/// The most of an answer that is handed over at once, and with it what is kept of one that is not taken. It is
/// copied, since a slice would keep the whole answer.
const PIECE: usize = 16 << 10;

tokio::task_local! {
    /// The answer of the stream whose task this is.
    static ANSWER: Arc<Answer>;
}

/// The streams of one connection; hyper has it run the task of each.
#[derive(Clone, Debug)]
pub(super) struct Streams {
    counts: Arc<watch::Sender<Counts>>,
    /// How long a caller may take nothing of an answer.
    patience: Duration,
}

/// How many streams there are.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    begun: u64,
    open: u64,
}

/// Counts one stream for as long as it lives.
struct Open(Arc<watch::Sender<Counts>>);

/// How the answer of one stream goes.
#[derive(Debug)]
struct Answer {
    begun: Instant,
    /// Since when a piece waits to be taken, in milliseconds from `begun`.
    waits_since: AtomicU64,
}

/// The body of an answer, piece by piece.
struct Pieces {
    body: Body,
    rest: Bytes,
    answer: Arc<Answer>,
}

/// Has the task of this stream note how its answer is taken.
pub(super) fn noted(answer: Response<Body>) -> Response<Body> {
    match ANSWER.try_with(Arc::clone) {
        Ok(noted) => answer.map(|body| Body::new(Pieces { body, rest: Bytes::new(), answer: noted })),
        Err(_) => answer,
    }
}

// === impl Streams ===

impl Streams {
    pub(super) fn new(limits: &LimitSettings) -> Self {
        Self { counts: Arc::new(watch::Sender::default()), patience: limits.body_read }
    }

    /// Waits until no first request came in time, or none for long.
    pub(super) async fn overdue(&self, limits: &LimitSettings) {
        let mut counts = self.counts.subscribe();
        let mut limit = limits.header_read;
        let mut begun = 0;
        // The sender lives in `self`, so that no wait ends without its reason.
        while timeout(limit, counts.wait_for(|now| now.begun > begun)).await.is_ok() {
            begun = counts.wait_for(|now| now.open == 0).await.map_or(u64::MAX, |now| now.begun);
            limit = UNUSED;
        }
    }

    fn open(&self) -> Open {
        self.counts.send_modify(|counts| {
            counts.begun += 1;
            counts.open += 1;
        });
        Open(self.counts.clone())
    }
}

impl<F> Executor<F> for Streams
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, stream: F) {
        let (open, patience) = (self.open(), self.patience);
        TokioExecutor::new().execute(async move {
            let answer = Arc::new(Answer { begun: Instant::now(), waits_since: AtomicU64::new(NEVER) });
            tokio::select! {
                _ = ANSWER.scope(answer.clone(), stream) => {}
                () = answer.overdue(patience) => {}
            }
            drop(open);
        });
    }
}

// === impl Open ===

impl Drop for Open {
    fn drop(&mut self) {
        self.0.send_modify(|counts| counts.open -= 1);
    }
}

// === impl Answer ===

impl Answer {
    /// Waits until a piece was not taken for so long.
    async fn overdue(&self, patience: Duration) {
        let patience = millis(patience).max(1);
        loop {
            let deadline = self.waits_since.load(Relaxed).saturating_add(patience);
            let now = millis(self.begun.elapsed());
            if deadline <= now {
                return;
            }
            // What begins to wait after this look is seen at the next one, before it can be overdue.
            tokio::time::sleep(Duration::from_millis((deadline - now).min(patience))).await;
        }
    }
}

// === impl Pieces ===

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        if this.rest.is_empty() {
            match Pin::new(&mut this.body).poll_frame(cx).map_ok(Frame::into_data) {
                Poll::Ready(Some(Ok(Ok(data)))) => this.rest = data,
                Poll::Ready(Some(Ok(Err(other)))) => return Poll::Ready(Some(Ok(other))),
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => {
                    // Now it is the caller that waits.
                    this.answer.waits_since.store(NEVER, Relaxed);
                    return Poll::Pending;
                }
            }
        }
        this.answer.waits_since.store(millis(this.answer.begun.elapsed()), Relaxed);
        let piece = this.rest.split_to(this.rest.len().min(PIECE));
        Poll::Ready(Some(Ok(Frame::data(Bytes::copy_from_slice(&piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, hint) = (self.rest.len() as u64, self.body.size_hint());
        let mut sum = SizeHint::new();
        sum.set_lower(hint.lower() + rest);
        if let Some(upper) = hint.upper() {
            sum.set_upper(upper + rest);
        }
        sum
    }
}

#[cfg(test)]
mod tests;
