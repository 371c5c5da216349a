//! A POST of the legacy era: the caller's session, then the relay.

mod initialize;

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::StatusCode;

use super::accept::Accepts;
use super::mcp::Admitted;
use super::post::{Posted, malformed, not_acceptable};
use super::reply::{Extra, Refused, empty, json_text, sse};
use super::sse_body::SseBody;
use super::{Edge, headers};
use crate::protocol::envelope::{Malformed, Message, Request, batch};
use crate::protocol::method::Method;
use crate::relay::request::Batching;
use crate::relay::{Answer, Busy, Session};
use initialize::initialize;

pub(super) use initialize::not_opened;

/// The most messages in a 2025-03-26 batch.
const MOST_IN_BATCH: usize = 100;

pub(super) async fn post(
    edge: &Arc<Edge>,
    admitted: Admitted,
    accepts: Accepts,
    posted: Posted,
) -> Result<Response, Refused> {
    let id = match &posted {
        Posted::One(Message::Request(request)) => Some(request.id().to_owned()),
        Posted::One(_) | Posted::Batch(_) => None,
    };
    let refuse = |refused: Refused| refused.of(id.as_deref());
    if let Posted::One(Message::Request(request)) = &posted
        && *request.method() == Method::Initialize
    {
        return initialize(edge, &admitted, accepts, request).await.map_err(refuse);
    }
    headers::check_version(&admitted.parts.headers).map_err(refuse)?;
    let session = session(edge, &admitted).await.map_err(refuse)?;
    let (messages, batching) = match posted {
        Posted::One(message) => (vec![message], Batching::Single),
        Posted::Batch(bytes) => (unbatch(&session, &bytes)?, Batching::Array),
    };
    let (requests, others) = split(messages);
    let take = take(edge, &admitted, &session, others);
    if requests.is_empty() {
        take.await;
        return Ok(empty(StatusCode::ACCEPTED));
    }
    let form = accepts.form().ok_or_else(|| refuse(not_acceptable()))?;
    let request_id = admitted.request_id.shared();
    let serving = edge.relay.requests(&session, &admitted.endpoint, requests, form, batching, request_id);
    // The requests begin first: what stands beside them in a batch may take one of them back.
    let (answer, ()) = tokio::join!(serving, take);
    match answer {
        Ok(Answer::Json(text)) => Ok(json_text(text)),
        Ok(Answer::Accepted) => Ok(empty(StatusCode::ACCEPTED)),
        Ok(Answer::Stream(reader)) => Ok(sse(Body::new(SseBody::new(edge, &admitted.caller, reader)))),
        Err(busy @ Busy) => {
            let refused = Refused::caller(StatusCode::TOO_MANY_REQUESTS, "session_busy", busy.to_string());
            Err(refuse(refused.with(Extra::RetryAfter(1))))
        }
    }
}

/// The caller's session.
///
/// # Errors
/// 400 without an id, 404 for one that is unknown, ended or somebody else's (case-A03, case-I01).
pub(super) async fn session(edge: &Edge, admitted: &Admitted) -> Result<Arc<Session>, Refused> {
    let id = headers::session_id(&admitted.parts.headers)?.ok_or_else(|| {
        let message =
            "Mcp-Session-Id is missing: send initialize first, then the id that its answer carries.";
        Refused::caller(StatusCode::BAD_REQUEST, "missing_session_id", message).with(Extra::Allow)
    })?;
    edge.relay.session(&id, &admitted.caller, &admitted.endpoint).await.ok_or_else(|| {
        edge.metrics.session_not_found();
        let message =
            "There is no such session: it has ended or never was. Send initialize to start another.";
        Refused::caller(StatusCode::NOT_FOUND, "unknown_session", message)
    })
}

/// The requests, and what needs no response.
fn split(messages: Vec<Message>) -> (Vec<Request>, Vec<Message>) {
    let (mut requests, mut others) = (Vec::with_capacity(messages.len()), Vec::new());
    for message in messages {
        match message {
            Message::Request(request) => requests.push(request),
            other => others.push(other),
        }
    }
    (requests, others)
}

/// Takes what needs no response, in order.
async fn take(edge: &Edge, admitted: &Admitted, session: &Arc<Session>, messages: Vec<Message>) {
    for message in messages {
        match message {
            Message::Notification(notification) => {
                edge.relay.notification(session, &admitted.endpoint, notification).await;
            }
            Message::Response(response) => edge.relay.response(session, &response),
            Message::Request(_) => {}
        }
    }
}

/// The messages of a batch.
fn unbatch(session: &Session, bytes: &Bytes) -> Result<Vec<Message>, Refused> {
    if !session.revision().allows_batches() {
        return Err(malformed(&Malformed::Batch));
    }
    let parts = batch(bytes, MOST_IN_BATCH).map_err(|e| malformed(&e))?;
    let messages = parts.into_iter().map(Message::parse).collect::<Result<Vec<_>, _>>();
    let messages = messages.map_err(|e| malformed(&e))?;
    if messages.iter().any(|m| m.method() == Some(&Method::Initialize)) {
        let message = "`initialize` must not be part of a batch.";
        return Err(Refused::caller(StatusCode::BAD_REQUEST, "initialize_in_batch", message));
    }
    Ok(messages)
}
