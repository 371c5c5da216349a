//! A link's session, and its renewal when the server lost it (case-D01, X45).

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::peer::Peer;
use super::resume::Cursor;
use super::session::{Live, Session};
use super::{fault, handshake, standalone};
use crate::protocol::revision::Era;
use crate::upstream::{Failure, Hello, Introduction};

/// What the calls of a link and its background tasks share.
pub(super) struct Shared {
    pub(super) peer: Arc<Peer>,
    /// What a lost session is begun anew with; a modern link has none.
    hello: Option<Hello>,
    live: ArcSwap<Live>,
    /// Whether the server ever opened a standalone stream.
    pub(super) streamed: AtomicBool,
    /// Held by the one renewal that runs.
    renewing: Mutex<()>,
    /// Why the session could not be begun anew; the link is of no more use then.
    failed: OnceLock<Failure>,
    /// Cancelled when the link is of no more use.
    pub(super) ended: CancellationToken,
}

// === impl Shared ===

impl Shared {
    /// Begins the first session.
    pub(super) async fn open(peer: Arc<Peer>, hello: Hello) -> Result<Arc<Self>, Failure> {
        let live = handshake::open(&peer, &hello).await?;
        Ok(Self::with(peer, hello, live, Cursor::default()))
    }

    /// With a session that has begun, and whose standalone stream stands at `cursor`.
    pub(super) fn with(peer: Arc<Peer>, hello: Hello, live: Live, cursor: Cursor) -> Arc<Self> {
        let live = Arc::new(live);
        let ended = peer.closed.child_token();
        let shared = Arc::new(Self {
            peer,
            hello: Some(hello),
            live: ArcSwap::from(Arc::clone(&live)),
            streamed: AtomicBool::new(false),
            renewing: Mutex::default(),
            failed: OnceLock::new(),
            ended,
        });
        standalone::start(&shared, live, cursor);
        shared
    }

    /// No session: a modern server, which said this of itself.
    pub(super) fn modern(peer: Arc<Peer>, introduction: Arc<Introduction>) -> Arc<Self> {
        let revision = Some(introduction.revision);
        let session = Session::new(&peer.origin.headers, None, revision, peer.closed.child_token());
        let live = Live { session: Arc::new(session), introduction };
        let ended = peer.closed.child_token();
        Arc::new(Self {
            peer,
            hello: None,
            live: ArcSwap::from_pointee(live),
            streamed: AtomicBool::new(false),
            renewing: Mutex::default(),
            failed: OnceLock::new(),
            ended,
        })
    }

    /// A link without a session is one to a modern server.
    pub(super) fn era(&self) -> Era {
        if self.hello.is_some() { Era::Legacy } else { Era::Modern }
    }

    /// The session as it is.
    pub(super) fn live(&self) -> Arc<Live> {
        self.live.load_full()
    }

    /// The session, if it can be used.
    pub(super) fn usable(&self) -> Result<Arc<Live>, Failure> {
        if self.peer.closed.is_cancelled() {
            return Err(fault::already_closed(&self.peer.server.name));
        }
        match self.failed.get() {
            Some(failure) => Err(failure.clone()),
            None => Ok(self.live()),
        }
    }

    pub(super) fn is_down(&self) -> bool {
        self.peer.closed.is_cancelled() || self.failed.get().is_some()
    }

    /// Says why the link is of no more use; gives that back.
    pub(super) fn fail(&self, failure: Failure) -> Failure {
        let failure = self.failed.get_or_init(|| failure).clone();
        self.ended.cancel();
        failure
    }

    /// Begins a new session in place of `lost`, once for all who ask.
    ///
    /// # Cancellation
    /// The renewal goes on for the others if the one who asked goes away.
    pub(super) async fn renew(self: &Arc<Self>, lost: &Arc<Live>) -> Result<Arc<Live>, Failure> {
        let (shared, lost) = (Arc::clone(self), Arc::clone(lost));
        let renewal = self.peer.tasks.spawn(async move {
            let closed = shared.peer.closed.clone();
            closed.run_until_cancelled(shared.renew_in_turn(&lost)).await
        });
        let renewed = renewal.await.ok().flatten();
        renewed.unwrap_or_else(|| Err(fault::closed(&self.peer.server.name)))
    }

    async fn renew_in_turn(self: &Arc<Self>, lost: &Arc<Live>) -> Result<Arc<Live>, Failure> {
        let _turn = self.renewing.lock().await;
        let live = self.usable()?;
        let Some(hello) = self.hello.as_ref().filter(|_| Arc::ptr_eq(&live, lost)) else { return Ok(live) };
        let server = self.peer.server.name.as_str();
        match handshake::open(&self.peer, hello).await {
            Ok(fresh) => {
                tracing::info!(server, "a server lost its session; a new one was begun");
                let fresh = Arc::new(fresh);
                self.live.store(Arc::clone(&fresh));
                lost.session.over.cancel();
                standalone::start(self, Arc::clone(&fresh), Cursor::default());
                self.peer.listener.renewed();
                Ok(fresh)
            }
            Err(failure) => {
                tracing::warn!(server, %failure, "a server lost its session, and no new one could be begun");
                Err(self.fail(failure))
            }
        }
    }
}
