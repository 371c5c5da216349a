//! What each notification and response of a caller leads to. None of them is answered but with 202.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::{Relay, Session};
use crate::catalog::{Endpoint, Naming};
use crate::protocol::envelope::{Notification, Response};
use crate::protocol::method::Method;
use crate::protocol::object::Object;
use crate::protocol::revision::Era;
use crate::protocol::task;
use crate::store::sessions::Change;
use crate::upstream::Link;

/// How long a notification may wait for a busy link.
const PATIENCE: Duration = Duration::from_secs(5);

// === impl Relay ===

impl Relay {
    /// Takes a notification of the caller.
    pub async fn notification(
        self: &Arc<Self>,
        session: &Arc<Session>,
        endpoint: &Endpoint,
        message: Notification,
    ) {
        match message.method() {
            Method::Initialized => {
                if session.set_initialized() {
                    let _ = self.sessions.change(session, Change::Initialized).await;
                }
            }
            Method::Cancelled => {
                let params = message.params().and_then(|raw| Object::parse(raw).ok());
                if let Some(id) = params.and_then(|p| p.get("requestId")) {
                    session.attached.running.cancel(id);
                }
            }
            Method::Progress => {
                let Some((server, link, message)) = session.attached.asks.progress(&message) else { return };
                let link = link.or_else(|| Some(session.attached.links.live(&server)?.link));
                if let Some(link) = link {
                    pass_on(&link, message).await;
                }
            }
            Method::RootsListChanged => {
                // Side by side: one server that is stuck keeps nothing from the others.
                let links = session.attached.links.all_live();
                let all = links.iter().map(|(_, to)| pass_on(&to.link, message.bytes().clone()));
                futures_util::future::join_all(all).await;
            }
            // What no revision here knows may mean something to a single server that is already connected.
            _ => {
                if let (Naming::Bare, [only]) = (endpoint.naming, endpoint.servers.as_slice())
                    && let Some(to) = session.attached.links.live(only)
                {
                    pass_on(&to.link, message.bytes().clone()).await;
                }
            }
        }
    }

    /// Takes the caller's answer to a server's question; what nobody waits for is dropped.
    pub fn response(&self, session: &Session, response: &Response) {
        let related = response.result().and_then(task::related);
        let related = related.map(|raw| self.related_by_caller(session, raw, response.bytes()));
        if !session.attached.asks.answer(response, related) {
            tracing::debug!(session.id = session.id.short_hash(), "an answer came that no server waits for");
        }
    }
}

/// Passes a notification on, in the order the caller sent them. Modern servers take none: the changes of roots are
/// absorbed (X18), and progress of what they wanted to know is of no use to them.
async fn pass_on(link: &Link, message: Bytes) {
    if link.era() == Era::Modern {
        return;
    }
    if !matches!(tokio::time::timeout(PATIENCE, link.notify(message)).await, Ok(Ok(()))) {
        tracing::debug!("a notification could not be passed on");
    }
}
