//! An event stream from a server, event by event.

use bytes::Bytes;
use futures_util::FutureExt;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio_util::task::TaskTracker;

use super::body;
use crate::protocol::sse::{ByteLimit, Decoder, Event};

/// Reads one stream; each event is given out as soon as its last byte is here (case-B01, case-B11).
pub(super) struct Events {
    body: Incoming,
    chunk: Bytes,
    decoder: Decoder,
}

/// Why there is no further event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The server ended the stream.
    Clean,
    /// The connection broke.
    Broken,
    /// An event is over the limit.
    TooLarge,
}

// === impl Events ===

impl Events {
    pub(super) fn new(body: Incoming, limit: ByteLimit) -> Self {
        Self { body, chunk: Bytes::new(), decoder: Decoder::new(limit) }
    }

    /// The next event.
    ///
    /// # Cancellation
    /// Safe: nothing is lost.
    pub(super) async fn next(&mut self) -> Result<Event, End> {
        loop {
            if let Some(event) = self.decoder.decode(&mut self.chunk).map_err(|_| End::TooLarge)? {
                return Ok(event);
            }
            match self.body.frame().await {
                None => return Err(End::Clean),
                Some(Err(_)) => return Err(End::Broken),
                Some(Ok(frame)) => self.chunk = frame.into_data().unwrap_or_default(),
            }
        }
    }

    /// Lets go of a stream whose answer is here: the server ends it next (T20).
    pub(super) fn finish(mut self, tasks: &TaskTracker) {
        if self.next().now_or_never().is_none_or(|next| next.is_ok()) {
            body::discard(self.body, tasks);
        }
    }
}

/// Whether an event carries a message; other types than `message` are for others.
pub(super) fn is_message(event: &Event) -> bool {
    !event.data.is_empty() && event.name.as_deref().is_none_or(|name| name == "message")
}
