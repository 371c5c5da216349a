//! One connection, as something that can be cut.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::watch;

/// What a script may do to a connection beside answering.
pub(super) struct Wire {
    written: watch::Sender<usize>,
    reset: AtomicBool,
    last_words: Mutex<Option<Bytes>>,
}

/// The socket of a connection.
pub(super) struct Socket {
    stream: TcpStream,
    wire: Arc<Wire>,
}

pub(super) fn wrap(stream: TcpStream) -> (Socket, Arc<Wire>) {
    stream.set_nodelay(true).unwrap();
    let wire = Arc::new(Wire {
        written: watch::Sender::new(0),
        reset: AtomicBool::new(false),
        last_words: Mutex::default(),
    });
    (Socket { stream, wire: Arc::clone(&wire) }, wire)
}

// === impl Wire ===

impl Wire {
    /// The bytes written so far.
    pub(super) fn mark(&self) -> usize {
        *self.written.borrow()
    }

    /// Waits until `count` more bytes were written.
    pub(super) async fn written_since(&self, mark: usize, count: usize) {
        let _ = self.written.subscribe().wait_for(|written| *written >= mark + count).await;
    }

    /// Makes the end of the connection a reset.
    pub(super) fn reset(&self) {
        self.reset.store(true, Ordering::SeqCst);
    }

    /// Bytes that go out before the connection ends, whether they are HTTP or not.
    pub(super) fn say_last(&self, bytes: Bytes) {
        *self.last_words.lock().unwrap() = Some(bytes);
    }
}

// === impl Socket ===

impl Drop for Socket {
    fn drop(&mut self) {
        if let Some(bytes) = self.wire.last_words.lock().unwrap().take() {
            let _ = self.stream.try_write(&bytes);
        }
        if self.wire.reset.load(Ordering::SeqCst) {
            self.stream.set_zero_linger().unwrap();
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write(cx, buf);
        if let Poll::Ready(Ok(count)) = &poll {
            self.wire.written.send_modify(|written| *written += count);
        }
        poll
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.wire.last_words.lock().unwrap().is_some() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
