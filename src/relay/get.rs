//! What a GET opens: the standalone stream of a session, or any of its streams again.

use std::sync::Arc;

use super::{Busy, Relay, Session};
use crate::session::Reader;
use crate::session::event::EventId;
use crate::session::stream::StreamRole;
use crate::session::streams::ResumeError;

// === impl Relay ===

impl Relay {
    /// Opens the standalone stream of a session.
    ///
    /// # Errors
    /// [`Busy::Streams`]
    pub fn open_get(self: &Arc<Self>, session: &Arc<Session>) -> Result<Reader, Busy> {
        let place = self.sessions.stream_place(self.sessions.arrival(session))?;
        let reader = session.streams.open_get().holding(place);
        self.hear_servers_of_before(session);
        Ok(reader)
    }

    /// Goes on with a stream behind the last event the caller saw. The standalone one takes a place again, whatever
    /// `streams.max` says: it was let in before.
    ///
    /// # Errors
    /// [`ResumeError`]
    pub fn resume(self: &Arc<Self>, session: &Arc<Session>, last: EventId) -> Result<Reader, ResumeError> {
        let resumed = session.streams.resume(last).map(|reader| match reader.role() {
            StreamRole::Get => reader.holding(self.sessions.stream_place_again()),
            StreamRole::Post | StreamRole::Listen => reader,
        });
        self.metrics.stream_resumed(match &resumed {
            Ok(_) => "replayed",
            Err(ResumeError::Over) => "complete",
            Err(ResumeError::Unknown) => "unknown",
        });
        self.hear_servers_of_before(session);
        resumed
    }
}
