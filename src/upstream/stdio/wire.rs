//! What callers and the tasks of one link share: ids, the queue to stdin, and the calls that wait.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use tokio::sync::mpsc;

use super::pending::{Kind, Pending};
use crate::protocol::edit::one_line;
use crate::protocol::envelope::Response;
use crate::protocol::error::Layer;
use crate::protocol::method::Method;
use crate::protocol::revision::Revision;
use crate::settings::ServerSettings;
use crate::telemetry::Metrics;
use crate::upstream::{Delivery, Failure, Listener, Outgoing, UpstreamId};

/// The shared part of one link.
pub(super) struct Wire {
    /// The server's settings.
    pub(super) settings: Arc<ServerSettings>,
    /// The calls that wait.
    pub(super) pending: Pending,
    /// What is counted.
    pub(super) metrics: Arc<Metrics>,
    /// The revision, once the handshake is done.
    pub(super) revision: OnceLock<Revision>,
    outbox: mpsc::Sender<Bytes>,
    next: AtomicU64,
    /// Answers to the server that found the queue full.
    dropped: AtomicU64,
}

// === impl Wire ===

impl Wire {
    pub(super) fn new(
        settings: Arc<ServerSettings>,
        epoch: u32,
        outbox: mpsc::Sender<Bytes>,
        metrics: Arc<Metrics>,
    ) -> Self {
        // Ids begin at 1, since some servers take 0 for none.
        let next = AtomicU64::new((u64::from(epoch) << 32) + 1);
        let (pending, revision, dropped) = (Pending::default(), OnceLock::new(), AtomicU64::new(0));
        Self { settings, pending, metrics, revision, outbox, next, dropped }
    }

    /// The server's configured name.
    pub(super) fn server(&self) -> &str {
        &self.settings.name
    }

    /// A fresh id (L7).
    pub(super) fn allot(&self) -> UpstreamId {
        UpstreamId(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Sends a request and waits for its response.
    pub(super) async fn call(
        &self,
        id: UpstreamId,
        request: impl Into<Outgoing>,
        listener: Arc<dyn Listener>,
    ) -> Result<Response, Failure> {
        let Outgoing { message, mirror } = request.into();
        let listens = mirror.is_some_and(|m| m.method == Method::Listen.as_str());
        let kind = if listens { Kind::Listen } else { Kind::Call };
        let mut place = self.pending.admit(id, kind, listener)?;
        self.send(message).await?;
        // The sender lives in the map as long as `place` does, so it is used before it is dropped.
        (&mut place.answer).await.unwrap_or_else(|_| Err(self.gone()))
    }

    /// Sends a notification.
    pub(super) async fn notify(&self, message: Bytes) -> Result<(), Failure> {
        match self.pending.down() {
            Some(failure) => Err(failure),
            None => self.send(message).await,
        }
    }

    /// Sends the answer to a question of the server, without waiting: the reader must go on reading.
    pub(super) fn answer(&self, message: Bytes) {
        if self.outbox.try_send(one_line(message)).is_err() && self.pending.down().is_none() {
            let dropped = self.dropped.fetch_add(1, Ordering::Relaxed) + 1;
            // Ever more rarely, the more there are.
            if dropped.is_power_of_two() {
                tracing::warn!(
                    server = self.server(),
                    dropped,
                    "the server does not read: answers to it were dropped"
                );
            }
        }
    }

    /// A failure of this server.
    pub(super) fn failure(
        &self,
        layer: Layer,
        reason: &'static str,
        message: String,
        delivery: Delivery,
    ) -> Failure {
        Failure { server: self.server().to_owned(), layer, reason, message, delivery }
    }

    async fn send(&self, message: Bytes) -> Result<(), Failure> {
        self.outbox.send(one_line(message)).await.map_err(|_| self.gone())
    }

    /// The failure of what was surely not written.
    fn gone(&self) -> Failure {
        self.pending.down().unwrap_or_else(|| {
            let message = format!("The process of server `{}` has closed its input.", self.server());
            self.failure(Layer::Process, "child_exited", message, Delivery::NotDelivered)
        })
    }
}
