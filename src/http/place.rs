//! The session step of the ladder: served here, or at the replica that owns the session (E12, E13).

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use axum::response::Response;
use bytes::Bytes;
use http::StatusCode;

use super::forward::Target;
use super::journey::{Detour, Journey, hold};
use super::mcp::Admitted;
use super::peer::{Hop, not_owner};
use super::reply::{Extra, Refused};
use super::{Edge, headers};
use crate::protocol::revision::Era;
use crate::relay::{Session, Unplaced, Whereabouts};
use crate::session::{Epoch, SessionId};

/// Where a request of a session is served.
pub(super) enum Placed {
    /// Here, in this session.
    Here(Arc<Session>),
    /// At its owner, which answered.
    Answered(Response),
}

/// The caller's session, or the answer of the replica that owns it. `body` is what is forwarded there.
///
/// # Errors
/// 400 without an id, 404 for one that is unknown, ended or somebody else's (case-A03, case-I01), 503 if that cannot be
/// told now.
pub(super) async fn place(edge: &Arc<Edge>, admitted: &Admitted, body: &Bytes) -> Result<Placed, Refused> {
    let id = session_id(admitted)?;
    if let Some(hop) = &admitted.hop {
        return for_peer(edge, admitted, &id, hop).await;
    }
    let (caller, endpoint) = (&admitted.caller, &admitted.endpoint);
    let mut journey = Journey::new(edge, admitted);
    loop {
        let looking = edge.relay.whereabouts(&id, caller, endpoint, journey.dead());
        let owner = match held_while(edge, body, looking).await? {
            Ok(Whereabouts::Here(session)) if !session.is_retired() => return Ok(Placed::Here(session)),
            Ok(Whereabouts::Here(_)) => {
                journey.rest(body).await?;
                continue;
            }
            Ok(Whereabouts::At(owner)) => owner,
            Ok(Whereabouts::Nowhere) => return Err(unknown_session(edge)),
            Err(unplaced) => return Err(refused(&unplaced)),
        };
        let target = Target { peer: &owner.peer, epoch: Some(owner.epoch), era: Era::Legacy };
        let detour = |why| {
            edge.relay.forget_owner(&id);
            if why == Detour::Silence {
                edge.relay.missed(&owner.peer.replica, &id);
            }
        };
        if let Some(answer) = journey.go(body, target, detour).await? {
            return Ok(Placed::Answered(answer));
        }
    }
}

/// What `looking` finds. Known at once for nearly all; while the store is asked, or the session taken over, the request is
/// held, if there is room for it.
///
/// # Errors
/// 503 if too many requests are held.
async fn held_while<T>(edge: &Edge, body: &Bytes, looking: impl Future<Output = T>) -> Result<T, Refused> {
    let mut looking = pin!(looking);
    if let Poll::Ready(found) = futures_util::poll!(looking.as_mut()) {
        return Ok(found);
    }
    match &edge.forwarder {
        Some(forwarder) => {
            let _held = hold(edge, &forwarder.looks, body)?;
            Ok(looking.await)
        }
        None => Ok(looking.await),
    }
}

/// The session that a peer forwards a request for: served here if it is owned here as the peer believes, and nothing
/// runs otherwise.
async fn for_peer(
    edge: &Arc<Edge>,
    admitted: &Admitted,
    id: &SessionId,
    hop: &Hop,
) -> Result<Placed, Refused> {
    let meant = edge.forwarder.as_ref().is_some_and(|forwarder| *forwarder.this() == hop.replica);
    let epoch = hop.epoch.map(Epoch).filter(|_| meant);
    let Some(epoch) = epoch else { return Ok(Placed::Answered(not_owner())) };
    match edge.relay.owned_here(id, &admitted.caller, &admitted.endpoint, epoch).await {
        Ok(Some(session)) => Ok(Placed::Here(session)),
        Ok(None) => Ok(Placed::Answered(not_owner())),
        Err(unplaced) => Err(refused(&unplaced)),
    }
}

/// The id that the caller sends.
///
/// # Errors
/// 400 without one, or with one that is malformed.
pub(super) fn session_id(admitted: &Admitted) -> Result<SessionId, Refused> {
    headers::session_id(&admitted.parts.headers)?.ok_or_else(|| {
        let message =
            "Mcp-Session-Id is missing: send initialize first, then the id that its answer carries.";
        Refused::caller(StatusCode::BAD_REQUEST, "missing_session_id", message).with(Extra::Allow)
    })
}

pub(super) fn unknown_session(edge: &Edge) -> Refused {
    edge.metrics.session_not_found();
    let message = "There is no such session: it has ended or never was. Send initialize to start another.";
    Refused::caller(StatusCode::NOT_FOUND, "unknown_session", message)
}

/// Why a session cannot be served now.
pub(super) fn refused(why: &Unplaced) -> Refused {
    Refused::unavailable(why.reason(), format!("{why}."))
}
