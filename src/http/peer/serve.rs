//! The peer listener: TLS, then the question whose key that is, then HTTP/2; nothing of a stranger is read as HTTP.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http::{Request, Uri};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::BufReader;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

use super::client::limits::STREAM_WINDOW;
use super::gathered::Gathered;
use super::hop::{Hop, MalformedHop, not_read};
use super::together::{Begun, Together};
use super::{Acquaintance, Identity, KeyHash, Peers, Strangers};
use crate::protocol::header::REQUEST_ID;

/// rustls asks for 4 KiB at a time; this many bytes come from the kernel at once instead.
pub(super) const READ: usize = 32 << 10;
/// How much of one answer waits to be written; more is asked of its body as the peer takes it.
const UNWRITTEN: usize = 128 << 10;
/// Requests that a peer gave up before they were begun. Its callers may all leave at once, and that is no attack.
const GIVEN_UP: usize = 4096;

/// Takes forwarded requests from peers to a router. Each carries its [`Hop`] as an extension.
pub struct PeerListener {
    /// Our own key.
    pub identity: Arc<Identity>,
    /// Who may come in.
    pub peers: Arc<dyn Peers>,
    /// What answers.
    pub router: Router,
    /// How much of all.
    pub limits: ServeLimits,
    /// Counts who was turned away.
    pub strangers: Arc<Strangers>,
    /// Waits for connections and their streams.
    pub tasks: TaskTracker,
}

/// The bounds of the peer listener.
#[derive(Clone, Debug)]
pub struct ServeLimits {
    /// How long a connection may take to show its key and be known.
    pub handshake: Duration,
    /// Handshakes at once; further connections wait in the kernel's queue.
    pub handshakes: usize,
    /// Connections of peers at once; further ones wait in the kernel's queue.
    pub connections: u32,
    /// Requests at once on one connection; further ones wait at the peer, which opens another connection.
    pub streams: u32,
    /// All headers of a request together, bytes.
    pub headers: u32,
    /// After this long without a word a peer is asked whether it is there.
    pub ping: Duration,
    /// How long it may take to answer.
    pub pong: Duration,
}

/// How a listener stops. It listens to the very end: a peer that finds nobody there takes this replica for dead.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    /// No further connections and requests are taken; those that run go on.
    pub finish: CancellationToken,
    /// What still runs is cut.
    pub end: CancellationToken,
}

/// Why a connection came to nothing.
#[derive(Debug, thiserror::Error)]
enum Turned {
    /// TLS failed.
    #[error("{0}")]
    Tls(#[from] std::io::Error),
    /// Nobody's key.
    #[error("no live lease names key {0:?}")]
    Stranger(KeyHash),
    /// It was not to be learnt whose key it is.
    #[error("whose key {0:?} is could not be asked: {1}")]
    NotAsked(KeyHash, Box<str>),
}

// === impl PeerListener ===

impl PeerListener {
    /// Accepts until `stop`; returns when the last connection is gone, and only then stops listening.
    pub async fn serve(self, listener: TcpListener, stop: Stop) {
        let this = Arc::new(self);
        let places = Arc::new(Semaphore::new(this.limits.connections as usize));
        let handshakes = Arc::new(Semaphore::new(this.limits.handshakes));
        tokio::select! {
            () = this.accept(&listener, &places, &handshakes, &stop) => {}
            () = stop.finish.cancelled() => {}
            () = stop.end.cancelled() => {}
        }
        // All places are free once no connection is left.
        let _ = places.acquire_many(this.limits.connections).await;
    }

    async fn accept(
        self: &Arc<Self>,
        listener: &TcpListener,
        places: &Arc<Semaphore>,
        handshakes: &Arc<Semaphore>,
        stop: &Stop,
    ) {
        loop {
            let Ok(place) = places.clone().acquire_owned().await else { return };
            let Ok(handshake) = handshakes.clone().acquire_owned().await else { return };
            match listener.accept().await {
                Ok((socket, from)) => {
                    let (this, stop) = (self.clone(), stop.clone());
                    self.tasks.spawn(async move {
                        this.meet(socket, from, handshake, &stop).await;
                        drop(place);
                    });
                }
                Err(error) => {
                    // Out of descriptors, most likely: a short rest instead of a busy loop.
                    tracing::warn!(%error, "a connection from a peer could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }

    /// Learns who is there, and serves a peer.
    async fn meet(&self, socket: TcpStream, from: SocketAddr, handshake: OwnedSemaphorePermit, stop: &Stop) {
        let _ = socket.set_nodelay(true);
        let greeted = tokio::select! {
            greeted = timeout(self.limits.handshake, self.greet(socket)) => greeted,
            () = stop.finish.cancelled() => return,
            () = stop.end.cancelled() => return,
        };
        drop(handshake);
        match greeted {
            // Boxed, so that a connection that comes to nothing has no room for it.
            Ok(Ok(tls)) => Box::pin(self.speak(tls, stop)).await,
            Ok(Err(turned)) => self.strangers.note(from, &turned.to_string()),
            Err(_) => self.strangers.note(from, "no handshake in time"),
        }
    }

    async fn greet(&self, socket: TcpStream) -> Result<TlsStream<BufReader<TcpStream>>, Turned> {
        let acceptor = TlsAcceptor::from(self.identity.listening());
        let tls = acceptor.accept(BufReader::with_capacity(READ, socket)).await?;
        let key = tls.get_ref().1.peer_certificates().and_then(|keys| keys.first());
        // TLS did not let anyone through without a key.
        let key_hash = KeyHash::of(key.map_or(&[], |key| key.as_ref()));
        match self.peers.known_as(key_hash).await {
            Acquaintance::Peer => Ok(tls),
            Acquaintance::Stranger => Err(Turned::Stranger(key_hash)),
            Acquaintance::NotAsked(why) => Err(Turned::NotAsked(key_hash, why)),
        }
    }

    async fn speak(&self, tls: TlsStream<BufReader<TcpStream>>, stop: &Stop) {
        let router = self.router.clone();
        let service = service_fn(move |request| answer(router.clone(), request));
        let begun = Begun::default();
        let mut http = http2::Builder::new(begun.clone());
        http.timer(TokioTimer::new())
            .auto_date_header(false)
            .max_concurrent_streams(self.limits.streams)
            .max_header_list_size(self.limits.headers)
            .max_pending_accept_reset_streams(GIVEN_UP)
            .max_local_error_reset_streams(None)
            .max_send_buf_size(UNWRITTEN)
            // The connection's window covers all its streams: a body that nobody reads holds back no other.
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(STREAM_WINDOW.saturating_mul(self.limits.streams))
            .keep_alive_interval(Some(self.limits.ping))
            .keep_alive_timeout(self.limits.pong);
        let connection = std::pin::pin!(http.serve_connection(TokioIo::new(tls), service));
        let together = Together::new(connection, begun.clone());
        let mut connection = Gathered::new(together, || begun.open());
        tokio::select! {
            _ = &mut connection => return,
            () = stop.end.cancelled() => return,
            () = stop.finish.cancelled() => connection.connection.connection.as_mut().graceful_shutdown(),
        }
        tokio::select! {
            _ = connection => {}
            () = stop.end.cancelled() => {}
        }
    }
}

async fn answer(router: Router, mut request: Request<Incoming>) -> Result<Response, Infallible> {
    let hop = match Hop::take(request.headers_mut()) {
        Ok(hop) => hop,
        Err(malformed) => return Ok(refused(malformed)),
    };
    request.extensions_mut().insert(hop);
    // As it stood in the request at the edge: the hop's own scheme and authority mean nothing.
    if let Some(path) = request.uri().path_and_query().cloned() {
        *request.uri_mut() = Uri::from(path);
    }
    let mut answer = router.oneshot(request.map(Body::new)).await?;
    if let Some(id) = answer.headers_mut().get_mut(REQUEST_ID) {
        // It comes once: nothing to remember for compression.
        id.set_sensitive(true);
    }
    Ok(answer)
}

fn refused(malformed: MalformedHop) -> Response {
    tracing::warn!(error = %malformed, "a forwarded request was refused; bring all replicas to one version");
    not_read()
}

// === impl ServeLimits ===

impl Default for ServeLimits {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(3),
            handshakes: 256,
            connections: 4096,
            streams: 1024,
            headers: 128 << 10,
            ping: Duration::from_secs(2),
            pong: Duration::from_secs(10),
        }
    }
}
