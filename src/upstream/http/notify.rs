//! One notification.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use hyper::body::Incoming;

use super::session::{Live, Session, Tracking};
use super::shared::Shared;
use super::{body, fault};
use crate::protocol::envelope::Message;
use crate::protocol::header::MCP_METHOD;
use crate::protocol::method::Method as RpcMethod;
use crate::protocol::revision::Era;
use crate::upstream::Failure;

/// How long the server may take to say that it took one.
const PATIENCE: Duration = Duration::from_secs(30);

/// Sends a notification. Any 2xx is success, whatever the body says (case-D11); a session that the server forgot
/// is begun anew first. What only sessions know of is not sent to a modern server.
pub(super) async fn notify(shared: &Arc<Shared>, live: Arc<Live>, message: &Bytes) -> Result<(), Failure> {
    let peer = &shared.peer;
    if live.session.era == Era::Modern && !is_modern(message) {
        return Ok(());
    }
    let mut response = send(shared, &live, message).await?;
    if response.status() == StatusCode::NOT_FOUND && live.session.tracking() == Tracking::ById {
        let live = shared.renew(&live).await?;
        response = send(shared, &live, message).await?;
    }
    let status = response.status();
    body::discard(response.into_body(), &peer.tasks);
    if status.is_success() { Ok(()) } else { Err(fault::status(&peer.server.name, status)) }
}

async fn send(shared: &Shared, live: &Live, message: &Bytes) -> Result<Response<Incoming>, Failure> {
    let sent = shared.peer.origin.send(Method::POST, || headers(&live.session, message), message.clone());
    let taken = tokio::time::timeout(PATIENCE, sent).await;
    taken.unwrap_or_else(|_| Err(fault::not_taken(&shared.peer.server.name)))
}

/// Whether there may be such a notification over HTTP in the modern era: a call is cancelled by the end of its stream
/// there (T54), and nothing is ever begun (X2, X18).
fn is_modern(message: &Bytes) -> bool {
    let method = method(message);
    !matches!(
        method,
        Some(
            RpcMethod::Cancelled | RpcMethod::Initialized | RpcMethod::RootsListChanged | RpcMethod::Progress
        )
    )
}

/// D2: the method is named here too, though nothing demands it.
fn headers(session: &Session, message: &Bytes) -> HeaderMap {
    let mut headers = session.post.clone();
    if session.era == Era::Modern
        && let Some(Ok(method)) = method(message).map(|method| HeaderValue::from_str(method.as_str()))
    {
        headers.insert(MCP_METHOD, method);
    }
    headers
}

fn method(message: &Bytes) -> Option<RpcMethod> {
    match Message::parse(message.clone()).ok()? {
        Message::Notification(notification) => Some(notification.method().clone()),
        Message::Request(_) | Message::Response(_) => None,
    }
}
