//! POST: messages come in.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::StatusCode;

use super::accept::{Accepts, is_json};
use super::mcp::Admitted;
use super::reply::{Extra, Refused, empty, json, json_text, sse};
use super::sse_body::SseBody;
use super::{Edge, headers, modern, request_body};
use crate::protocol::envelope::{Malformed, Message, Request, batch};
use crate::protocol::error::Code;
use crate::protocol::header::SESSION_ID;
use crate::protocol::method::Method;
use crate::protocol::revision::Era;
use crate::relay::request::Batching;
use crate::relay::{Answer, Busy, Form, InitializeError, Session};
use crate::session::sessions::OpenError;

/// The most messages in a 2025-03-26 batch.
const MOST_IN_BATCH: usize = 100;

/// What a body held.
enum Posted {
    One(Message),
    Batch(Bytes),
}

pub(super) async fn post(edge: &Arc<Edge>, admitted: Admitted, body: Body) -> Result<Response, Refused> {
    if !is_json(&admitted.parts.headers) {
        let message = "The body of a POST must be JSON: send `Content-Type: application/json`.";
        return Err(Refused::caller(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", message));
    }
    let accepts = Accepts::of(&admitted.parts.headers);
    let bytes = request_body::read(body, edge.limits.body, edge.limits.body_read).await?;
    let posted = parse(bytes)?;
    match era(&posted) {
        Era::Legacy => legacy(edge, admitted, accepts, posted).await,
        Era::Modern => match posted {
            Posted::One(Message::Request(request)) => modern::request(edge, admitted, accepts, request).await,
            Posted::One(_) | Posted::Batch(_) => Ok(empty(StatusCode::ACCEPTED)),
        },
    }
}

/// Which era a body belongs to (E7).
fn era(posted: &Posted) -> Era {
    match posted {
        Posted::One(Message::Request(request)) => Era::claimed_by(request.params()),
        Posted::One(_) | Posted::Batch(_) => Era::Legacy,
    }
}

async fn legacy(
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

async fn initialize(
    edge: &Arc<Edge>,
    admitted: &Admitted,
    accepts: Accepts,
    request: &Request,
) -> Result<Response, Refused> {
    if let Some(id) = headers::session_id(&admitted.parts.headers)?
        && edge.relay.session(&id, &admitted.caller, &admitted.endpoint).await.is_some()
    {
        let message =
            "This session is initialized already and goes on; to start another, leave Mcp-Session-Id out.";
        return Err(Refused::caller(StatusCode::BAD_REQUEST, "already_initialized", message));
    }
    let form = accepts.form().ok_or_else(not_acceptable)?;
    if edge.draining.is_cancelled() {
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

fn not_opened(error: &OpenError) -> Refused {
    match error {
        OpenError::PrincipalFull => {
            let status = StatusCode::TOO_MANY_REQUESTS;
            Refused::caller(status, "too_many_sessions", error.to_string()).with(Extra::RetryAfter(5))
        }
        OpenError::Full => Refused::unavailable("no_capacity", error.to_string()),
        OpenError::Store(_) => Refused::unavailable("store_unreachable", error.to_string()),
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

fn parse(bytes: Bytes) -> Result<Posted, Refused> {
    match Message::parse(bytes.clone()) {
        Ok(message) => Ok(Posted::One(message)),
        Err(Malformed::Batch) => Ok(Posted::Batch(bytes)),
        Err(error) => Err(malformed(&error)),
    }
}

fn malformed(error: &Malformed) -> Refused {
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
