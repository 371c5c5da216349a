//! The server as all parts of one link see it: where requests go, and who hears what comes back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::matching::{answers, progress_of, respelled};
use super::origin::Origin;
use super::running::Running;
use super::session::{Session, Tracking};
use super::{HttpClient, body, fault, reply};
use crate::protocol::envelope::{self, Malformed, Message, Notification, Request, Response};
use crate::protocol::method::Method as RpcMethod;
use crate::protocol::revision::Era;
use crate::protocol::sse::ByteLimit;
use crate::settings::ServerSettings;
use crate::settings::servers::TransportSettings;
use crate::telemetry::Metrics;
use crate::upstream::pace::Pace;
use crate::upstream::{Failure, Listener, Reply, UpstreamId};

/// How long the server may take to end a session.
pub(super) const FAREWELL: Duration = Duration::from_secs(2);
/// The most messages in one array (T19).
const BATCH: usize = 1000;

/// What calls and background tasks of one link share, whichever session it has.
pub(super) struct Peer {
    pub(super) server: Arc<ServerSettings>,
    pub(super) origin: Origin,
    pub(super) listener: Arc<dyn Listener>,
    pub(super) running: Running,
    pub(super) tasks: TaskTracker,
    pub(super) metrics: Arc<Metrics>,
    pub(super) pace: Pace,
    /// Cancelled when the link is closed.
    pub(super) closed: CancellationToken,
    ids: AtomicU64,
    /// One for each answer that is on its way.
    pub(super) replies: Arc<Semaphore>,
}

// === impl Peer ===

impl Peer {
    pub(super) fn new(
        server: Arc<ServerSettings>,
        epoch: u32,
        listener: Arc<dyn Listener>,
        client: &HttpClient,
        tasks: &TaskTracker,
        metrics: &Arc<Metrics>,
    ) -> Result<Self, Failure> {
        let TransportSettings::Http(settings) = &server.transport else {
            return Err(fault::settings(&server.name, "it has no `url`"));
        };
        Ok(Self {
            origin: Origin::new(&server.name, settings, client)?,
            listener,
            running: Running::default(),
            tasks: tasks.clone(),
            metrics: Arc::clone(metrics),
            pace: client.pace,
            closed: CancellationToken::new(),
            ids: AtomicU64::new((u64::from(epoch) << 32) + 1),
            replies: Arc::new(Semaphore::new(reply::AT_ONCE)),
            server,
        })
    }

    pub(super) fn allot(&self) -> UpstreamId {
        UpstreamId(self.ids.fetch_add(1, Ordering::Relaxed))
    }

    pub(super) fn limit(&self) -> ByteLimit {
        ByteLimit(self.server.max_message)
    }

    /// Takes in one text the server sent, and gives out the response to `awaited` if that is it.
    ///
    /// # Errors
    /// [`Malformed`] if it is no message; nothing came of it then.
    pub(super) fn hear(
        self: &Arc<Self>,
        session: &Arc<Session>,
        text: &Bytes,
        awaited: Option<UpstreamId>,
        listener: &Arc<dyn Listener>,
    ) -> Result<Option<Response>, Malformed> {
        let message = match Message::parse(text.clone()) {
            Ok(message) => message,
            Err(Malformed::Batch) => {
                // 2025-03-26 servers may send arrays (T19); one bad part does not spoil the others.
                let mut answer = None;
                for part in envelope::batch(text, BATCH)? {
                    if !part.trim_ascii_start().starts_with(b"[") {
                        answer = self.hear(session, &part, awaited, listener)?.or(answer);
                    }
                }
                return Ok(answer);
            }
            Err(malformed) => {
                return awaited.and_then(|id| respelled(text, id)).map(Some).ok_or(malformed);
            }
        };
        match message {
            Message::Response(response) => {
                if awaited.is_some_and(|id| answers(&response, id)) {
                    response.check_error()?;
                    return Ok(Some(response));
                }
                self.metrics.late_response(&self.server.name);
            }
            Message::Notification(notification) => self.pass(notification, listener),
            // T53: no server of the modern era asks in this way, and none may be answered.
            Message::Request(request) if session.era == Era::Modern => {
                let (server, method) = (self.server.name.as_str(), request.method().label());
                tracing::debug!(server, method, "a modern server sent a request, which was dropped");
                self.metrics.unattributed(server);
            }
            Message::Request(request) => self.ask(session, request, listener),
        }
        Ok(None)
    }

    fn pass(&self, notification: Notification, listener: &Arc<dyn Listener>) {
        if *notification.method() == RpcMethod::Progress
            && let Some(id) = progress_of(&notification)
            && let Some(its_own) = self.running.listener(id)
        {
            its_own.notification(notification);
            // Whoever reads this stream settles the stream's own listener and knows of no other.
            if !Arc::ptr_eq(&its_own, listener) {
                its_own.settled();
            }
        } else {
            listener.notification(notification);
        }
    }

    fn ask(self: &Arc<Self>, session: &Arc<Session>, request: Request, listener: &Arc<dyn Listener>) {
        let (peer, session) = (Arc::clone(self), Arc::clone(session));
        if *request.method() == RpcMethod::Ping {
            // L5: a question about this link, not about what is behind it.
            let id = request.id();
            peer.reply(&session, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#).into());
            return;
        }
        let reply = Reply::new(request.id(), move |message| peer.reply(&session, message));
        listener.request(request, reply);
    }

    /// Tells the server that a session is over.
    pub(super) async fn end(&self, session: &Session) {
        if session.tracking() == Tracking::None {
            return;
        }
        let server = self.server.name.as_str();
        let sent = self.origin.send(Method::DELETE, || session.delete.clone(), Bytes::new());
        match tokio::time::timeout(FAREWELL, sent).await {
            Ok(Ok(response)) => match response.status() {
                // T32: a server need not let sessions be ended, and may have ended this one itself.
                StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_FOUND => {}
                status if status.is_success() => body::discard(response.into_body(), &self.tasks),
                status => {
                    tracing::warn!(server, status = status.as_u16(), "a server did not end its session");
                }
            },
            Ok(Err(failure)) => {
                tracing::warn!(server, %failure, "a server was not told that its session is over");
            }
            Err(_) => tracing::warn!(server, "a server did not end its session in time"),
        }
    }
}
