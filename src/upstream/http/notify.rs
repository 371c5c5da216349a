//! One notification.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, StatusCode};

use super::session::Tracking;
use super::shared::Shared;
use super::{body, fault};
use crate::upstream::Failure;

/// Sends a notification. Any 2xx is success, whatever the body says (case-D11); a session that the server forgot
/// is begun anew first.
pub(super) async fn notify(shared: &Arc<Shared>, message: &Bytes) -> Result<(), Failure> {
    let peer = &shared.peer;
    let mut live = shared.usable()?;
    let mut response = peer.origin.send(Method::POST, &live.session.post, message.clone()).await?;
    if response.status() == StatusCode::NOT_FOUND && live.session.tracking() == Tracking::ById {
        live = shared.renew(&live).await?;
        response = peer.origin.send(Method::POST, &live.session.post, message.clone()).await?;
    }
    let status = response.status();
    body::discard(response.into_body(), &peer.tasks);
    if status.is_success() { Ok(()) } else { Err(fault::status(&peer.server.name, status)) }
}
