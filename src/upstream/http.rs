//! A link to a Streamable HTTP server: one upstream session, used by request.
//!
//! Each message is a POST of its own (T5). A server that cannot be reached for a while does not break the link,
//! since the next request connects anew; a session the server forgot is begun anew (case-D01). What the server
//! says outside any call comes on a standalone GET, if it offers one.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use self::peer::Peer;
use self::resume::Cursor;
use self::shared::Shared;
use super::{Failure, Farewell, Hello, Introduction, Listener, Outgoing, Reply, UpstreamId};
use crate::protocol::envelope::{Notification, Request, Response};
use crate::protocol::revision::{Era, Revision};
use crate::settings::ServerSettings;
use crate::store::ServerState;
use crate::telemetry::Metrics;

mod body;
mod call;
mod client;
mod cookies;
mod doubt;
mod events;
mod fault;
mod handshake;
mod matching;
mod notify;
mod origin;
mod peer;
mod probe;
mod reply;
mod resume;
mod running;
mod session;
mod shared;
mod standalone;

pub use client::HttpClient;
pub use probe::probe;

/// Ends a session that no link here has (T33).
pub(super) async fn end_session(
    server: &Arc<ServerSettings>,
    state: &ServerState,
    client: &HttpClient,
    tasks: &TaskTracker,
    metrics: &Arc<Metrics>,
) {
    let deaf: Arc<dyn Listener> = Arc::new(Deaf);
    if let Ok(peer) = Peer::new(server.clone(), 0, deaf, client, tasks, metrics) {
        let revision = Revision::legacy(&state.revision).ok();
        peer.end(&session::known(&peer, state, revision)).await;
    }
}

/// Hears nothing: what ends has nothing more to say.
struct Deaf;

impl Listener for Deaf {
    fn notification(&self, _: Notification) {}

    fn request(&self, _: Request, _: Reply) {}
}

/// A session with a Streamable HTTP server.
pub struct HttpLink {
    shared: Arc<Shared>,
    /// Ends the background work of a link that is dropped without [`HttpLink::close`].
    _end: DropGuard,
}

// === impl HttpLink ===

impl HttpLink {
    /// Begins a session with `server` within its `timeouts.start`.
    ///
    /// # Errors
    /// [`Failure`] in layer `transport` if no MCP answer came, in layer `handshake` if the answer was no.
    pub async fn open(
        server: Arc<ServerSettings>,
        hello: Hello,
        epoch: u32,
        listener: Arc<dyn Listener>,
        client: &HttpClient,
        tasks: &TaskTracker,
        metrics: &Arc<Metrics>,
    ) -> Result<Self, Failure> {
        let peer = Arc::new(Peer::new(server, epoch, listener, client, tasks, metrics)?);
        let end = peer.closed.clone().drop_guard();
        let shared = Shared::open(peer, hello).await?;
        Ok(Self { shared, _end: end })
    }

    /// Goes on with a session that another replica began at a legacy server.
    ///
    /// # Errors
    /// [`Failure`] if the server's settings cannot be written into a request.
    pub fn resume(
        server: Arc<ServerSettings>,
        (state, hello): (&ServerState, Hello),
        epoch: u32,
        listener: Arc<dyn Listener>,
        client: &HttpClient,
        tasks: &TaskTracker,
        metrics: &Arc<Metrics>,
    ) -> Result<Self, Failure> {
        let peer = Arc::new(Peer::new(server, epoch, listener, client, tasks, metrics)?);
        let end = peer.closed.clone().drop_guard();
        let live = session::begun(&peer, state)
            .ok_or_else(|| fault::settings(&peer.server.name, "the stored session cannot be understood"))?;
        let cursor = Cursor::behind(state.cursor.clone());
        Ok(Self { shared: Shared::with(peer, hello, live, cursor), _end: end })
    }

    /// A link to a modern server: nothing is sent for it, since each request stands alone.
    ///
    /// # Errors
    /// [`Failure`] if the server's settings cannot be written into a request.
    pub fn modern(
        server: Arc<ServerSettings>,
        introduction: Arc<Introduction>,
        epoch: u32,
        listener: Arc<dyn Listener>,
        client: &HttpClient,
        tasks: &TaskTracker,
        metrics: &Arc<Metrics>,
    ) -> Result<Self, Failure> {
        let peer = Arc::new(Peer::new(server, epoch, listener, client, tasks, metrics)?);
        let end = peer.closed.clone().drop_guard();
        Ok(Self { shared: Shared::modern(peer, introduction), _end: end })
    }

    /// What the server said when the session began, or began anew.
    pub fn introduction(&self) -> Arc<Introduction> {
        Arc::clone(&self.shared.live().introduction)
    }

    /// The era it is spoken to in; another one takes another link.
    pub fn era(&self) -> Era {
        self.shared.era()
    }

    /// A fresh id for a request.
    pub fn allot(&self) -> UpstreamId {
        self.shared.peer.allot()
    }

    /// Sends a request and waits for its response.
    ///
    /// # Errors
    /// [`Failure`] if no response came; only one that never left is [`super::Delivery::NotDelivered`].
    ///
    /// # Cancellation
    /// Dropping the future closes the HTTP exchange, and over HTTP/1.1 its connection too.
    pub async fn call(
        &self,
        id: UpstreamId,
        request: Outgoing,
        listener: Arc<dyn Listener>,
    ) -> Result<Response, Failure> {
        let peer = &self.shared.peer;
        let live = self.shared.usable()?;
        let _running = peer.running.enter(id, &listener);
        let call = call::call(&self.shared, live, id, &request, &listener);
        peer.closed.run_until_cancelled(call).await.unwrap_or_else(|| Err(fault::closed(&peer.server.name)))
    }

    /// Sends a notification.
    ///
    /// # Errors
    /// [`Failure`] if the server did not take it.
    pub async fn notify(&self, message: Bytes) -> Result<(), Failure> {
        let peer = &self.shared.peer;
        let live = self.shared.usable()?;
        let notify = notify::notify(&self.shared, live, &message);
        peer.closed.run_until_cancelled(notify).await.unwrap_or_else(|| Err(fault::closed(&peer.server.name)))
    }

    /// Whether it was closed, or a lost session could not be begun anew.
    pub fn is_down(&self) -> bool {
        self.shared.is_down()
    }

    /// Cancelled when it is down.
    pub fn ended(&self) -> &CancellationToken {
        &self.shared.ended
    }

    /// Ends the calls that run, then the upstream session if it is over for good (T33).
    pub async fn close(&self, farewell: Farewell) {
        let peer = &self.shared.peer;
        if peer.closed.is_cancelled() {
            return;
        }
        // The server hears what it was answered before it hears that the session is over.
        peer.replies_sent().await;
        peer.closed.cancel();
        match farewell {
            Farewell::End => peer.end(&self.shared.live().session).await,
            Farewell::Leave => {}
        }
    }
}

impl fmt::Debug for HttpLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("HttpLink");
        out.field("server", &self.shared.peer.server.name)
            .field("down", &self.is_down())
            .finish_non_exhaustive()
    }
}
