//! One request and its response.

use std::sync::Arc;

use bytes::Bytes;
use http::response::Parts;
use http::{Method, StatusCode};
use hyper::body::Incoming;

use super::body::{self, Form, Unread};
use super::peer::Peer;
use super::session::{Live, Session, Tracking};
use super::shared::Shared;
use super::{doubt, fault, resume};
use crate::protocol::envelope::{Malformed, Response};
use crate::protocol::object::Object;
use crate::protocol::revision::Era;
use crate::protocol::sse::ByteLimit;
use crate::upstream::{Failure, Listener, Outgoing, UpstreamId};

/// The largest body of a refusal that is looked into.
const REFUSAL: ByteLimit = ByteLimit(64 << 10);

/// How one try went.
pub(super) enum Attempt {
    /// The server answered.
    Answered(Response),
    /// It refused by this HTTP status, with a JSON-RPC error or without one.
    Refused(StatusCode, Option<Response>),
    /// It does not know the session, so the request did not run (case-D01).
    SessionLost,
}

/// Sends a request, over a new session if the server forgot the one we had.
pub(super) async fn call(
    shared: &Arc<Shared>,
    live: Arc<Live>,
    id: UpstreamId,
    request: &Outgoing,
    listener: &Arc<dyn Listener>,
) -> Result<Response, Failure> {
    match attempt(&shared.peer, &live.session, id, request, listener).await? {
        Attempt::Answered(response) if live.session.era == Era::Modern && response.error().is_some() => {
            return Box::pin(failed(shared, &live, response)).await;
        }
        Attempt::Answered(response) => return Ok(response),
        Attempt::Refused(status, error) => return Box::pin(refusal(shared, &live, status, error)).await,
        Attempt::SessionLost => {}
    }
    let live = shared.renew(&live).await?;
    match attempt(&shared.peer, &live.session, id, request, listener).await? {
        Attempt::Answered(response) => Ok(response),
        Attempt::Refused(status, error) => Box::pin(refusal(shared, &live, status, error)).await,
        Attempt::SessionLost => Err(fault::session_lost(&shared.peer.server.name)),
    }
}

/// What a refusal comes to: the error in it, unless the server turns out to be of the other era by now: then it
/// understood nothing, and the link is of no more use (T66).
async fn refusal(
    shared: &Shared,
    live: &Live,
    status: StatusCode,
    error: Option<Response>,
) -> Result<Response, Failure> {
    let (peer, era) = (&shared.peer, live.session.era);
    if doubt::is_doubtful(era, status, error.as_ref()) && doubt::is_other_era(peer, era).await {
        return Err(shared.fail(fault::era_changed(&peer.server.name)));
    }
    error.ok_or_else(|| fault::status(&peer.server.name, status))
}

/// What an error of a modern server comes to that it gives as any other answer: that, since the request may have
/// run. But if the server is of the other era by now, no further request takes this link.
async fn failed(shared: &Shared, live: &Live, error: Response) -> Result<Response, Failure> {
    let (peer, era) = (&shared.peer, live.session.era);
    if doubt::is_odd(era, &error) && doubt::is_other_era(peer, era).await {
        shared.fail(fault::era_changed(&peer.server.name));
    }
    Ok(error)
}

/// Sends a request once.
pub(super) async fn attempt(
    peer: &Arc<Peer>,
    session: &Arc<Session>,
    id: UpstreamId,
    request: &Outgoing,
    listener: &Arc<dyn Listener>,
) -> Result<Attempt, Failure> {
    let message = request.message.clone();
    let response = match &request.mirror {
        None => peer.origin.send(Method::POST, || session.post.clone(), message).await?,
        Some(mirror) => peer.origin.send(Method::POST, || session.mirroring(mirror), message).await?,
    };
    let (head, body) = response.into_parts();
    answer(peer, session, id, head, body, listener).await
}

/// Reads the answer to a request. The rare ways are boxed, so that the common one stays a small future.
pub(super) async fn answer(
    peer: &Arc<Peer>,
    session: &Arc<Session>,
    id: UpstreamId,
    head: Parts,
    body: Incoming,
    listener: &Arc<dyn Listener>,
) -> Result<Attempt, Failure> {
    let server = peer.server.name.as_str();
    match (head.status, Form::of(&head)) {
        (status, _) if !status.is_success() => {
            Box::pin(refused(peer, session, id, head, body, listener)).await
        }
        (StatusCode::ACCEPTED | StatusCode::NO_CONTENT, _) => {
            Err(fault::bad_answer(server, &format!("HTTP {} and nothing more", head.status.as_u16())))
        }
        (_, Form::Json) => {
            let text = body::collect(body, peer.limit()).await.map_err(|unread| match unread {
                Unread::Broken => fault::broken(server),
                Unread::TooLarge => fault::too_large(server, peer.limit().0),
            })?;
            if text.is_empty() {
                return Err(fault::bad_answer(server, "an empty body"));
            }
            let answer =
                peer.hear(session, &text, Some(id), listener).map_err(|why| nonsense(server, &why))?;
            let absent = || fault::bad_answer(server, "a message that is not the response to the request");
            answer.map(Attempt::Answered).ok_or_else(absent)
        }
        (_, Form::Events) => {
            Box::pin(resume::follow(peer, session, id, body, listener)).await.map(Attempt::Answered)
        }
        (_, Form::Other) => Err(fault::bad_answer(server, "neither JSON nor an event stream")),
    }
}

/// What a text that is no message says about the server (case-I07).
pub(super) fn nonsense(server: &str, why: &Malformed) -> Failure {
    fault::bad_answer(
        server,
        match why {
            Malformed::Json(_) => "text that is not valid JSON",
            Malformed::TooDeep => "JSON that is nested too deep",
            Malformed::Batch | Malformed::Shape { .. } => "JSON of another shape",
        },
    )
}

/// Reads a refusal: servers differ in which errors they give a status of their own (T11), so a JSON-RPC error in
/// the body is the answer.
async fn refused(
    peer: &Arc<Peer>,
    session: &Arc<Session>,
    id: UpstreamId,
    head: Parts,
    body: Incoming,
    listener: &Arc<dyn Listener>,
) -> Result<Attempt, Failure> {
    let text = match Form::of(&head) {
        Form::Json => body::collect(body, REFUSAL).await.unwrap_or_default(),
        Form::Events | Form::Other => Bytes::new(),
    };
    let error = peer
        .hear(session, &text, Some(id), listener)
        .ok()
        .flatten()
        .filter(|response| response.error().is_some());
    match (head.status, error) {
        // T31: the session is gone. Only an error that says so is about the method.
        (StatusCode::NOT_FOUND, error) if session.tracking() == Tracking::ById => match error {
            Some(error) if is_method_not_found(&error) => Ok(Attempt::Answered(error)),
            _ => Ok(Attempt::SessionLost),
        },
        (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, Some(error)) if error.id() == "null" => {
            Err(fault::status(&peer.server.name, head.status))
        }
        (status, error) => Ok(Attempt::Refused(status, error)),
    }
}

fn is_method_not_found(response: &Response) -> bool {
    let code = response.error().and_then(|error| Object::parse(error).ok()?.get("code"));
    code == Some("-32601")
}
