//! Carries one caller message to servers and back: calls, lists, reads, completion, subscriptions, cancellation,
//! progress, and the questions servers ask. Knows no HTTP types.
//!
//! Start reading at [`call`] (one request to one server) and [`answer`] (JSON or stream).

mod announce;
pub mod answer;
mod ask;
mod asks;
mod call;
mod clock;
mod coalesce;
mod compose;
mod conversation;
mod deliver;
mod discover;
mod era;
mod exchange;
mod extensions;
mod initialize;
mod keep;
mod lanes;
mod links;
mod listen;
mod listener;
mod listens;
mod lists;
mod log_level;
pub mod mirrored;
mod modern;
mod notify;
mod offered;
mod outlet;
mod param_headers;
mod parked;
mod places;
mod post;
mod presented;
mod reading;
mod relist;
mod reload;
pub mod request;
mod restore;
mod rounds;
mod route;
mod running;
mod seat;
mod serving;
mod sessionless;
mod shared;
mod subscribe;
mod tasks;
mod uris;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::catalog::persist::Files;
use crate::catalog::{Catalog, Endpoint};
use crate::session::event::EventId;
use crate::session::sessions::PrincipalCap;
use crate::session::streams::ResumeError;
use crate::session::{Binding, EndReason, Reader, SessionId, Sessions};
use crate::settings::Settings;
use crate::store::{Registry, Sealer, SessionStore};
use crate::telemetry::Metrics;
use crate::tenancy::Principal;
use crate::tenancy::principal::Issuer;
use crate::upstream::Connector;

pub use answer::{Answer, Form};
pub use conversation::Conversation;
pub use initialize::InitializeError;
pub use modern::{Claim, ModernAnswer};
pub use post::Post;
pub use request::Busy;
pub use seat::NoSeat;

/// A session with what the relay keeps for it.
pub type Session = crate::session::Session<Conversation>;

/// Who sent a request.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Who it is.
    pub principal: Arc<Principal>,
    /// Digest of `principal` that sessions are bound to.
    pub binding: [u8; 32],
    /// Whether `sessions.maxPerPrincipal` holds for it.
    pub cap: PrincipalCap,
}

impl Caller {
    /// Whether it may be anybody: nothing tells one such caller from another.
    pub fn is_anybody(&self) -> bool {
        self.principal.issuer == Issuer::Anonymous && self.cap != PrincipalCap::Exempt
    }
}

/// Carries messages between callers and servers.
pub struct Relay {
    endpoints: ArcSwap<HashMap<Arc<str>, Arc<Endpoint>>>,
    sessions: Sessions<Conversation>,
    catalog: Catalog,
    /// Where last good catalogs are kept, if anywhere.
    files: Option<Files>,
    connector: Connector,
    /// Seals what callers carry for the gateway.
    sealer: Arc<Sealer>,
    parked: parked::ParkedCalls,
    children: places::Places,
    shared: shared::SharedLinks,
    /// Answers to `server/discover`, by endpoint.
    discoveries: Registry<Arc<str>, Arc<discover::Discovery>>,
    listens: listens::Listens,
    listen_places: listen::ListenPlaces,
    /// The questions to servers for their eras.
    probing: Registry<Arc<str>, Arc<era::Asking>>,
    /// Lists of shared links that are being read again.
    relisting: coalesce::Coalesced<relist::TenantListKey>,
    in_flight: usize,
    grace: Duration,
    /// When a modern answer that is still to come begins as a stream.
    keep_alive: Duration,
    tasks: TaskTracker,
    /// Cancelled when the process begins to stop: what goes on for ever ends then.
    draining: CancellationToken,
    /// Cancelled when the process stops.
    stopping: CancellationToken,
    metrics: Arc<Metrics>,
}

// === impl Relay ===

impl Relay {
    /// A relay for these settings; its work runs on `tasks`. Reads kept catalogs, so it blocks for a moment.
    pub fn new(
        settings: &Settings,
        store: Arc<dyn SessionStore>,
        sealer: Arc<Sealer>,
        connector: Connector,
        tasks: TaskTracker,
        metrics: Arc<Metrics>,
    ) -> Arc<Self> {
        let streams = Arc::new(settings.streams.clone());
        let catalog = Catalog::new(&settings.servers, metrics.clone());
        let files = settings.state_dir.as_deref().map(Files::under);
        if let Some(files) = &files {
            files.load(&catalog);
        }
        Arc::new(Self {
            endpoints: ArcSwap::from_pointee(by_path(settings)),
            sessions: Sessions::new(store, settings.sessions.clone(), streams, metrics.clone()),
            catalog,
            files,
            connector,
            sealer,
            parked: parked::ParkedCalls::new(settings.limits.parked_per_tenant),
            children: places::Places::default(),
            shared: shared::SharedLinks::default(),
            discoveries: Registry::new(),
            listens: listens::Listens::default(),
            listen_places: listen::ListenPlaces::new(settings.limits.listens_per_principal),
            probing: Registry::new(),
            relisting: coalesce::Coalesced::default(),
            in_flight: settings.limits.in_flight_per_session,
            grace: settings.streams.grace,
            keep_alive: settings.streams.keep_alive,
            tasks,
            draining: CancellationToken::new(),
            stopping: CancellationToken::new(),
            metrics,
        })
    }

    /// The endpoint at this path, without a trailing slash.
    pub fn endpoint(&self, path: &str) -> Option<Arc<Endpoint>> {
        self.endpoints.load().get(path).cloned()
    }

    /// The caller's session of this id at this endpoint; for everyone else there is none.
    pub async fn session(
        &self,
        id: &SessionId,
        caller: &Caller,
        endpoint: &Endpoint,
    ) -> Option<Arc<Session>> {
        let binding = Binding { principal: caller.binding, endpoint: endpoint.path.clone() };
        self.sessions.find(id, &binding).await
    }

    /// Opens the standalone stream of a session.
    pub fn open_get(&self, session: &Session) -> Reader {
        session.streams.open_get()
    }

    /// Goes on with a stream behind the last event the caller saw.
    ///
    /// # Errors
    /// [`ResumeError`]
    pub fn resume(&self, session: &Session, last: EventId) -> Result<Reader, ResumeError> {
        let resumed = session.streams.resume(last);
        self.metrics.stream_resumed(match &resumed {
            Ok(_) => "replayed",
            Err(ResumeError::Over) => "complete",
            Err(ResumeError::Unknown) => "unknown",
        });
        resumed
    }

    /// Ends a session at its caller's word.
    pub async fn end(&self, session: &Arc<Session>) {
        self.sessions.end(session, EndReason::Delete).await;
    }

    /// Ends all open streams with `retry:`; their callers come back with the credentials they have.
    pub fn end_connections(&self) {
        for session in self.sessions.all() {
            session.streams.end_connections();
        }
        self.end_listens();
    }

    /// Ends expired sessions, and shared links that nobody uses any more, until `stop`; run it on a task.
    pub async fn sweep_until(self: Arc<Self>, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(self.sessions.sweep_interval()) => {}
                () = stop.cancelled() => return,
            }
            self.sessions.sweep().await;
            self.shared.close_unused(&self);
        }
    }

    /// Stops: ends what is idle at once, lets running calls go on for at most `drain`, then ends all sessions and
    /// links. A call that still runs is told on its stream that its outcome is unknown.
    pub async fn shut_down(&self, drain: Duration) {
        let deadline = tokio::time::Instant::now() + drain;
        self.draining.cancel();
        for session in self.sessions.all() {
            session.streams.end_get();
            if session.running() == 0 {
                session.streams.end_connections();
                self.sessions.end_if_idle(&session, EndReason::Shutdown).await;
            }
        }
        // Nothing signals the last call's end across all sessions; at shutdown a short poll is the simpler truth.
        while self.sessions.all().iter().any(|s| s.running() > 0) && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        for session in self.sessions.all() {
            session.streams.end_get();
        }
        self.sessions.end_all(EndReason::Shutdown).await;
        self.stopping.cancel();
        self.shared.close_unless(|_| false, self);
    }
}

fn by_path(settings: &Settings) -> HashMap<Arc<str>, Arc<Endpoint>> {
    Endpoint::all(settings).into_iter().map(|e| (e.path.clone(), e)).collect()
}
