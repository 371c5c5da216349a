//! GET: the standalone stream of a session, and resumption of any of its streams.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::StatusCode;

use super::accept::{Accepts, Grade};
use super::legacy::refused_seat;
use super::mcp::Admitted;
use super::place::{Placed, place};
use super::reply::{Extra, Refused, empty, sse};
use super::sse_body::SseBody;
use super::{Edge, headers};
use crate::session::streams::ResumeError;

pub(super) async fn get(edge: &Arc<Edge>, admitted: Admitted) -> Result<Response, Refused> {
    if Accepts::of(&admitted.parts.headers).sse == Grade::Refused {
        let message = "A GET is answered with text/event-stream; the Accept header does not allow it.";
        let refused = Refused::caller(StatusCode::NOT_ACCEPTABLE, "not_acceptable", message);
        return Err(refused.with(Extra::Allow));
    }
    headers::check_version(&admitted.parts.headers)?;
    let session = match place(edge, &admitted, &Bytes::new()).await? {
        Placed::Here(session) => session,
        Placed::Answered(response) => return Ok(response),
    };
    let reader = match headers::last_event_id(&admitted.parts.headers)? {
        None => edge.relay.open_get(&session).map_err(|busy| refused_seat(&busy.into()))?,
        Some(last) => match edge.relay.resume(&session, last) {
            Ok(reader) => reader,
            Err(ResumeError::Over) => return Ok(empty(StatusCode::NO_CONTENT)),
            Err(unknown @ ResumeError::Unknown) => {
                return Err(Refused::caller(StatusCode::BAD_REQUEST, "unknown_event", unknown.to_string()));
            }
        },
    };
    Ok(sse(Body::new(SseBody::new(edge, &admitted.caller, reader))))
}
