//! A POST of the legacy era: the caller's session, or none where none is needed, then the relay.

mod initialize;
mod sessionless;

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};

use super::accept::Accepts;
use super::mcp::Admitted;
use super::place::{Placed, place, refused};
use super::post::{Posted, malformed, not_acceptable};
use super::reply::{Extra, Refused, empty, json_text, sse};
use super::sse_body::SseBody;
use super::{Edge, headers};
use crate::protocol::envelope::{Malformed, Message, Request, batch};
use crate::protocol::header::{PROTOCOL_VERSION, SESSION_ID};
use crate::protocol::method::Method;
use crate::protocol::object::Object;
use crate::protocol::revision::Revision;
use crate::relay::request::Batching;
use crate::relay::{Answer, Busy, NoSeat, Session};
use crate::settings::endpoints::SessionPolicy;
use initialize::{initialize, not_opened};

/// The most messages in a 2025-03-26 batch.
pub(super) const MOST_IN_BATCH: usize = 100;

/// Whom messages belong to.
enum Whose {
    /// The caller of a session that is here.
    Session(Arc<Session>),
    /// That of a session at another replica, which answered.
    Peers(Response),
    /// A caller that names none where none is needed, and writes in this revision.
    Nobodys(Revision),
}

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
    climb(edge, &admitted, accepts, posted).await.map_err(|refused| refused.of(id.as_deref()))
}

async fn climb(
    edge: &Arc<Edge>,
    admitted: &Admitted,
    accepts: Accepts,
    posted: Posted,
) -> Result<Response, Refused> {
    if admitted.endpoint.sessions == SessionPolicy::Off {
        return Err(refused_era(&admitted.parts.headers, &posted));
    }
    if let Posted::One(Message::Request(request)) = &posted
        && *request.method() == Method::Initialize
    {
        return initialize(edge, admitted, accepts, request).await;
    }
    headers::check_version(&admitted.parts.headers)?;
    let session = match whose(edge, admitted, &posted).await? {
        Whose::Session(session) => session,
        Whose::Peers(response) => return Ok(response),
        Whose::Nobodys(revision) => {
            return sessionless::post(edge, admitted, accepts, posted, revision).await;
        }
    };
    let (messages, batching) = messages(session.revision(), posted)?;
    let (requests, others) = split(messages);
    let take = take(edge, admitted, &session, others);
    if requests.is_empty() {
        take.await;
        return Ok(empty(StatusCode::ACCEPTED));
    }
    let form = accepts.form().ok_or_else(not_acceptable)?;
    let request_id = admitted.request_id.shared();
    let serving = edge.relay.requests(&session, &admitted.endpoint, requests, form, batching, request_id);
    // The requests begin first: what stands beside them in a batch may take one of them back.
    let (answer, ()) = tokio::join!(serving, take);
    let answer = answer.map_err(|busy| refused_seat(&busy.into()))?;
    Ok(answered(edge, admitted, answer))
}

fn answered(edge: &Edge, admitted: &Admitted, answer: Answer) -> Response {
    match answer {
        Answer::Json(text) => json_text(text),
        Answer::Accepted => empty(StatusCode::ACCEPTED),
        Answer::Stream(reader) => sse(Body::new(SseBody::new(edge, &admitted.caller, reader))),
    }
}

/// Why a request is not served now.
pub(super) fn refused_seat(why: &NoSeat) -> Refused {
    match why {
        NoSeat::Busy(busy @ (Busy::Moving | Busy::Streams(_))) => {
            Refused::unavailable(busy.reason(), busy.to_string())
        }
        NoSeat::Busy(busy) => {
            let refused = Refused::caller(StatusCode::TOO_MANY_REQUESTS, busy.reason(), busy.to_string());
            refused.with(Extra::RetryAfter(1))
        }
        NoSeat::NoPlace(error) => not_opened(error),
        NoSeat::Unplaced(unplaced) => refused(unplaced),
    }
}

/// Only modern callers are served here; a caller of both eras reads so from the answer (L12).
fn refused_era(headers: &HeaderMap, posted: &Posted) -> Refused {
    let params = match posted {
        Posted::One(Message::Request(request)) if *request.method() == Method::Initialize => {
            request.params().and_then(|raw| Object::parse(raw).ok())
        }
        Posted::One(_) | Posted::Batch(_) => None,
    };
    let header = headers.get(PROTOCOL_VERSION).and_then(|value| Some(value.to_str().ok()?.trim().into()));
    let requested = params.and_then(|params| params.text("protocolVersion")).or(header);
    headers::modern_only(&requested.unwrap_or(Revision::UNSAID.as_str().into()))
}

async fn whose(edge: &Arc<Edge>, admitted: &Admitted, posted: &Posted) -> Result<Whose, Refused> {
    let headers = &admitted.parts.headers;
    if admitted.endpoint.sessions == SessionPolicy::Optional && !headers.contains_key(SESSION_ID) {
        return Ok(Whose::Nobodys(headers::revision(headers)));
    }
    Ok(match place(edge, admitted, posted.bytes()).await? {
        Placed::Here(session) => Whose::Session(session),
        Placed::Answered(response) => Whose::Peers(response),
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

/// What was posted, in a session of `revision`.
fn messages(revision: Revision, posted: Posted) -> Result<(Vec<Message>, Batching), Refused> {
    match posted {
        Posted::One(message) => Ok((vec![message], Batching::Single)),
        Posted::Batch(_) if !revision.allows_batches() => Err(malformed(&Malformed::Batch)),
        Posted::Batch(bytes) => unbatch(&bytes).map(|messages| (messages, Batching::Array)),
    }
}

/// The messages of a batch.
fn unbatch(bytes: &Bytes) -> Result<Vec<Message>, Refused> {
    let parts = batch(bytes, MOST_IN_BATCH).map_err(|e| malformed(&e))?;
    let messages = parts.into_iter().map(Message::parse).collect::<Result<Vec<_>, _>>();
    let messages = messages.map_err(|e| malformed(&e))?;
    if messages.iter().any(|m| m.method() == Some(&Method::Initialize)) {
        let message = "`initialize` must not be part of a batch.";
        return Err(Refused::caller(StatusCode::BAD_REQUEST, "initialize_in_batch", message));
    }
    Ok(messages)
}
