//! What is watched on one HTTP/1 connection: how long a head takes, how long the caller takes nothing of its
//! answers, and how long nothing happens at all.
//!
//! hyper's own timer would count the idle time between two requests too, and cut keep-alive connections that a
//! load balancer wants to use again (case-J09). For writes it has none: a caller that does not read would hold its
//! connection and its place for ever.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use http::Response;
use http_body::{Body as _, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::settings::LimitSettings;

/// How long a connection may lie unused between requests: longer than load balancers keep theirs (10 minutes at
/// the largest clouds), so that it is they who close it.
pub(super) const UNUSED: Duration = Duration::from_mins(15);
/// Not now.
pub(super) const NEVER: u64 = u64::MAX;

/// What happens on one connection; times are milliseconds from `opened`.
#[derive(Debug)]
pub(super) struct Watch {
    opened: Instant,
    /// Since when the head of a request is being read.
    head_since: AtomicU64,
    /// Since when the caller takes no more bytes.
    stalled_since: AtomicU64,
    /// When bytes last went either way.
    last_bytes: AtomicU64,
    /// Requests whose answer has not ended.
    serving: AtomicU64,
}

/// Counts one request from its head to the end of its answer.
#[derive(Debug)]
pub(super) struct Serving(Arc<Watch>);

/// A socket whose connection is watched.
#[derive(Debug)]
pub(super) struct Watched<S> {
    socket: S,
    watch: Arc<Watch>,
}

// === impl Watch ===

impl Watch {
    /// The first head is awaited from now on.
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            opened: Instant::now(),
            head_since: AtomicU64::new(0),
            stalled_since: AtomicU64::new(NEVER),
            last_bytes: AtomicU64::new(0),
            serving: AtomicU64::new(0),
        })
    }

    /// A head was read.
    pub(super) fn serve(self: &Arc<Self>) -> Serving {
        self.serving.fetch_add(1, Relaxed);
        self.head_since.store(NEVER, Relaxed);
        Serving(self.clone())
    }

    /// Waits until something took longer than it may.
    pub(super) async fn overdue(&self, limits: &LimitSettings) {
        // What begins after a look is seen at the next one, before it can be overdue.
        let pace = millis(limits.header_read.min(limits.body_read).min(UNUSED)).max(1);
        loop {
            let now = self.now();
            let at_rest = self.serving.load(Relaxed) == 0;
            let began = [
                (self.head_since.load(Relaxed), limits.header_read),
                (self.stalled_since.load(Relaxed), limits.body_read),
                (if at_rest { self.last_bytes.load(Relaxed) } else { NEVER }, UNUSED),
            ];
            let deadline = began.map(|(since, limit)| since.saturating_add(millis(limit))).into_iter().min();
            let deadline = deadline.unwrap_or(NEVER);
            if deadline <= now {
                return;
            }
            tokio::time::sleep(Duration::from_millis((deadline - now).min(pace))).await;
        }
    }

    fn bytes_came(&self) {
        let now = self.now();
        self.last_bytes.store(now, Relaxed);
        if self.serving.load(Relaxed) == 0 {
            let _ = self.head_since.compare_exchange(NEVER, now, Relaxed, Relaxed);
        }
    }

    fn note_write(&self, write: &Poll<std::io::Result<usize>>) {
        let now = self.now();
        if write.is_ready() {
            self.last_bytes.store(now, Relaxed);
            self.stalled_since.store(NEVER, Relaxed);
        } else {
            let _ = self.stalled_since.compare_exchange(NEVER, now, Relaxed, Relaxed);
        }
    }

    fn now(&self) -> u64 {
        millis(self.opened.elapsed())
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(NEVER)
}

// === impl Serving ===

impl Serving {
    /// Goes on to the end of the answer's body, if that is still to come.
    pub(super) fn until_end_of(self, answer: Response<Body>) -> Response<Body> {
        // A body of known length is ready, and is written as fast as the caller takes it.
        if answer.body().size_hint().exact().is_some() {
            return answer;
        }
        answer.map(|body| Body::new(Served { body, _serving: self }))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.serving.fetch_sub(1, Relaxed);
    }
}

/// A body that is still to come.
struct Served {
    body: Body,
    _serving: Serving,
}

impl http_body::Body for Served {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

// === impl Watched ===

impl<S> Watched<S> {
    pub(super) fn new(socket: S, watch: Arc<Watch>) -> Self {
        Self { socket, watch }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.socket).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.watch.bytes_came();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        let write = Pin::new(&mut self.socket).poll_write(cx, buf);
        self.watch.note_write(&write);
        write
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        let write = Pin::new(&mut self.socket).poll_write_vectored(cx, bufs);
        self.watch.note_write(&write);
        write
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }
}

#[cfg(test)]
mod tests;
