//! One notification.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use hyper::body::Incoming;

use super::session::{Live, Tracking};
use super::shared::Shared;
use super::{body, fault};
use crate::upstream::Failure;

/// How long the server may take to say that it took one.
const PATIENCE: Duration = Duration::from_secs(30);

/// Sends a notification. Any 2xx is success, whatever the body says (case-D11); a session that the server forgot
/// is begun anew first.
pub(super) async fn notify(shared: &Arc<Shared>, live: Arc<Live>, message: &Bytes) -> Result<(), Failure> {
    let peer = &shared.peer;
    let mut response = send(shared, &live, message).await?;
    if response.status() == StatusCode::NOT_FOUND && live.session.tracking() == Tracking::ById {
        let live = shared.renew(&live).await?;
        response = send(shared, &live, message).await?;
    }
    let status = response.status();
    body::discard(response.into_body(), &peer.tasks);
    if status.is_success() { Ok(()) } else { Err(fault::status(&peer.server.name, status)) }
}

async fn send(shared: &Shared, live: &Live, message: &Bytes) -> Result<Response<Incoming>, Failure> {
    let sent = shared.peer.origin.send(Method::POST, &live.session.post, message.clone());
    let taken = tokio::time::timeout(PATIENCE, sent).await;
    taken.unwrap_or_else(|_| Err(fault::not_taken(&shared.peer.server.name)))
}
