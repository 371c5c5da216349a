//! The standalone stream: what a server says outside any call comes on a GET (T25).

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode};
use tokio::time::Instant;

use super::body::Form;
use super::doubt;
use super::events::{End, Events, is_message};
use super::resume::{Cursor, Position};
use super::session::{Live, Session, Tracking};
use super::shared::Shared;
use crate::protocol::header::LAST_EVENT_ID;
use crate::protocol::revision::Era;
use crate::upstream::Heard;
use crate::upstream::pace::Backoff;

/// Whether the server ever opened the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Offered {
    /// In this session.
    Yes,
    /// In an earlier session of the link.
    Before,
    NotYet,
}

/// Keeps the stream of one session open until that is over.
struct Standalone {
    shared: Arc<Shared>,
    live: Arc<Live>,
    cursor: Cursor,
    backoff: Backoff,
    offered: Offered,
}

/// What to do after one connection.
enum Next {
    Again,
    Stop,
}

/// Starts to listen in the background, behind `cursor`.
pub(super) fn start(shared: &Arc<Shared>, live: Arc<Live>, cursor: Cursor) {
    let over = live.session.over.clone();
    let backoff = Backoff::new(shared.peer.pace);
    let offered = match (&cursor.id, shared.streamed.load(Relaxed)) {
        // Whoever had the link before had the stream.
        (Some(_), _) => Offered::Yes,
        (None, true) => Offered::Before,
        (None, false) => Offered::NotYet,
    };
    let standalone = Standalone { shared: Arc::clone(shared), live, cursor, backoff, offered };
    shared.peer.tasks.spawn(over.run_until_cancelled_owned(standalone.run()));
}

// === impl Standalone ===

impl Standalone {
    async fn run(mut self) {
        while let Next::Again = self.connect().await {
            let asked = self.cursor.retry.unwrap_or_default();
            // A server that had something to say may be asked again when it wants; one that had not, by our pace.
            let wait = if self.cursor.quiet == 0 && !asked.is_zero() {
                asked
            } else {
                self.backoff.wait().max(asked)
            };
            self.cursor.reconnect();
            tokio::time::sleep(wait).await;
        }
    }

    async fn connect(&mut self) -> Next {
        let peer = Arc::clone(&self.shared.peer);
        let server = peer.server.name.as_str();
        let mut headers = self.live.session.get.clone();
        if let Some(id) = self.cursor.id.as_deref().and_then(|id| HeaderValue::from_str(id).ok()) {
            headers.insert(LAST_EVENT_ID, id);
        }
        let response = match peer.origin.send(Method::GET, || headers.clone(), Bytes::new()).await {
            Ok(response) => response,
            Err(failure) => {
                tracing::debug!(server, %failure, "the standalone stream of a server could not be opened");
                return Next::Again;
            }
        };
        let (head, body) = response.into_parts();
        match head.status {
            StatusCode::OK if Form::of(&head) == Form::Events => {
                self.offered = Offered::Yes;
                self.shared.streamed.store(true, Relaxed);
                peer.listener.heard(Heard::OnStream);
                self.read(Events::new(body, peer.limit())).await;
                Next::Again
            }
            // Some say 404 where they mean 405; only from a server that had a stream is it a lost session.
            StatusCode::NOT_FOUND
                if self.offered == Offered::Yes && self.live.session.tracking() == Tracking::ById =>
            {
                let _ = self.shared.renew(&self.live).await;
                Next::Stop
            }
            // case-D03: the server offers none.
            StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED | StatusCode::NOT_FOUND => {
                self.without().await
            }
            // The cursor is none to it, perhaps of a life of the server before: from now on, then.
            StatusCode::BAD_REQUEST if self.cursor.id.is_some() => {
                tracing::debug!(server, "a server does not know where its standalone stream stood");
                self.cursor.id = None;
                Next::Again
            }
            // It answered a GET with something else: it knows no streams.
            status if status.is_success() => self.without().await,
            status => {
                tracing::debug!(server, status = status.as_u16(), "a server refused its standalone stream");
                Next::Again
            }
        }
    }

    /// The server does not open the stream, and is not asked again in this session; but one that had it has it again
    /// some day, unless it is of the other era by now.
    async fn without(&self) -> Next {
        let peer = &self.shared.peer;
        if self.offered == Offered::NotYet {
            peer.listener.heard(Heard::Never);
            return Next::Stop;
        }
        if doubt::is_other_era(peer, Era::Legacy).await { Next::Stop } else { Next::Again }
    }

    /// Reads one connection to its end.
    async fn read(&mut self, mut events: Events) {
        let peer = Arc::clone(&self.shared.peer);
        let server = peer.server.name.as_str();
        let session: &Arc<Session> = &self.live.session;
        let begun = Instant::now();
        let end = loop {
            match events.next().await {
                Ok(event) => {
                    if self.cursor.advance(&event) == Position::Known {
                        continue;
                    }
                    if is_message(&event)
                        && let Err(malformed) = peer.hear(session, &event.data, None, &peer.listener)
                    {
                        tracing::debug!(server, %malformed, "a server sent an event that is no message");
                        peer.metrics.unattributed(server);
                    }
                    if let Some(id) = self.cursor.id.as_deref() {
                        peer.listener.standalone_at(id);
                    }
                }
                Err(end) => break end,
            }
        };
        if end == End::TooLarge {
            tracing::warn!(
                server,
                limit = peer.limit().0,
                "a server sent a message over its limit; it was dropped"
            );
        }
        // Only a connection that held is a success; one that ends at once must not make a tight loop.
        if begun.elapsed() >= peer.pace.first * 10 {
            self.backoff.reset();
        }
    }
}
