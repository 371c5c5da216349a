//! The callers' side: HTTP in, HTTP out. Sees neither servers nor the store; everything goes through the relay.
//!
//! Start reading at [`mcp`], the one order of checks for every request.

mod accept;
mod connection;
mod cors;
mod delete;
mod get;
mod headers;
mod mcp;
mod metadata;
mod origin;
mod post;
mod reply;
mod request_body;
mod request_id;
pub mod serve;
mod sse_body;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::any;
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;
use url::Url;

use crate::auth::{Authenticator, Reach};
use crate::relay::Relay;
use crate::settings::{LimitSettings, Settings};
use crate::telemetry::Metrics;
use origin::Origins;

/// What all requests share.
pub struct Edge {
    relay: Arc<Relay>,
    authenticator: Authenticator,
    origins: Origins,
    limits: LimitSettings,
    keep_alive: Duration,
    /// What callers type, if it was configured.
    configured_url: Option<Url>,
    /// The same, or the listener's own address.
    public_url: Url,
    reach: Reach,
    metrics: Arc<Metrics>,
    /// Cancelled once no new sessions are taken.
    draining: CancellationToken,
}

// === impl Edge ===

impl Edge {
    /// The edge of a gateway that listens on `listen`.
    pub fn new(
        settings: &Settings,
        listen: SocketAddr,
        relay: Arc<Relay>,
        authenticator: Authenticator,
        metrics: Arc<Metrics>,
        draining: CancellationToken,
    ) -> Arc<Self> {
        let reach = Reach::from(listen);
        Arc::new(Self {
            relay,
            authenticator,
            origins: Origins::new(settings, reach),
            limits: settings.limits.clone(),
            keep_alive: settings.streams.keep_alive,
            configured_url: settings.public_url.clone(),
            public_url: crate::auth::metadata::public_url(settings.public_url.as_ref(), listen),
            reach,
            metrics,
            draining,
        })
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
            .route("/.well-known/oauth-protected-resource/{*endpoint}", documents)
            .fallback(mcp::nothing_here)
            .with_state(self.clone())
    }
}
