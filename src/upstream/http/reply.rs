//! Answers to the questions of a server: each a POST of its own, in the background.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Method;

use super::body;
use super::peer::Peer;
use super::session::Session;
use crate::upstream::Delivery;
use crate::upstream::pace::Backoff;

/// How many may be on their way at once; more are dropped, and logged.
pub(super) const AT_ONCE: usize = 64;
/// How long the server may take to accept one.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often one that could not be delivered is tried.
const TRIES: usize = 3;

// === impl Peer ===

impl Peer {
    /// Sends an answer to the server in the background.
    pub(super) fn reply(self: &Arc<Self>, session: &Arc<Session>, message: Bytes) {
        let Ok(permit) = Arc::clone(&self.replies).try_acquire_owned() else {
            tracing::warn!(
                server = self.server.name,
                "too many answers to a server wait for it: one was dropped"
            );
            return;
        };
        let (peer, session) = (Arc::clone(self), Arc::clone(session));
        self.tasks.spawn(async move {
            let _permit = permit;
            let over = session.over.clone();
            over.run_until_cancelled(peer.deliver(&session, message)).await;
        });
    }

    /// Waits, within bounds, until all answers that are on their way to the server have arrived.
    pub(super) async fn replies_sent(&self) {
        let all = u32::try_from(AT_ONCE).unwrap_or(u32::MAX);
        let _ = tokio::time::timeout(super::peer::FAREWELL, self.replies.acquire_many(all)).await;
    }

    async fn deliver(&self, session: &Session, message: Bytes) {
        let server = self.server.name.as_str();
        let mut backoff = Backoff::new(self.pace);
        for last in (0..TRIES).rev() {
            let sent = self.origin.send(Method::POST, || session.post.clone(), message.clone());
            match tokio::time::timeout(PATIENCE, sent).await {
                Ok(Ok(response)) if response.status().is_success() => {
                    return body::discard(response.into_body(), &self.tasks);
                }
                Ok(Ok(response)) => {
                    let status = response.status().as_u16();
                    return tracing::warn!(server, status, "a server refused the answer to its question");
                }
                Ok(Err(failure)) if last > 0 && failure.delivery == Delivery::NotDelivered => {
                    tokio::time::sleep(backoff.wait()).await;
                }
                Ok(Err(failure)) => {
                    return tracing::warn!(server, %failure, "the answer to a server's question was lost");
                }
                Err(_) => {
                    return tracing::warn!(
                        server,
                        "a server did not take the answer to its question in time"
                    );
                }
            }
        }
    }
}
