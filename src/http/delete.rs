//! DELETE: a caller ends its session.

use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use bytes::Bytes;
use http::StatusCode;
use tokio::time::timeout;

use super::forward::Target;
use super::mcp::Admitted;
use super::place::{refused, session_id, unknown_session};
use super::reply::{Refused, empty};
use super::{Edge, headers};
use crate::protocol::revision::Era;
use crate::relay::EndedAt;
use crate::session::Owner;

/// How long the answer may wait for the owner to hear that its session ended; it hears of it on the bus too.
const HEARD_WITHIN: Duration = Duration::from_secs(1);

pub(super) async fn delete(edge: &Arc<Edge>, admitted: Admitted) -> Result<Response, Refused> {
    headers::check_version(&admitted.parts.headers)?;
    let id = session_id(&admitted)?;
    if admitted.hop.is_some() {
        // It ended in the store already, by the replica that sends this.
        edge.relay.ended_by_peer(&id, &admitted.caller, &admitted.endpoint);
        return Ok(empty(StatusCode::NO_CONTENT));
    }
    match edge.relay.end_at_word(&id, &admitted.caller, &admitted.endpoint).await {
        Ok(EndedAt::Nowhere) => return Err(unknown_session(edge)),
        Ok(EndedAt::Here) => {}
        Ok(EndedAt::Owner(owner)) => tell(edge, &admitted, &owner).await,
        Err(unplaced) => return Err(refused(&unplaced)),
    }
    Ok(empty(StatusCode::NO_CONTENT))
}

/// Tells the owner of a session that it ended, so that a request that follows this one is 404 at all replicas (case-A03).
async fn tell(edge: &Edge, admitted: &Admitted, owner: &Owner) {
    let Some(forwarder) = &edge.forwarder else { return };
    let target = Target { peer: &owner.peer, epoch: Some(owner.epoch), era: Era::Legacy };
    let body = Bytes::new();
    let told = timeout(HEARD_WITHIN, forwarder.send(edge, admitted, &body, target)).await;
    if !matches!(told, Ok(Ok(_))) {
        tracing::debug!(
            request.id = admitted.request_id.as_str(),
            "the owner of a session that ended was not told"
        );
    }
}
