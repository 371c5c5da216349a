//! The beginning of a session: `initialize` and `notifications/initialized` (L1).

use std::sync::Arc;

use bytes::Bytes;
use http::Method;

use super::call::Attempt;
use super::peer::Peer;
use super::session::{Live, Session};
use super::{body, call, doubt, fault};
use crate::protocol::envelope::Response;
use crate::protocol::header::SESSION_ID;
use crate::protocol::object::{self, Object};
use crate::protocol::revision::{Era, Revision};
use crate::upstream::{Delivery, Failure, Hello, Introduction};

/// The longest part of a server's own words that a failure repeats, characters.
const QUOTE: usize = 200;

/// Begins a session within `timeouts.start`.
pub(super) async fn open(peer: &Arc<Peer>, hello: &Hello) -> Result<Live, Failure> {
    let mut begun = None;
    let shaken = tokio::time::timeout(peer.server.timeouts.start, shake(peer, hello, &mut begun)).await;
    let mut failure = match shaken {
        Ok(Ok(live)) => return Ok(live),
        Ok(Err(failure)) if failure.reason == fault::OUTCOME_UNKNOWN => fault::handshake(
            &peer.server.name,
            "connection_broken",
            "the connection ended before it was done",
        ),
        Ok(Err(failure)) => failure,
        Err(_) => fault::slow_start(&peer.server.name),
    };
    // No request of a caller was in this.
    failure.delivery = Delivery::NotDelivered;
    if let Some(session) = begun {
        // The server has a session that nobody will use.
        let peer = Arc::clone(peer);
        peer.tasks.clone().spawn(async move { peer.end(&session).await });
    }
    Err(failure)
}

async fn shake(peer: &Arc<Peer>, hello: &Hello, begun: &mut Option<Arc<Session>>) -> Result<Live, Failure> {
    let server = peer.server.name.as_str();
    let session =
        |id, revision| Arc::new(Session::new(&peer.origin.headers, id, revision, peer.closed.child_token()));
    let id = peer.allot();
    let message = initialize(hello, id.0);
    let nameless = session(None, None);
    let response = peer.origin.send(Method::POST, || nameless.post.clone(), message).await?;
    let (head, body) = response.into_parts();
    let session_id = head.headers.get(SESSION_ID).filter(|id| !id.is_empty()).cloned();
    let early = session(session_id.clone(), None);
    *begun = Some(Arc::clone(&early));
    let status = head.status;
    let answered = call::answer(peer, &early, id, head, body, &peer.listener).await?;
    let refused = doubt::is_refusal(&answered);
    let response = match answered {
        // T66: where it does not say yes, it may be of the other era by now.
        _ if refused && doubt::is_other_era(peer, Era::Legacy).await => {
            return Err(fault::era_changed(server));
        }
        Attempt::Answered(response) | Attempt::Refused(_, Some(response)) => response,
        Attempt::Refused(_, None) | Attempt::SessionLost => return Err(fault::status(server, status)),
    };
    let introduction = Arc::new(introduction(server, &response)?);
    let session = session(session_id, Some(introduction.revision));
    *begun = Some(Arc::clone(&session));
    peer.listener.begun(session.state(&introduction)).await;

    let initialized = Bytes::from_static(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let response = peer.origin.send(Method::POST, || session.post.clone(), initialized).await?;
    if !response.status().is_success() {
        let why = format!("it answered `notifications/initialized` with HTTP {}", response.status().as_u16());
        return Err(fault::handshake(server, "initialized_refused", &why));
    }
    body::discard(response.into_body(), &peer.tasks);
    Ok(Live { session, introduction })
}

fn initialize(hello: &Hello, id: u64) -> Bytes {
    let Hello { revision, capabilities, client_info } = hello;
    let params = format!(
        r#"{{"protocolVersion":"{revision}","capabilities":{capabilities},"clientInfo":{client_info}}}"#
    );
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"initialize","params":{params}}}"#).into()
}

fn introduction(server: &str, response: &Response) -> Result<Introduction, Failure> {
    let refuse = |reason, why: &str| fault::handshake(server, reason, why);
    let Some(result) = response.result() else {
        let message = response.error().and_then(|error| Object::parse(error).ok()?.text("message"));
        let message: String = message.unwrap_or_default().chars().take(QUOTE).collect();
        return Err(refuse(
            "initialize_refused",
            &format!("it answered with the error {}", object::quoted(&message)),
        ));
    };
    let result = Object::parse(result)
        .map_err(|_| refuse("bad_introduction", "its result is no object, or names a member twice"))?;
    let version = result.text("protocolVersion").unwrap_or_default();
    let revision = Revision::legacy(&version).map_err(|unknown| {
        let version: String = version.chars().take(32).collect();
        refuse(
            "unsupported_revision",
            &format!("it speaks protocol version {}; the {unknown}", object::quoted(&version)),
        )
    })?;
    let part = |name| match result.get(name) {
        Some(raw) if raw.starts_with('{') => raw.into(),
        _ => "{}".into(),
    };
    Ok(Introduction {
        revision,
        capabilities: part("capabilities"),
        server_info: part("serverInfo"),
        instructions: result.text("instructions").map(Into::into),
    })
}
