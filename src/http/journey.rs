//! A request on its way to the replica that is to serve it: held, within bounds, while it is unclear whether that
//! replica lives.

use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use bytes::Bytes;
use tokio::time::Instant;

use super::Edge;
use super::forward::{Forwarder, Held, Hold, NotForwarded, Target};
use super::mcp::Admitted;
use super::peer::HopError;
use super::reply::Refused;
use crate::session::ReplicaId;
use crate::telemetry::metrics::cluster::Forward;

/// A request on its way.
pub(super) struct Journey<'a> {
    edge: &'a Arc<Edge>,
    admitted: &'a Admitted,
    began: Instant,
    /// A replica that was proven dead on the way.
    dead: Option<ReplicaId>,
    turned: Turned,
}

/// Whether a replica said before that the request is not its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turned {
    NotYet,
    Away,
}

/// Why a request was not answered where it was sent, so that it is looked again where it belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detour {
    /// It belongs elsewhere, or the replica is dead.
    Elsewhere,
    /// The replica cannot be reached, though it may live.
    Silence,
}

/// How long to the next try while a request is held.
const AGAIN: Duration = Duration::from_millis(100);

// === impl Journey ===

impl<'a> Journey<'a> {
    /// One that begins now.
    pub(super) fn new(edge: &'a Arc<Edge>, admitted: &'a Admitted) -> Self {
        Self { edge, admitted, began: Instant::now(), dead: None, turned: Turned::NotYet }
    }

    /// A replica that was proven dead on the way.
    pub(super) fn dead(&self) -> Option<&ReplicaId> {
        self.dead.as_ref()
    }

    /// Sends the request with `body` to `target`, and gives its answer. None if it is to be looked again where the
    /// request belongs, which `detour` was told before.
    ///
    /// # Errors
    /// 503 if the replica cannot be reached for too long, or the request finds no rest.
    pub(super) async fn go(
        &mut self,
        body: &Bytes,
        target: Target<'_>,
        detour: impl FnOnce(Detour),
    ) -> Result<Option<Response>, Refused> {
        let edge = self.edge;
        let Some(forwarder) = &edge.forwarder else {
            return Err(unreachable(&"this replica has no way to others"));
        };
        // Lives until it is clear what becomes of the request, while it is held too.
        let passage = forwarder.enter();
        if passage.is_cut() {
            return Err(leaving());
        }
        match forwarder.forward(edge, self.admitted, body, target, &passage).await {
            Ok(answer) => {
                edge.relay.reached(&target.peer.replica);
                return Ok(Some(answer));
            }
            Err(NotForwarded::Unknown(answer)) => {
                // Whoever comes next looks whether the owner still is one.
                detour(Detour::Elsewhere);
                return Ok(Some(*answer));
            }
            Err(NotForwarded::NotOwner) => {
                detour(Detour::Elsewhere);
                // The store names it still: it gives the session up at this moment.
                if std::mem::replace(&mut self.turned, Turned::Away) == Turned::Away {
                    self.wait(forwarder, body, moving).await?;
                }
            }
            Err(NotForwarded::Dead) => {
                detour(Detour::Elsewhere);
                self.dead = Some(target.peer.replica.clone());
            }
            Err(NotForwarded::Unreachable(error)) => {
                // One that has too much to do is heard from, and keeps its sessions.
                if !matches!(error, HopError::Busy) {
                    detour(Detour::Silence);
                }
                self.wait(forwarder, body, || unreachable(&error)).await?;
            }
        }
        Ok(None)
    }

    /// Lets a session go that is being given up here, so that it can be looked for again.
    ///
    /// # Errors
    /// 503 if that takes too long.
    pub(super) async fn rest(&mut self, body: &Bytes) -> Result<(), Refused> {
        match &self.edge.forwarder {
            Some(forwarder) => self.wait(forwarder, body, moving).await,
            None => Err(moving()),
        }
    }

    /// Holds the request for a moment, if there is a place for it and its time is not over.
    ///
    /// # Errors
    /// 503: what `why` says once its time is over.
    async fn wait(
        &mut self,
        forwarder: &'a Forwarder,
        body: &Bytes,
        why: impl FnOnce() -> Refused,
    ) -> Result<(), Refused> {
        let _held = hold(self.edge, &forwarder.hold, body)?;
        if self.began.elapsed() >= forwarder.patience() {
            return Err(why());
        }
        tokio::time::sleep(AGAIN).await;
        Ok(())
    }
}

fn unreachable(why: &dyn std::fmt::Display) -> Refused {
    let message = format!(
        "The replica that owns this session, or holds this call, cannot be reached ({why}); try again in a moment."
    );
    Refused::unavailable("owner_unreachable", message)
}

/// The process is about to end.
fn leaving() -> Refused {
    let message = "This replica is about to stop and forwards nothing any more; try again, at another one.";
    Refused::unavailable("draining", message)
}

/// A place among the requests that wait.
///
/// # Errors
/// 503 if there is none.
pub(super) fn hold<'a>(edge: &'a Edge, among: &'a Hold, body: &Bytes) -> Result<Held<'a>, Refused> {
    among.enter(body.len(), &edge.metrics).ok_or_else(|| {
        edge.metrics.cluster().forwarded(Forward::Refused);
        let message = "Too many requests wait for sessions of other replicas already; try again in a moment.";
        Refused::unavailable("too_many_held", message)
    })
}

fn moving() -> Refused {
    let message = "The session is on its way from one replica to another; try again in a moment.";
    Refused::unavailable("session_moving", message)
}
