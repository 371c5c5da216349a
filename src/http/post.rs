//! POST: messages come in; the body tells their era, and with it the ladder they climb on (E5 to E7).

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};

use super::accept::{Accepts, is_json};
use super::headers::era_of_header;
use super::mcp::Admitted;
use super::reply::{Refused, empty};
use super::{Edge, legacy, modern, request_body};
use crate::protocol::envelope::{Malformed, Message};
use crate::protocol::error::Code;
use crate::protocol::revision::Era;

/// What a body held.
pub(super) enum Posted {
    One(Message),
    Batch(Bytes),
}

// === impl Posted ===

impl Posted {
    /// The body as it came.
    pub(super) fn bytes(&self) -> &Bytes {
        match self {
            Self::One(message) => message.bytes(),
            Self::Batch(bytes) => bytes,
        }
    }
}

pub(super) async fn post(edge: &Arc<Edge>, admitted: Admitted, body: Body) -> Result<Response, Refused> {
    if !is_json(&admitted.parts.headers) {
        let message = "The body of a POST must be JSON: send `Content-Type: application/json`.";
        return Err(Refused::caller(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", message));
    }
    let accepts = Accepts::of(&admitted.parts.headers);
    let bytes = request_body::read(body, edge.limits.body, edge.limits.body_read).await?;
    let posted = parse(bytes)?;
    let headers = &admitted.parts.headers;
    match posted {
        Posted::One(Message::Request(request)) => {
            let claim = modern::claim(headers, &request).map_err(|refused| refused.of(Some(request.id())))?;
            edge.metrics.request_of(if claim.is_some() { Era::Modern } else { Era::Legacy });
            match claim {
                Some(claim) => modern::request(edge, admitted, accepts, claim, request).await,
                None => legacy::post(edge, admitted, accepts, Posted::One(request.into())).await,
            }
        }
        Posted::One(Message::Notification(ref notification)) => {
            match modern::era_of_note(headers, notification)? {
                Era::Modern => Ok(empty(StatusCode::ACCEPTED)),
                Era::Legacy => legacy::post(edge, admitted, accepts, posted).await,
            }
        }
        Posted::One(Message::Response(_)) | Posted::Batch(_) => {
            legacy_alone(headers, &posted)?;
            legacy::post(edge, admitted, accepts, posted).await
        }
    }
}

/// Refuses what the modern era does not have: posted responses and arrays (T36).
fn legacy_alone(headers: &HeaderMap, posted: &Posted) -> Result<(), Refused> {
    let claims = |bytes: &Bytes| modern::claimed_in_batch(bytes);
    let what = match posted {
        Posted::Batch(bytes) if era_of_header(headers) == Era::Modern || claims(bytes) => {
            "A request of 2026-07-28 and later stands alone: arrays of messages are not taken."
        }
        Posted::One(Message::Response(_)) if era_of_header(headers) == Era::Modern => {
            "Callers of 2026-07-28 and later send no responses: answers to a server's questions come with the next request."
        }
        Posted::One(_) | Posted::Batch(_) => return Ok(()),
    };
    Err(Refused::caller(StatusCode::BAD_REQUEST, "malformed_message", what))
}

fn parse(bytes: Bytes) -> Result<Posted, Refused> {
    match Message::parse(bytes.clone()) {
        Ok(message) => Ok(Posted::One(message)),
        Err(Malformed::Batch) => Ok(Posted::Batch(bytes)),
        Err(error) => Err(malformed(&error)),
    }
}

pub(super) fn malformed(error: &Malformed) -> Refused {
    let (code, id) = match error {
        Malformed::Json(_) => (Code::Parse, None),
        Malformed::TooDeep | Malformed::Batch => (Code::InvalidRequest, None),
        Malformed::Shape { id, .. } => (Code::InvalidRequest, id.as_deref()),
    };
    Refused::new(StatusCode::BAD_REQUEST, code, "malformed_message", error.to_string()).of(id)
}

pub(super) fn not_acceptable() -> Refused {
    let message =
        "The answer would be application/json or text/event-stream; the Accept header allows neither.";
    Refused::caller(StatusCode::NOT_ACCEPTABLE, "not_acceptable", message)
}
