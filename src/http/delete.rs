//! DELETE: a caller ends its session.

use std::sync::Arc;

use axum::response::Response;
use http::StatusCode;

use super::legacy::session;
use super::mcp::Admitted;
use super::reply::{Refused, empty};
use super::{Edge, headers};

pub(super) async fn delete(edge: &Arc<Edge>, admitted: Admitted) -> Result<Response, Refused> {
    headers::check_version(&admitted.parts.headers)?;
    let session = session(edge, &admitted).await?;
    edge.relay.end(&session).await;
    Ok(empty(StatusCode::NO_CONTENT))
}
