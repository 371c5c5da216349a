//! DELETE: a caller ends its session.

use std::sync::Arc;

use axum::response::Response;
use http::StatusCode;

use super::Edge;
use super::mcp::Admitted;
use super::post::session;
use super::reply::{Refused, empty};

pub(super) async fn delete(edge: &Arc<Edge>, admitted: Admitted) -> Result<Response, Refused> {
    let session = session(edge, &admitted).await?;
    edge.relay.end(&session).await;
    Ok(empty(StatusCode::NO_CONTENT))
}
