//! The event stream of one request, over as many connections as it takes (T28, X46).

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{HeaderValue, Method, StatusCode};
use hyper::body::Incoming;

use super::body::Form;
use super::events::{End, Events, is_message};
use super::matching::is_id;
use super::peer::Peer;
use super::session::Session;
use super::{call, fault};
use crate::protocol::envelope::{Malformed, Response};
use crate::protocol::header::LAST_EVENT_ID;
use crate::protocol::revision::Era;
use crate::protocol::sse::Event;
use crate::upstream::pace::{Backoff, Pace};
use crate::upstream::{Failure, Listener, UpstreamId};

/// How often in a row a resume may fail before the outcome is unknown.
const TRIES: usize = 5;
/// How many ids of events are remembered to tell a repeated one.
const REMEMBERED: usize = 1024;
/// The shortest wait before a server is asked again, whatever it says; it doubles while nothing new comes.
const SHORTEST: Duration = Duration::from_millis(20);

/// Reads the stream that answers a request until its response, resuming where the server lets it.
pub(super) async fn follow(
    peer: &Arc<Peer>,
    session: &Arc<Session>,
    id: UpstreamId,
    body: Incoming,
    listener: &Arc<dyn Listener>,
) -> Result<Response, Failure> {
    let server = peer.server.name.as_str();
    let mut events = Events::new(body, peer.limit());
    let mut cursor = Cursor::default();
    let mut backoff = Backoff::new(peer.pace);
    loop {
        let end = match next(&mut events, listener).await {
            Ok(event) => {
                if cursor.advance(&event) == Position::Known {
                    continue;
                }
                backoff.reset();
                if let Some(id) = &event.id {
                    listener.at(id);
                }
                if !is_message(&event) {
                    continue;
                }
                match peer.hear(session, &event.data, Some(id), listener) {
                    Ok(None) => continue,
                    Ok(Some(response)) => {
                        events.finish(&peer.tasks);
                        return Ok(response);
                    }
                    // A spoilt answer is an answer: nothing better will come.
                    Err(Malformed::Shape { why, id: of })
                        if of.as_deref().is_none_or(|of| !is_id(of, id)) =>
                    {
                        // JSON, but no message: it may be one of a revision to come, so the stream goes on.
                        tracing::debug!(server, why, "a server sent an event that is no message");
                        continue;
                    }
                    // No JSON object at all, such as a greeting for people: no message was meant.
                    Err(Malformed::Json(_)) if !event.data.trim_ascii_start().starts_with(b"{") => {
                        tracing::debug!(server, "a server sent an event that is no JSON");
                        continue;
                    }
                    Err(malformed) => return Err(call::nonsense(server, &malformed)),
                }
            }
            Err(end) => end,
        };
        listener.settled();
        match end {
            End::TooLarge => return Err(fault::too_large(server, peer.limit().0)),
            // T55: a modern server lets no stream be taken up again, whatever ids it gives.
            End::Broken | End::Clean if cursor.id.is_none() || session.era == Era::Modern => {
                return Err(fault::broken(server));
            }
            // A server may end a connection on purpose once it gave a cursor (T20).
            End::Clean => listener.polled(cursor.retry),
            End::Broken => {}
        }
        events = resume(peer, session, &mut cursor, &mut backoff).await?;
    }
}

/// The next event. Before it waits for one, it tells the listener that those which came together are all there.
async fn next(events: &mut Events, listener: &Arc<dyn Listener>) -> Result<Event, End> {
    if let Some(next) = events.next().now_or_never() {
        return next;
    }
    // hyper hands out a body piece by piece, each from its own task: one turn for that task, and the next piece of
    // what has arrived already is here.
    let mut turn_given = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut turn_given, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
    if let Some(next) = events.next().now_or_never() {
        return next;
    }
    listener.settled();
    events.next().await
}

/// Opens the stream again behind the cursor.
async fn resume(
    peer: &Peer,
    session: &Session,
    cursor: &mut Cursor,
    backoff: &mut Backoff,
) -> Result<Events, Failure> {
    let broken = || fault::broken(&peer.server.name);
    let id = cursor.id.as_deref().and_then(|id| HeaderValue::from_str(id).ok()).ok_or_else(broken)?;
    let mut headers = session.get.clone();
    headers.insert(LAST_EVENT_ID, id);
    cursor.reconnect();
    let mut wait = cursor.pause(peer.pace).unwrap_or_else(|| backoff.wait());
    for _ in 0..TRIES {
        tokio::time::sleep(wait).await;
        wait = cursor.retry.unwrap_or_default().max(backoff.wait());
        let Ok(response) = peer.origin.send(Method::GET, || headers.clone(), Bytes::new()).await else {
            continue;
        };
        let (head, body) = response.into_parts();
        match head.status {
            StatusCode::OK if Form::of(&head) == Form::Events => return Ok(Events::new(body, peer.limit())),
            // An earlier connection may still count as open, and a server may be busy.
            StatusCode::CONFLICT | StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => {}
            status if status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED => {}
            _ => return Err(broken()),
        }
    }
    Err(broken())
}

/// Where a stream stands.
#[derive(Debug, Default)]
pub(super) struct Cursor {
    /// The last id the server gave.
    pub(super) id: Option<Box<str>>,
    /// How long it asked to wait.
    pub(super) retry: Option<Duration>,
    /// How many connections in a row brought nothing new.
    pub(super) quiet: u32,
    /// Hashes of the ids that came on earlier connections.
    earlier: VecDeque<u64>,
    /// The same of this connection.
    current: VecDeque<u64>,
}

/// Whether an event is news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Position {
    New,
    /// It came on an earlier connection.
    Known,
}

// === impl Cursor ===

impl Cursor {
    /// Behind the event of this id, which came to whoever had the stream before.
    pub(super) fn behind(id: Option<Box<str>>) -> Self {
        Self { id, ..Self::default() }
    }

    /// Moves behind `event`.
    pub(super) fn advance(&mut self, event: &Event) -> Position {
        self.retry = event.retry.or(self.retry);
        let Some(id) = &event.id else {
            self.quiet = 0;
            return Position::New;
        };
        self.id = Some(id.clone()).filter(|id| !id.is_empty());
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        let hash = hasher.finish();
        if self.earlier.contains(&hash) {
            return Position::Known;
        }
        self.quiet = 0;
        if self.current.len() == REMEMBERED {
            self.current.pop_front();
        }
        self.current.push_back(hash);
        Position::New
    }

    /// A new connection begins.
    pub(super) fn reconnect(&mut self) {
        self.quiet = self.quiet.saturating_add(1);
        self.earlier.append(&mut self.current);
        let surplus = self.earlier.len().saturating_sub(REMEMBERED);
        self.earlier.drain(..surplus);
    }

    /// How long the server asked to wait before the next connection (T22). One that asks for no wait and brings
    /// nothing is held to `pace`.
    fn pause(&self, pace: Pace) -> Option<Duration> {
        let floor = SHORTEST.saturating_mul(2u32.saturating_pow(self.quiet)).min(pace.first);
        self.retry.map(|retry| retry.max(floor))
    }
}
