//! The session step of the ladder: served here, or at the replica that owns the session (E12, E13).

use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use bytes::Bytes;
use http::StatusCode;
use tokio::time::Instant;

use super::forward::NotForwarded;
use super::mcp::Admitted;
use super::peer::{Hop, not_owner};
use super::reply::{Extra, Refused};
use super::{Edge, headers};
use crate::relay::{Session, Unplaced, Whereabouts};
use crate::session::{Epoch, SessionId};
use crate::telemetry::metrics::cluster::Forward;

/// Where a request of a session is served.
pub(super) enum Placed {
    /// Here, in this session.
    Here(Arc<Session>),
    /// At its owner, which answered.
    Answered(Response),
}

/// How long to the next try while a request is held.
const AGAIN: Duration = Duration::from_millis(100);

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
    let began = Instant::now();
    let (mut dead, mut looked_again, mut held) = (None, false, None);
    loop {
        let owner = match edge.relay.whereabouts(&id, caller, endpoint, dead.as_ref()).await {
            Ok(Whereabouts::Here(session)) => return Ok(Placed::Here(session)),
            Ok(Whereabouts::At(owner)) => owner,
            Ok(Whereabouts::Nowhere) => return Err(unknown_session(edge)),
            Err(unplaced) => return Err(refused(&unplaced)),
        };
        let Some(forwarder) = &edge.forwarder else {
            return Err(unreachable(&"this replica has no way to others"));
        };
        match forwarder.forward(edge, admitted, body, &owner).await {
            Ok(answer) => return Ok(Placed::Answered(answer)),
            Err(NotForwarded::Unknown(answer)) => return Ok(Placed::Answered(*answer)),
            Err(NotForwarded::NotOwner) => {
                edge.relay.forget_owner(&id);
                if std::mem::replace(&mut looked_again, true) {
                    return Err(moving());
                }
            }
            Err(NotForwarded::Dead) => {
                edge.relay.forget_owner(&id);
                dead = Some(owner.replica);
            }
            Err(NotForwarded::Unreachable(error)) => {
                edge.relay.forget_owner(&id);
                edge.relay.missed(&owner.replica, &id);
                if held.is_none() {
                    held = forwarder.hold.enter(body.len(), &edge.metrics);
                }
                if held.is_none() {
                    edge.metrics.cluster().forwarded(Forward::Refused);
                    return Err(unreachable(&"too many requests wait for it already"));
                }
                if began.elapsed() >= forwarder.patience() {
                    return Err(unreachable(&error));
                }
                tokio::time::sleep(AGAIN).await;
            }
        }
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

fn unreachable(why: &dyn std::fmt::Display) -> Refused {
    let message =
        format!("The replica that owns this session cannot be reached ({why}); try again in a moment.");
    Refused::unavailable("owner_unreachable", message)
}

fn moving() -> Refused {
    let message = "The session is on its way from one replica to another; try again in a moment.";
    Refused::unavailable("session_moving", message)
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
