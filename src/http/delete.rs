//! DELETE: a caller ends its session.

use std::sync::Arc;

use axum::response::Response;
use http::StatusCode;

use super::mcp::Admitted;
use super::place::{refused, session_id, unknown_session};
use super::reply::{Refused, empty};
use super::{Edge, headers};

pub(super) async fn delete(edge: &Arc<Edge>, admitted: Admitted) -> Result<Response, Refused> {
    headers::check_version(&admitted.parts.headers)?;
    let id = session_id(&admitted)?;
    match edge.relay.end_at_word(&id, &admitted.caller, &admitted.endpoint).await {
        Ok(true) => Ok(empty(StatusCode::NO_CONTENT)),
        Ok(false) => Err(unknown_session(edge)),
        Err(unplaced) => Err(refused(&unplaced)),
    }
}
