//! The callers' side: HTTP in, HTTP out. Sees neither servers nor the store; everything goes through the relay.
//!
//! Start reading at [`mcp`], the one order of checks for every request.

mod accept;
mod connection;
mod cors;
mod delete;
pub mod forward;
mod get;
mod h2;
mod headers;
mod journey;
mod legacy;
mod mcp;
mod metadata;
mod modern;
mod origin;
pub mod peer;
mod place;
mod post;
mod reply;
mod request_body;
mod request_id;
pub mod serve;
mod sse_body;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::Router;
use axum::routing::any;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_http::catch_panic::CatchPanicLayer;
use url::Url;

use crate::auth::{Authenticator, KeyClient, Reach, Unusable, missing};
use crate::relay::{Relay, WaysIn};
use crate::settings::{AuthSettings, LimitSettings, Settings};
use crate::telemetry::Metrics;
use forward::Forwarder;
use origin::Origins;
use request_id::RequestIds;

/// Why there can be no edge.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// No way in, or one that cannot be kept.
    #[error(transparent)]
    Auth(#[from] Unusable),
    /// The key that other replicas know this one by.
    #[error(transparent)]
    Identity(#[from] peer::NoIdentity),
}

/// What all requests share.
pub struct Edge {
    relay: Arc<Relay>,
    /// Changes with the config.
    admission: ArcSwap<Admission>,
    limits: LimitSettings,
    keep_alive: Duration,
    /// What callers type, if it was configured.
    configured_url: Option<Url>,
    /// The same, or the listener's own address.
    public_url: Url,
    reach: Reach,
    request_ids: RequestIds,
    tasks: TaskTracker,
    metrics: Arc<Metrics>,
    /// The way to other replicas, if there are any.
    forwarder: Option<Forwarder>,
    /// Cancelled once no new sessions are taken.
    draining: CancellationToken,
}

/// Who may come in, and from which pages.
struct Admission {
    auth: AuthSettings,
    authenticator: Arc<Authenticator>,
    origins: Origins,
}

// === impl Edge ===

impl Edge {
    /// The edge of a gateway that listens on `listen`; keys are fetched on `tasks`.
    ///
    /// # Errors
    /// [`BuildError`] if nobody could come in.
    pub fn new(
        settings: &Settings,
        listen: SocketAddr,
        relay: Arc<Relay>,
        tasks: TaskTracker,
        metrics: Arc<Metrics>,
        forwarder: Option<Forwarder>,
        draining: CancellationToken,
    ) -> Result<Arc<Self>, BuildError> {
        let reach = Reach::from(listen);
        let admission = Admission::new(settings, reach, &tasks, &metrics)?;
        Ok(Arc::new(Self {
            relay,
            admission: ArcSwap::from_pointee(admission),
            limits: settings.limits.clone(),
            keep_alive: settings.streams.keep_alive,
            configured_url: settings.public_url.clone(),
            public_url: crate::auth::metadata::public_url(settings.public_url.as_ref(), listen),
            reach,
            request_ids: RequestIds::new(),
            tasks,
            metrics,
            forwarder,
            draining,
        }))
    }

    /// Takes changed ways in and origins into force; sessions go on.
    ///
    /// # Errors
    /// [`BuildError`] if nobody could come in; what was in force stays.
    pub fn reload(&self, settings: &Settings) -> Result<(), BuildError> {
        let old = self.admission.load_full();
        if old.auth == settings.auth {
            // The same authenticator goes on, with the keys it fetched.
            let (auth, authenticator) = (old.auth.clone(), old.authenticator.clone());
            let origins = Origins::new(settings, self.reach);
            self.admission.store(Arc::new(Admission { auth, authenticator, origins }));
            return Ok(());
        }
        let admission = Admission::new(settings, self.reach, &self.tasks, &self.metrics)?;
        self.admission.store(Arc::new(admission));
        // A stream whose credential was taken back must not go on; all others come back with theirs.
        self.relay.end_connections();
        let (old, new) = (&old.auth.api_keys, &settings.auth.api_keys);
        self.relay.ways_in_changed(WaysIn { gone: missing(old, new), come: missing(new, old) });
        Ok(())
    }

    /// The process is about to end: callers are sent back whose streams pass to other replicas and can be resumed.
    pub fn send_back(&self) {
        if let Some(forwarder) = &self.forwarder {
            forwarder.send_back();
        }
    }

    /// Lets what is forwarded to other replicas end, at the latest at `deadline`.
    pub async fn leave(&self, deadline: Instant) {
        if let Some(forwarder) = &self.forwarder {
            forwarder.leave(deadline).await;
        }
    }

    /// The routes, in reading order.
    pub fn router(self: &Arc<Self>) -> Router {
        // A panic on the way to an endpoint is caught in `mcp`; a layer would cost every call.
        let documents = any(metadata::document).layer(CatchPanicLayer::new());
        Router::new()
            .route("/mcp", any(mcp::all_servers))
            .route("/mcp/", any(mcp::all_servers))
            .route("/servers/{server}/mcp", any(mcp::one_endpoint))
            .route("/servers/{server}/mcp/", any(mcp::one_endpoint))
            .route("/{endpoint}/mcp", any(mcp::one_endpoint))
            .route("/{endpoint}/mcp/", any(mcp::one_endpoint))
            .route("/.well-known/oauth-protected-resource", documents.clone())
            .route("/.well-known/oauth-protected-resource/", documents.clone())
            .route("/.well-known/oauth-protected-resource/{*endpoint}", documents)
            .fallback(mcp::nothing_here)
            .with_state(self.clone())
    }
}

// === impl Admission ===

impl Admission {
    fn new(
        settings: &Settings,
        reach: Reach,
        tasks: &TaskTracker,
        metrics: &Arc<Metrics>,
    ) -> Result<Self, BuildError> {
        let authenticator =
            Authenticator::new(&settings.auth, reach, KeyClient::default(), tasks.clone(), metrics.clone())?;
        let authenticator = Arc::new(authenticator);
        Ok(Self { auth: settings.auth.clone(), authenticator, origins: Origins::new(settings, reach) })
    }
}
