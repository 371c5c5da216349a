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
mod cursors;
mod deliver;
mod discover;
mod drain;
mod elsewhere;
mod era;
mod exchange;
mod extensions;
mod get;
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
mod regained;
mod relist;
mod reload;
mod replica;
pub mod request;
mod restore;
mod revoked;
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
mod whereabouts;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::catalog::persist::Files;
use crate::catalog::{Catalog, Endpoint};
use crate::session::PrincipalCap;
use crate::session::{Membership, Sessions};
use crate::settings::Settings;
use crate::store::{Registry, ReplicaId, Sealer, SessionKey, Stores};
use crate::telemetry::Metrics;
use crate::tenancy::Principal;
use crate::tenancy::principal::Issuer;
use crate::upstream::Connector;

pub use answer::{Answer, Form};
pub use conversation::Conversation;
pub use elsewhere::{Came, Elsewhere};
pub use initialize::InitializeError;
pub use listen::{Messages, Missed, Opener, Way};
pub use modern::{Claim, ModernAnswer};
pub use post::Post;
pub use request::Busy;
pub use revoked::WaysIn;
pub use seat::NoSeat;
pub use whereabouts::{EndedAt, Unplaced, Whereabouts};

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
    adopting: whereabouts::Adopting,
    owning: elsewhere::Owning,
    /// Since when owners of sessions cannot be reached.
    missed: Registry<ReplicaId, Instant>,
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
    /// Servers of whose lists the other replicas are being told.
    telling: coalesce::Coalesced<Arc<str>>,
    /// Sessions that are being given up, since a peer asked for them.
    giving_up: coalesce::Coalesced<SessionKey>,
    revoked: revoked::Revoked,
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
        stores: Stores,
        membership: Membership,
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
        let sessions = Sessions::new(
            stores,
            membership,
            settings.sessions.clone(),
            streams,
            tasks.clone(),
            metrics.clone(),
        );
        let others = sessions.others();
        Arc::new(Self {
            endpoints: ArcSwap::from_pointee(by_path(settings)),
            sessions,
            adopting: whereabouts::Adopting::default(),
            owning: elsewhere::Owning::default(),
            missed: Registry::new(),
            catalog,
            files,
            connector,
            sealer,
            parked: parked::ParkedCalls::new(settings.limits.parked_per_tenant),
            children: places::Places::new(others.clone()),
            shared: shared::SharedLinks::default(),
            discoveries: Registry::new(),
            listens: listens::Listens::default(),
            listen_places: listen::ListenPlaces::new(settings.limits.listens_per_principal, others),
            probing: Registry::new(),
            relisting: coalesce::Coalesced::default(),
            telling: coalesce::Coalesced::default(),
            giving_up: coalesce::Coalesced::default(),
            revoked: revoked::Revoked::new(),
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
            self.sweep_store().await;
            self.shared.close_unused(&self);
        }
    }
}

fn by_path(settings: &Settings) -> HashMap<Arc<str>, Arc<Endpoint>> {
    Endpoint::all(settings).into_iter().map(|e| (e.path.clone(), e)).collect()
}
