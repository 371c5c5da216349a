//! What is watched on one connection: how long the head of a request takes.
//!
//! hyper's own timer would count the idle time between two requests too, and cut keep-alive connections that a
//! load balancer wants to use again (case-J09).

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// No head is being read.
const AT_REST: u64 = u64::MAX;

/// Since when the head of a request is being read.
#[derive(Debug)]
pub(super) struct HeadWatch {
    opened: Instant,
    /// Milliseconds from `opened`, or [`AT_REST`].
    head_since: AtomicU64,
    /// Requests that have no answer yet.
    serving: AtomicU64,
}

/// A socket that tells when bytes of a head come in.
#[derive(Debug)]
pub(super) struct Watched<S> {
    socket: S,
    watch: Arc<HeadWatch>,
}

// === impl HeadWatch ===

impl HeadWatch {
    /// The first head is awaited from now on.
    pub(super) fn new() -> Arc<Self> {
        let watch =
            Self { opened: Instant::now(), head_since: AtomicU64::new(0), serving: AtomicU64::new(0) };
        Arc::new(watch)
    }

    /// A head was read.
    pub(super) fn head_read(&self) {
        self.serving.fetch_add(1, Relaxed);
        self.head_since.store(AT_REST, Relaxed);
    }

    /// A request has its answer; what comes next is another head.
    pub(super) fn answered(&self) {
        self.serving.fetch_sub(1, Relaxed);
    }

    /// Waits until a head has taken longer than `limit`.
    pub(super) async fn too_slow(&self, limit: Duration) {
        loop {
            let since = self.head_since.load(Relaxed);
            let now = Instant::now();
            let deadline = match since {
                AT_REST => now + limit,
                since => self.opened + Duration::from_millis(since) + limit,
            };
            if since != AT_REST && deadline <= now {
                return;
            }
            tokio::time::sleep_until(deadline).await;
        }
    }

    fn bytes_came(&self) {
        if self.serving.load(Relaxed) == 0 {
            let now = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(AT_REST - 1);
            let _ = self.head_since.compare_exchange(AT_REST, now, Relaxed, Relaxed);
        }
    }
}

// === impl Watched ===

impl<S> Watched<S> {
    pub(super) fn new(socket: S, watch: Arc<HeadWatch>) -> Self {
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
        Pin::new(&mut self.socket).poll_write(cx, buf)
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
        Pin::new(&mut self.socket).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }
}
