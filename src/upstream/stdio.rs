//! A placeholder: replaced by the link to a child process.

use std::sync::Arc;

use bytes::Bytes;
use tokio_util::task::TaskTracker;

use super::{Failure, Hello, Introduction, Listener, UpstreamId};
use crate::protocol::envelope::Response;
use crate::protocol::error::Layer;
use crate::settings::ServerSettings;
use crate::telemetry::Metrics;
use crate::upstream::Delivery;

/// Kills what is left of the children when the gateway dies.
#[derive(Clone, Debug, Default)]
pub struct Guard {}

/// A child process.
#[derive(Debug)]
pub struct StdioLink {}

impl StdioLink {
    /// Fails: there are no children on this branch.
    ///
    /// # Errors
    /// Always.
    pub async fn open(
        server: Arc<ServerSettings>,
        _hello: Hello,
        _epoch: u32,
        _listener: Arc<dyn Listener>,
        _guard: &Guard,
        _tasks: &TaskTracker,
        _metrics: &Arc<Metrics>,
    ) -> Result<Self, Failure> {
        Err(absent(&server.name))
    }
    pub(super) fn introduction(&self) -> Arc<Introduction> {
        Arc::new(Introduction {
            revision: crate::protocol::revision::Revision::LATEST_LEGACY,
            capabilities: "{}".into(),
            server_info: "{}".into(),
            instructions: None,
        })
    }
    pub(super) fn allot(&self) -> UpstreamId {
        UpstreamId(0)
    }
    pub(super) async fn call(
        &self,
        _: UpstreamId,
        _: Bytes,
        _: Arc<dyn Listener>,
    ) -> Result<Response, Failure> {
        Err(absent(""))
    }
    pub(super) async fn notify(&self, _: Bytes) -> Result<(), Failure> {
        Err(absent(""))
    }
    pub(super) fn is_down(&self) -> bool {
        true
    }
    pub(super) async fn close(&self) {}
}

fn absent(server: &str) -> Failure {
    Failure {
        server: server.to_owned(),
        layer: Layer::Process,
        reason: "not_built",
        message: "Child processes are not built here.".to_owned(),
        delivery: Delivery::NotDelivered,
    }
}
