//! Legacy requests without a session id, where the endpoint takes them (`sessions: optional`).
//!
//! They are served in an implicit session. Of such a caller nothing is known that it could be asked, no message can
//! reach it but on the stream of its own POST, and it cannot come back to that.

use std::sync::Arc;

use super::outlet::{Among, Outlet};
use super::request::Batching;
use super::seat::{Known, NoSeat};
use super::{Answer, Busy, Post, Relay};
use crate::protocol::capability::CapabilityClass;
use crate::protocol::envelope::Request;
use crate::protocol::revision::Revision;

// === impl Relay ===

impl Relay {
    /// Serves the requests of one POST that names no session and answers by the grace rule.
    ///
    /// # Errors
    /// [`NoSeat`]
    pub async fn sessionless(
        self: &Arc<Self>,
        post: Post<'_>,
        revision: Revision,
        requests: Vec<Request>,
        batching: Batching,
    ) -> Result<Answer, NoSeat> {
        let known = Known { revision, capabilities: "{}", class: CapabilityClass::NONE, client_info: None };
        let seat = self.seat(post.caller, post.endpoint, &known)?;
        let session = seat.session.clone();
        // The seat counts for the first.
        let others = requests.iter().skip(1).map(|_| session.run(self.in_flight).ok_or(Busy::Requests));
        let others = others.collect::<Result<Vec<_>, _>>()?;
        let outlet = Outlet::new(Among::Alone(self.sessions.plain()), post.form, post.request_id);
        Ok(self.serve_all(&session, post.endpoint, requests, outlet, batching, (seat, others)).await)
    }
}
