//! Sending requests to peers, over connections that are kept.
//!
//! A [`HopError`] says what is surely known of a request without an answer, and the rest of this module is built
//! around that: HTTP/2 is spoken through the `h2` crate itself, since above it nobody tells a request that was refused
//! from one that may have run.

pub(super) mod body;
mod connection;
pub(super) mod dial;
pub(super) mod limits;
mod pool;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, COOKIE, EXPECT, HOST, TE, TRANSFER_ENCODING, UPGRADE,
};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Uri, Version};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::body::HopBody;
use self::connection::Failure;
use self::limits::ClientLimits;
use self::pool::{Kind, Pool};
use super::error::{HopError, NoWay};
use super::hop::{self, Hop};
use super::{Identity, KeyHash, PeerAddress};
use crate::protocol::header::{API_KEY, LAST_EVENT_ID, SESSION_ID};

/// How many connections a request is tried on, as long as each surely did not take it.
const TRIES: usize = 3;
/// Headers that speak of one connection only (RFC 9110 section 7.6.1), and those that are written anew.
const OF_THE_CONNECTION: [HeaderName; 8] = [
    CONNECTION,
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
    EXPECT,
    CONTENT_LENGTH,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];
/// What tells callers apart, and their secrets. They go into no compression table: callers share the table, so that
/// its hits would tell of one to another, and what comes once would push out what always comes.
const NEVER_INDEXED: [HeaderName; 5] = [AUTHORIZATION, COOKIE, API_KEY, SESSION_ID, LAST_EVENT_ID];

/// A request as its caller sent it; only read, so that whoever holds it may send it again.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// What is asked for.
    pub method: &'a Method,
    /// Of what.
    pub uri: &'a Uri,
    /// The caller's headers.
    pub headers: &'a HeaderMap,
    /// All of the body.
    pub body: &'a Bytes,
}

/// Sends requests to other replicas; clones share the connections.
#[derive(Clone)]
pub struct PeerClient(Arc<Shared>);

/// What all connections share.
struct Shared {
    identity: Arc<Identity>,
    limits: ClientLimits,
    tasks: TaskTracker,
    /// Cancelled when all connections are to break.
    end: CancellationToken,
    /// Changes when a replica is first spoken to, and after the last connection to one is gone.
    pools: ArcSwap<HashMap<KeyHash, Arc<Pool>>>,
}

// === impl Outgoing ===

impl<'a> From<&'a Request<Bytes>> for Outgoing<'a> {
    fn from(request: &'a Request<Bytes>) -> Self {
        Self {
            method: request.method(),
            uri: request.uri(),
            headers: request.headers(),
            body: request.body(),
        }
    }
}

// === impl PeerClient ===

impl PeerClient {
    /// A client that shows this key; connections run on `tasks`.
    pub fn new(identity: Arc<Identity>, limits: ClientLimits, tasks: TaskTracker) -> Self {
        Self(Arc::new(Shared {
            identity,
            limits,
            tasks,
            end: CancellationToken::new(),
            pools: ArcSwap::default(),
        }))
    }

    /// Sends a request and waits for the head of its answer, however long that takes.
    ///
    /// Whoever holds the request may send it again where [`HopError::delivery`] allows that. What was refused by a connection
    /// that surely did nothing with it is tried on another one here.
    ///
    /// # Cancellation
    /// Dropped, the request's stream is reset at the peer.
    ///
    /// # Errors
    /// [`HopError`]
    pub async fn send(
        &self,
        to: &PeerAddress,
        hop: &Hop,
        request: Outgoing<'_>,
    ) -> Result<Response<HopBody>, HopError> {
        let kind = Kind::of(request.method);
        let mut why = NoWay::Leaving;
        for _ in 0..TRIES {
            let seat = self.0.pool(to).seat(kind, &self.0).await?;
            match seat.send(head(hop, request), request.body.clone()).await {
                Ok(answer) => return hop::declined(&answer).map_or(Ok(answer), Err),
                Err(Failure::Elsewhere(no_way)) => why = no_way,
                Err(Failure::Final(error)) => return Err(error),
            }
        }
        Err(HopError::Unreachable(why))
    }

    /// Breaks all connections, at the end of the process: what runs on them has an unknown outcome.
    pub fn end(&self) {
        self.0.end.cancel();
    }

    /// How many replicas it keeps connections to.
    pub fn known(&self) -> usize {
        self.0.pools.load().len()
    }

    /// Whether a replica can be reached: makes a connection, if there is none.
    ///
    /// # Errors
    /// [`HopError`]
    pub async fn reach(&self, to: &PeerAddress) -> Result<(), HopError> {
        self.0.pool(to).seat(Kind::Call, &self.0).await.map(drop)
    }
}

impl fmt::Debug for PeerClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerClient").finish_non_exhaustive()
    }
}

/// The head as it travels: what the caller sent, and the hop's own set.
fn head(hop: &Hop, request: Outgoing<'_>) -> Request<()> {
    let mut head = Request::new(());
    *head.method_mut() = request.method.clone();
    *head.uri_mut() = uri(request.uri);
    *head.version_mut() = Version::HTTP_2;
    let headers = head.headers_mut();
    headers.reserve(request.headers.len() + 4);
    copy(request.headers, headers);
    if !request.body.is_empty() {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(request.body.len()));
    }
    // HTTP/2 says it in the request line; the owner sees what HTTP/1 would have shown it.
    if let Some(authority) = request.uri.authority()
        && !headers.contains_key(HOST)
        && let Ok(host) = HeaderValue::from_str(authority.as_str())
    {
        headers.insert(HOST, host);
    }
    hop.write(headers);
    head
}

/// Copies what a caller may say to the owner.
fn copy(from: &HeaderMap, to: &mut HeaderMap) {
    for (name, value) in from {
        if !OF_THE_CONNECTION.contains(name) && !hop::is_ours(name) {
            let mut value = value.clone();
            value.set_sensitive(NEVER_INDEXED.contains(name));
            to.append(name.clone(), value);
        }
    }
}

/// The path, with the scheme and authority that HTTP/2 wants; they mean nothing here.
fn uri(of: &Uri) -> Uri {
    let mut parts = http::uri::Parts::default();
    parts.scheme = Some(http::uri::Scheme::HTTPS);
    parts.authority = Some(http::uri::Authority::from_static("mcpgate"));
    parts.path_and_query =
        Some(of.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/")));
    Uri::from_parts(parts).unwrap_or_default()
}

// === impl Shared ===

impl Shared {
    /// The connections to this replica.
    fn pool(&self, to: &PeerAddress) -> Arc<Pool> {
        if let Some(pool) = self.pools.load().get(&to.key_hash).filter(|pool| pool.to == *to) {
            return pool.clone();
        }
        let pool = Pool::new(to.clone());
        self.pools.rcu(|pools| {
            let mut pools = HashMap::clone(pools);
            if pools.get(&to.key_hash).is_none_or(|known| known.to != *to) {
                pools.insert(to.key_hash, pool.clone());
            }
            pools
        });
        // Who came first is who all use.
        self.pools.load().get(&to.key_hash).filter(|known| known.to == *to).cloned().unwrap_or(pool)
    }

    /// Forgets a replica to which no connection is left. A request that has its pool already makes one more, which is
    /// then not shared, and goes as any other.
    fn forget_if_unused(&self, pool: &Arc<Pool>) {
        if !pool.is_empty() {
            return;
        }
        self.pools.rcu(|pools| {
            let mut pools = HashMap::clone(pools);
            if pools.get(&pool.to.key_hash).is_some_and(|known| Arc::ptr_eq(known, pool)) {
                pools.remove(&pool.to.key_hash);
            }
            pools
        });
    }
}
