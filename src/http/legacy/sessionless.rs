//! Legacy messages without a session id, at an endpoint that takes them (`sessions: optional`).

use std::sync::Arc;

use axum::response::Response;
use http::StatusCode;

use super::{answered, messages, refused_seat, split};
use crate::http::Edge;
use crate::http::accept::Accepts;
use crate::http::mcp::Admitted;
use crate::http::post::{Posted, not_acceptable};
use crate::http::reply::{Refused, empty};
use crate::protocol::envelope::Request;
use crate::protocol::method::Method;
use crate::protocol::revision::Revision;

/// Serves what was posted as one of `revision`.
///
/// Notifications and posted responses are taken and mean nothing: without a session nobody can tell whose request a
/// cancellation names, and nothing was asked.
pub(super) async fn post(
    edge: &Arc<Edge>,
    admitted: &Admitted,
    accepts: Accepts,
    posted: Posted,
    revision: Revision,
) -> Result<Response, Refused> {
    let (messages, batching) = messages(revision, posted)?;
    let (requests, _) = split(messages);
    requests.iter().try_for_each(needs_no_session)?;
    if requests.is_empty() {
        return Ok(empty(StatusCode::ACCEPTED));
    }
    let form = accepts.form().ok_or_else(not_acceptable)?;
    let serving = edge.relay.sessionless(admitted.post(form), revision, requests, batching);
    let answer = serving.await.map_err(|no_seat| refused_seat(&no_seat))?;
    Ok(answered(edge, admitted, answer))
}

/// Updates of a resource come on the session's own GET.
fn needs_no_session(request: &Request) -> Result<(), Refused> {
    match request.method() {
        method @ (Method::ResourcesSubscribe | Method::ResourcesUnsubscribe) => {
            let message = format!(
                "{method} needs a session, whose GET stream brings the updates: send initialize first, then the id that its answer carries as Mcp-Session-Id."
            );
            Err(Refused::caller(StatusCode::BAD_REQUEST, "missing_session_id", message))
        }
        _ => Ok(()),
    }
}
