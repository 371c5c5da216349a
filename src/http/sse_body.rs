//! The body of an event stream: events as they come, a comment when none do.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http_body::Frame;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::DropGuard;

use super::Edge;
use crate::protocol::sse::encode;
use crate::relay::Caller;
use crate::session::stream::StreamRole;
use crate::session::{Reader, Step, Tenure};
use crate::telemetry::Metrics;
use crate::telemetry::metrics::StreamKind;

/// The body of an event stream.
pub(super) struct SseBody {
    reader: Reader,
    keep_alive: Duration,
    /// Runs out at the next keep-alive comment, or when the credential that opened the stream ends.
    timer: Pin<Box<Sleep>>,
    expires: Option<Instant>,
    over: bool,
    metrics: Arc<Metrics>,
    kind: StreamKind,
    /// Without it another replica may tell the caller the same.
    tenure: Arc<Tenure>,
    /// Cancels the request when the stream is closed (T54).
    open: Option<DropGuard>,
}

// === impl SseBody ===

impl SseBody {
    pub(super) fn new(edge: &Edge, caller: &Caller, reader: Reader) -> Self {
        let kind = match reader.role() {
            StreamRole::Post => StreamKind::Post,
            StreamRole::Get => StreamKind::Get,
            StreamRole::Listen => StreamKind::Listen,
        };
        edge.metrics.stream_opened(kind);
        let left =
            caller.principal.expires.map(|at| at.duration_since(SystemTime::now()).unwrap_or_default());
        let expires = left.map(|left| Instant::now() + left);
        let mut body = Self {
            reader,
            keep_alive: edge.keep_alive,
            timer: Box::pin(tokio::time::sleep(edge.keep_alive)),
            expires,
            over: false,
            metrics: edge.metrics.clone(),
            kind,
            tenure: edge.relay.tenure(),
            open: None,
        };
        body.wind();
        body
    }

    /// The same for a stream whose end is the end of its request.
    pub(super) fn cancelling(mut self, open: DropGuard) -> Self {
        self.open = Some(open);
        self
    }

    fn wind(&mut self) {
        let next = Instant::now() + self.keep_alive;
        self.timer.as_mut().reset(self.expires.map_or(next, |expires| next.min(expires)));
    }
}

impl http_body::Body for SseBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        if this.over {
            return Poll::Ready(None);
        }
        // Asked before each step: a process that was stopped and goes on finds its lease over here, whoever runs first.
        if !this.tenure.is_held() {
            this.reader.end_at_once();
        }
        let mut out = Vec::new();
        loop {
            match this.reader.poll_step(cx, &mut out) {
                Poll::Ready(Step::Data) => return Poll::Ready(Some(Ok(Frame::data(out.into())))),
                Poll::Ready(Step::End) => {
                    this.over = true;
                    let last = (!out.is_empty()).then(|| Ok(Frame::data(out.into())));
                    return Poll::Ready(last);
                }
                Poll::Pending => {}
            }
            if this.timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            if this.expires.is_some_and(|at| at <= Instant::now()) {
                this.expires = None;
                // The caller comes back with a fresh credential.
                this.reader.end_with_retry();
            } else {
                encode::comment(&mut out, "keep-alive");
            }
            this.wind();
            if !out.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(out.into()))));
            }
        }
    }
}

impl Drop for SseBody {
    fn drop(&mut self) {
        self.metrics.stream_closed(self.kind);
    }
}
