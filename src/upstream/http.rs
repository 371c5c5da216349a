//! Links to Streamable HTTP servers: holds the place of the real thing.

use std::sync::Arc;

use bytes::Bytes;
use tokio_util::task::TaskTracker;

use super::{Delivery, Failure, Farewell, Hello, Introduction, Listener, UpstreamId};
use crate::protocol::envelope::Response;
use crate::protocol::error::Layer;
use crate::settings::ServerSettings;
use crate::telemetry::Metrics;

/// The HTTP client that links share.
#[derive(Clone, Debug, Default)]
pub struct HttpClient;

/// A session with a Streamable HTTP server.
#[derive(Debug)]
pub struct HttpLink {
    introduction: Arc<Introduction>,
}

impl HttpLink {
    /// Always fails.
    ///
    /// # Errors
    /// Always.
    pub async fn open(
        server: Arc<ServerSettings>,
        _hello: Hello,
        _epoch: u32,
        _listener: Arc<dyn Listener>,
        _client: &HttpClient,
        _tasks: &TaskTracker,
        _metrics: &Arc<Metrics>,
    ) -> Result<Self, Failure> {
        Err(unavailable(&server.name))
    }

    /// What the server said.
    pub fn introduction(&self) -> Arc<Introduction> {
        Arc::clone(&self.introduction)
    }

    /// No id.
    pub fn allot(&self) -> UpstreamId {
        UpstreamId(0)
    }

    /// Always fails.
    ///
    /// # Errors
    /// Always.
    pub async fn call(&self, _: UpstreamId, _: Bytes, _: Arc<dyn Listener>) -> Result<Response, Failure> {
        Err(unavailable(""))
    }

    /// Always fails.
    ///
    /// # Errors
    /// Always.
    pub async fn notify(&self, _: Bytes) -> Result<(), Failure> {
        Err(unavailable(""))
    }

    /// Always.
    pub fn is_down(&self) -> bool {
        true
    }

    /// Nothing to close.
    pub async fn close(&self, _: Farewell) {}
}

fn unavailable(server: &str) -> Failure {
    Failure {
        server: server.to_owned(),
        layer: Layer::Transport,
        reason: "unavailable",
        message: "This build opens no links over HTTP.".to_owned(),
        delivery: Delivery::NotDelivered,
    }
}
