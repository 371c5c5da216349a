//! `initialize`: a session begins, and its id goes out with the answer (T29).

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use http::StatusCode;

use crate::http::accept::Accepts;
use crate::http::mcp::Admitted;
use crate::http::post::not_acceptable;
use crate::http::reply::{Extra, Refused, json, sse};
use crate::http::sse_body::SseBody;
use crate::http::{Edge, headers};
use crate::protocol::envelope::Request;
use crate::protocol::header::SESSION_ID;
use crate::relay::{Form, InitializeError};
use crate::session::sessions::OpenError;

pub(super) async fn initialize(
    edge: &Arc<Edge>,
    admitted: &Admitted,
    accepts: Accepts,
    request: &Request,
) -> Result<Response, Refused> {
    if let Some(id) = headers::session_id(&admitted.parts.headers)?
        && edge.relay.is_session(&id, &admitted.caller, &admitted.endpoint).await
    {
        let message =
            "This session is initialized already and goes on; to start another, leave Mcp-Session-Id out.";
        return Err(Refused::caller(StatusCode::BAD_REQUEST, "already_initialized", message));
    }
    let form = accepts.form().ok_or_else(not_acceptable)?;
    // One of several gives its sessions up as it stops, and they go on elsewhere.
    if edge.draining.is_cancelled() && !edge.relay.has_peers() {
        return Err(Refused::unavailable(
            "draining",
            "This gateway is shutting down and takes no new sessions.",
        ));
    }
    let opened = edge.relay.initialize(&admitted.caller, &admitted.endpoint, request).await;
    let (session, response) = match opened {
        Ok(opened) => opened,
        Err(InitializeError::Params(error)) => {
            return Ok(json(
                StatusCode::OK,
                error.to_message(Some(request.id()), Some(admitted.request_id.as_str())),
            ));
        }
        Err(InitializeError::Open(error)) => return Err(not_opened(&error)),
    };
    let mut answer = match form {
        Form::Either | Form::JsonOnly => json(StatusCode::OK, response),
        Form::SseOnly => {
            let reader = edge.relay.single(&session, response);
            sse(Body::new(SseBody::new(edge, &admitted.caller, reader)))
        }
    };
    answer.headers_mut().insert(SESSION_ID, session.id.header());
    Ok(answer)
}

/// There is no place for another session, or no store.
pub(in crate::http) fn not_opened(error: &OpenError) -> Refused {
    match error {
        OpenError::PrincipalFull => {
            let status = StatusCode::TOO_MANY_REQUESTS;
            Refused::caller(status, "too_many_sessions", error.to_string()).with(Extra::RetryAfter(5))
        }
        OpenError::Full => Refused::unavailable("no_capacity", error.to_string()),
        OpenError::Stopping => Refused::unavailable("draining", error.to_string()),
        OpenError::Store(_) => Refused::unavailable("store_unreachable", error.to_string()),
        OpenError::NoLease(_) => Refused::unavailable("no_lease", error.to_string()),
    }
}
