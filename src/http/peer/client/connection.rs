//! One connection to a peer: its requests, and the task that reads it, asks whether the peer is there, looks after
//! answers that nobody takes, and ends.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use h2::client::SendRequest;
use h2::{Ping, PingPong, Reason, RecvStream};
use http::header::CONTENT_TYPE;
use http::{Request, Response};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::body::{Flow, HopBody, Tended};
use super::dial::Dialed;
use super::limits::ClientLimits;
use crate::http::peer::error::{HopError, NoWay};
use crate::http::peer::gathered::Gathered;

/// Requests after which a connection takes no more: stream ids end at 2^30 requests.
const MOST_REQUESTS: usize = 1 << 29;

/// One connection to a peer.
#[derive(Debug)]
pub(super) struct Connection {
    sender: SendRequest<Bytes>,
    /// How many requests at once, by both sides' limits.
    streams: usize,
    /// Requests whose answers have not ended.
    open: AtomicUsize,
    /// How many of these turned out to be event streams.
    long: AtomicUsize,
    /// Requests so far.
    begun: AtomicUsize,
    retired: AtomicBool,
    /// The peer has not answered a ping for as long as there is between two: it may be gone or stopped.
    silent: AtomicBool,
    /// Answers that did not come whole; looked after until they end.
    flows: Mutex<Vec<Weak<Flow>>>,
}

/// A place for one request on a connection, until its answer has ended.
#[derive(Debug)]
pub(super) struct Seat {
    connection: Arc<Connection>,
    length: Length,
}

/// How long an answer takes, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    Unknown,
    /// It is an event stream.
    Long,
}

/// Why a request has no answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// This connection takes no more, and the request did not arrive: another connection may take it.
    Elsewhere(NoWay),
    /// Final.
    Final(HopError),
}

// === impl Connection ===

impl Connection {
    pub(super) fn new(sender: SendRequest<Bytes>, limits: &ClientLimits) -> Arc<Self> {
        let streams = sender.current_max_send_streams().min(limits.streams as usize);
        Arc::new(Self {
            sender,
            streams,
            open: AtomicUsize::new(0),
            long: AtomicUsize::new(0),
            begun: AtomicUsize::new(0),
            retired: AtomicBool::new(false),
            silent: AtomicBool::new(false),
            flows: Mutex::new(Vec::new()),
        })
    }

    /// A place for one more, unless all are taken. Only one who holds the lock of the pool asks.
    pub(super) fn seat(self: &Arc<Self>) -> Option<Seat> {
        if self.is_retired() || self.open() >= self.streams {
            return None;
        }
        self.open.fetch_add(1, Relaxed);
        if self.begun.fetch_add(1, Relaxed) >= MOST_REQUESTS {
            self.retire();
        }
        Some(Seat { connection: self.clone(), length: Length::Unknown })
    }

    /// Takes no more requests; those that run go on.
    pub(super) fn retire(&self) {
        self.retired.store(true, Relaxed);
    }

    pub(super) fn is_retired(&self) -> bool {
        self.retired.load(Relaxed)
    }

    /// Whether it is doubtful that the peer is there: nothing is sent on it that could go by another connection, since
    /// what was sent and is not answered may have run.
    pub(super) fn is_silent(&self) -> bool {
        self.silent.load(Relaxed)
    }

    /// How many requests run.
    pub(super) fn open(&self) -> usize {
        self.open.load(Relaxed)
    }

    /// So many that a further connection should be there soon.
    pub(super) fn is_nearly_full(&self) -> bool {
        self.open() * 4 >= self.streams * 3
    }

    /// Half its places are held by event streams: it is none for calls any more.
    pub(super) fn is_mostly_streams(&self) -> bool {
        self.long.load(Relaxed) * 2 >= self.streams
    }

    /// Looks after every answer that is still to come.
    fn tend(&self, limits: &ClientLimits) {
        let mut flows = std::mem::take(&mut *self.flows.lock().unwrap_or_else(PoisonError::into_inner));
        let open = |flow: &Weak<Flow>| {
            flow.upgrade().is_some_and(|flow| flow.tend(limits.kept, limits.patience) == Tended::Open)
        };
        flows.retain(open);
        self.flows.lock().unwrap_or_else(PoisonError::into_inner).append(&mut flows);
    }
}

/// Keeps a connection going until it ends or is to `end`; `let_go` says whether the pool can do without it.
pub(super) async fn drive(
    dialed: Dialed,
    connection: Arc<Connection>,
    limits: &ClientLimits,
    end: &CancellationToken,
    let_go: impl Fn(&Arc<Connection>) -> LetGo,
) {
    let Dialed { http, mut pings, .. } = dialed;
    let requests = connection.clone();
    let mut http = Gathered::new(http, move || requests.open());
    let mut tick = interval(limits.ping.min(limits.patience / 4));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut asked, mut answered) = (None, Instant::now());
    let (mut idle_since, mut begun) = (Instant::now(), 0);
    loop {
        tokio::select! {
            // In this order: what came is read before anyone says that nothing came.
            biased;
            // Every stream is told by h2 itself.
            _ = &mut http => break,
            () = end.cancelled() => break,
            pong = pong(&mut pings), if asked.is_some() => {
                if pong.is_err() { break }
                (asked, answered) = (None, Instant::now());
                connection.silent.store(false, Relaxed);
            }
            _ = tick.tick() => {
                match asked {
                    Some(at) if Instant::elapsed(&at) >= limits.pong => {
                        tracing::warn!("a peer does not answer any more; the connection to it is closed");
                        break;
                    }
                    Some(at) if Instant::elapsed(&at) >= limits.ping => {
                        connection.silent.store(true, Relaxed);
                    }
                    None if answered.elapsed() >= limits.ping && pings.send_ping(Ping::opaque()).is_ok() => {
                        asked = Some(Instant::now());
                    }
                    Some(_) | None => {}
                }
                connection.tend(limits);
                let now_begun = connection.begun.load(Relaxed);
                if connection.open() > 0 || now_begun != begun {
                    (idle_since, begun) = (Instant::now(), now_begun);
                }
                let spare = connection.is_retired() || idle_since.elapsed() >= limits.idle;
                if spare && connection.open() == 0 && let_go(&connection) == LetGo::Gone {
                    break;
                }
            }
        }
    }
    connection.retire();
    // What is open is told that the connection broke, before the pool forgets it.
    drop(http);
    let_go(&connection);
}

/// Whether the pool still has a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LetGo {
    /// Nobody can be given it any more.
    Gone,
    /// Somebody was given it just now.
    Used,
}

/// Waits for the answer to a ping.
pub(super) async fn pong(pings: &mut PingPong) -> Result<(), h2::Error> {
    std::future::poll_fn(|cx| pings.poll_pong(cx)).await.map(drop)
}

// === impl Seat ===

impl Seat {
    /// Sends a request and waits for the head of its answer.
    ///
    /// # Cancellation
    /// Dropped, the stream is reset at the peer.
    pub(super) async fn send(mut self, head: Request<()>, body: Bytes) -> Result<Response<HopBody>, Failure> {
        let mut sender = self.connection.sender.clone();
        if let Err(error) = std::future::poll_fn(|cx| sender.poll_ready(cx)).await {
            return Err(self.unsent(&error));
        }
        let (answer, mut stream) =
            sender.send_request(head, body.is_empty()).map_err(|error| self.unsent(&error))?;
        if !body.is_empty() {
            // All of it at once: it is in memory anyway, and h2 hands it out as the peer's window allows. Should the
            // stream be over already, its answer says why.
            let _ = stream.send_data(body, true);
        }
        drop(stream);
        let (parts, body) = match answer.await {
            Ok(answer) => answer.into_parts(),
            Err(error) => return Err(self.unanswered(&error)),
        };
        let event_stream = |value: &http::HeaderValue| value.as_bytes().starts_with(b"text/event-stream");
        if parts.headers.get(CONTENT_TYPE).is_some_and(event_stream) {
            self.length = Length::Long;
            self.connection.long.fetch_add(1, Relaxed);
        }
        Ok(Response::from_parts(parts, self.body(body)))
    }

    fn body(self, stream: RecvStream) -> HopBody {
        let connection = self.connection.clone();
        HopBody::new(stream, self, |flow| {
            connection.flows.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(flow));
        })
    }

    /// The connection did not even take it, so that nothing was written.
    fn unsent(&self, error: &h2::Error) -> Failure {
        if error.is_io() || error.is_go_away() || error.is_reset() {
            self.connection.retire();
            return Failure::Elsewhere(NoWay::Leaving);
        }
        Failure::Final(HopError::Unreachable(NoWay::Unwritable(error.to_string().into())))
    }

    /// It was taken, and no answer came. Two signs prove that the peer did nothing with it; without one of them it
    /// may have.
    fn unanswered(&self, error: &h2::Error) -> Failure {
        // RFC 9113 section 8.7: it was not processed.
        if error.is_reset() && error.is_remote() && error.reason() == Some(Reason::REFUSED_STREAM) {
            return Failure::Final(HopError::Busy);
        }
        // Section 6.8: a stream above the last one that the peer may have processed. h2 fails no other stream so.
        if error.is_go_away() && error.is_remote() {
            self.connection.retire();
            return Failure::Elsewhere(NoWay::Leaving);
        }
        if !error.is_reset() {
            self.connection.retire();
        }
        Failure::Final(HopError::Broken(error.to_string().into()))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.connection.open.fetch_sub(1, Relaxed);
        if self.length == Length::Long {
            self.connection.long.fetch_sub(1, Relaxed);
        }
    }
}
