//! The session step of the ladder: served here, or at the replica that owns the session (E12, E13).

use std::sync::Arc;

use axum::response::Response;
use bytes::Bytes;
use http::StatusCode;

use super::mcp::Admitted;
use super::reply::{Extra, Refused};
use super::{Edge, headers};
use crate::relay::{Session, Unplaced, Whereabouts};
use crate::session::{AdoptError, SessionId, Unlocated};
use crate::store::StoreError;

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
    let (caller, endpoint) = (&admitted.caller, &admitted.endpoint);
    match edge.relay.whereabouts(&id, caller, endpoint, None).await {
        Ok(Whereabouts::Here(session)) => Ok(Placed::Here(session)),
        Ok(Whereabouts::At(_owner)) => {
            let _ = body;
            Err(Refused::unavailable(
                "owner_unreachable",
                "The replica that owns this session cannot be reached.",
            ))
        }
        Ok(Whereabouts::Nowhere) => Err(unknown_session(edge)),
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
    let reason = match why {
        Unplaced::Unlocated(Unlocated::Store(error)) | Unplaced::NotAdopted(AdoptError::Store(error)) => {
            match error {
                StoreError::Unreachable => "store_unreachable",
                StoreError::Gone | StoreError::Fenced => "session_moving",
            }
        }
        Unplaced::Unlocated(Unlocated::NoLease(_)) | Unplaced::NotAdopted(AdoptError::NoLease(_)) => {
            "no_lease"
        }
        Unplaced::Unlocated(Unlocated::Forgetful) => "store_begun_anew",
        Unplaced::NotAdopted(AdoptError::Raced) => "session_moving",
        Unplaced::NotAdopted(AdoptError::Unknown) => "record_not_understood",
    };
    Refused::unavailable(reason, format!("{why}."))
}
