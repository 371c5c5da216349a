//! A request's seat in an implicit session: the session lives at least as long as the seat is held.
//!
//! A principal that may be anybody (anonymous, from anywhere) shares a session with nobody: it ends with its seat.

use std::sync::Arc;

use super::extensions::admitted;
use super::{Busy, Caller, Claim, Conversation, Relay, Session, Unplaced};
use crate::catalog::Endpoint;
use crate::protocol::capability::CapabilityClass;
use crate::protocol::revision::Revision;
use crate::session::implicit::ImplicitKey;
use crate::session::live::{Greeting, Running};
use crate::session::sessions::OpenError;
use crate::session::{Binding, EndReason};
use crate::store::Epoch;

/// A request's seat in an implicit session.
pub(super) struct Seat {
    pub(super) session: Arc<Session>,
    _running: Running<Conversation>,
    /// Ends the session with the seat.
    alone: Option<Arc<Relay>>,
}

/// Why a request without a session id is not served.
#[derive(Debug, thiserror::Error)]
pub enum NoSeat {
    /// Its implicit session runs as many as it may.
    #[error(transparent)]
    Busy(#[from] Busy),
    /// There is no place for its implicit session.
    #[error(transparent)]
    NoPlace(#[from] OpenError),
    /// It cannot be said where it belongs.
    #[error(transparent)]
    Unplaced(#[from] Unplaced),
}

/// What is known of a caller without a session id.
pub(super) struct Known<'a> {
    pub(super) revision: Revision,
    /// A raw JSON object.
    pub(super) capabilities: &'a str,
    /// What they amount to.
    pub(super) class: CapabilityClass,
    /// A raw JSON object.
    pub(super) client_info: Option<&'a str>,
}

// === impl Seat ===

impl Seat {
    /// Whether its session ends with it.
    pub(super) fn is_alone(&self) -> bool {
        self.alone.is_some()
    }
}

// === impl Known ===

impl<'a> Known<'a> {
    /// What a modern request says of its caller.
    pub(super) fn of(claim: &'a Claim) -> Self {
        let Claim { revision, capabilities, class, client_info, .. } = claim;
        Self { revision: *revision, capabilities, class: *class, client_info: client_info.as_deref() }
    }
}

// === impl Relay ===

impl Relay {
    /// Takes a seat in the caller's implicit session, which is opened if there is none.
    ///
    /// # Errors
    /// [`NoSeat`]
    pub(super) fn seat(
        self: &Arc<Self>,
        caller: &Caller,
        endpoint: &Endpoint,
        known: &Known<'_>,
    ) -> Result<Seat, NoSeat> {
        let class = known.class;
        let binding = Binding { principal: caller.binding, endpoint: endpoint.path.clone() };
        let alone = caller.is_anybody().then(|| self.sessions.alone());
        let key = ImplicitKey { binding, revision: known.revision, class, alone };
        loop {
            let session = self.sessions.implicit(&key, caller.cap, || {
                let unknown = r#"{"name":"unknown","version":"0"}"#;
                let greeting = Greeting {
                    revision: known.revision,
                    params: "{}".into(),
                    capabilities: admitted(endpoint, known.capabilities),
                    client_info: known.client_info.unwrap_or(unknown).into(),
                    class,
                };
                let tenant = caller.principal.tenant.clone();
                let room = self.parked.room.of_session(tenant.clone(), self.in_flight);
                let conversation = Conversation::new(tenant, Epoch::FIRST.0, self.tasks.clone());
                (greeting, conversation.with_room(room))
            })?;
            if self.sessions.end_if_lost(&session) {
                continue;
            }
            match session.run(self.in_flight) {
                Some(running) => {
                    let alone = key.alone.map(|_| self.clone());
                    return Ok(Seat { session, _running: running, alone });
                }
                // It ended between finding and taking; the next look finds another.
                None if session.is_retired() => {}
                None => return Err(Busy::Requests.into()),
            }
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(relay) = &self.alone {
            relay.sessions.end_implicit(&self.session, EndReason::CallOver);
        }
    }
}
