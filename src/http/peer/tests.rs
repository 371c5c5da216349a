//! The hop between two sides in one process, over loopback, and between one side and a scripted one.

mod errors;
mod flow;
mod lanes;
mod listener;
mod scripted;

use std::collections::HashSet;
use std::future::Future;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt as _;
use tokio::net::TcpListener;
use tokio_util::task::TaskTracker;

use super::*;

/// The longest that anything here may take.
const LIMIT: Duration = Duration::from_secs(30);

/// Those with a lease, and how many connections asked.
#[derive(Default)]
struct Leases {
    known: Mutex<HashSet<[u8; 32]>>,
    asked: AtomicUsize,
    /// Why nobody can be asked.
    outage: Mutex<Option<&'static str>>,
}

impl Peers for Leases {
    fn known_as(&self, key_hash: KeyHash) -> BoxFuture<'_, Acquaintance> {
        self.asked.fetch_add(1, Relaxed);
        let known = match &*self.outage.lock().expect("a lock") {
            Some(why) => Acquaintance::NotAsked((*why).into()),
            None if self.known.lock().expect("a lock").contains(&key_hash.0) => Acquaintance::Peer,
            None => Acquaintance::Stranger,
        };
        Box::pin(async move { known })
    }
}

/// A replica that owns sessions: a peer listener.
struct Owner {
    to: PeerAddress,
    leases: Arc<Leases>,
    strangers: Arc<Strangers>,
    stop: Stop,
    tasks: TaskTracker,
}

/// A replica that forwards.
struct Edge {
    client: PeerClient,
    identity: Arc<Identity>,
    tasks: TaskTracker,
}

impl Owner {
    async fn start(router: Router, limits: ServeLimits) -> Self {
        Self::listen(TcpListener::bind("127.0.0.1:0").await.expect("a port"), router, limits)
    }

    fn listen(listener: TcpListener, router: Router, limits: ServeLimits) -> Self {
        let identity = Arc::new(Identity::generate().expect("a key"));
        let to = address(listener.local_addr().expect("an address"), &identity);
        let (leases, strangers) = (Arc::new(Leases::default()), Arc::new(Strangers::default()));
        let (stop, tasks) = (Stop::default(), TaskTracker::new());
        let (peers, strangers_too) = (leases.clone(), strangers.clone());
        let serving =
            PeerListener { identity, peers, router, limits, strangers: strangers_too, tasks: tasks.clone() };
        tasks.spawn(serving.serve(listener, stop.clone()));
        tasks.close();
        Self { to, leases, strangers, stop, tasks }
    }

    fn knows(self, edge: &Edge) -> Self {
        self.leases.known.lock().expect("a lock").insert(edge.identity.key_hash().0);
        self
    }
}

impl Edge {
    fn new(limits: ClientLimits) -> Self {
        let identity = Arc::new(Identity::generate().expect("a key"));
        let tasks = TaskTracker::new();
        Self { client: PeerClient::new(identity.clone(), limits, tasks.clone()), identity, tasks }
    }

    async fn send(
        &self,
        to: &PeerAddress,
        request: Request<Bytes>,
    ) -> Result<http::Response<HopBody>, HopError> {
        within(self.client.send(to, &hop(to), (&request).into())).await
    }

    /// The whole text of an answer.
    async fn text(&self, to: &PeerAddress, request: Request<Bytes>) -> String {
        let answer = self.send(to, request).await.expect("an answer");
        String::from_utf8(whole(answer.into_body()).await.expect("a body").to_vec()).expect("text")
    }
}

fn address(address: SocketAddr, identity: &Identity) -> PeerAddress {
    let replica = Replica::parse("owner-1").expect("an id");
    PeerAddress { replica, address, key_hash: identity.key_hash() }
}

fn hop(to: &PeerAddress) -> Hop {
    let edge_peer = Some(SocketAddr::from(([192, 0, 2, 7], 4711)));
    let from = Replica::parse("edge-1").expect("an id");
    Hop { edge_peer, replica: to.replica.clone(), epoch: Some(3), hops: 1, from }
}

async fn whole(body: HopBody) -> Result<Bytes, HopBodyError> {
    within(body.collect()).await.map(http_body_util::Collected::to_bytes)
}

async fn within<F: Future>(what: F) -> F::Output {
    tokio::time::timeout(LIMIT, what).await.expect("in time")
}

fn post(body: impl Into<Bytes>) -> Request<Bytes> {
    Request::post("/mcp").body(body.into()).expect("a request")
}

fn get() -> Request<Bytes> {
    Request::get("/mcp").body(Bytes::new()).expect("a request")
}

/// Without hurry: a busy machine breaks nothing.
fn calm() -> ClientLimits {
    ClientLimits { connect: LIMIT, handshake: LIMIT, pong: LIMIT, patience: LIMIT, ..ClientLimits::default() }
}

/// The same at the owner.
fn calm_listener() -> ServeLimits {
    ServeLimits { handshake: LIMIT, pong: LIMIT, ..ServeLimits::default() }
}

/// Answers with what it was sent.
fn echo() -> Router {
    Router::new().fallback(|request: axum::extract::Request| async { request.into_body() })
}

/// Waits until something is so.
async fn until(mut so: impl FnMut() -> bool) {
    let looks = async {
        while !so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within(looks).await;
}

/// An endless event stream, of pieces of this size, that counts what was taken of it and notes its end.
fn endless(piece: usize, given: Arc<AtomicUsize>, ended: Arc<AtomicUsize>) -> axum::response::Response {
    struct Ends(Arc<AtomicUsize>);
    impl Drop for Ends {
        fn drop(&mut self) {
            self.0.fetch_add(1, Relaxed);
        }
    }
    let ends = Ends(ended);
    let pieces = futures_util::stream::repeat_with(move || {
        let _alive = &ends;
        given.fetch_add(piece, Relaxed);
        Ok::<_, std::convert::Infallible>(Bytes::from(vec![b'x'; piece]))
    });
    http::Response::builder()
        .header("content-type", "text/event-stream")
        .body(Body::from_stream(pieces))
        .expect("an answer")
}
