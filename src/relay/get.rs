//! What a GET opens: the standalone stream of a session, or any of its streams again.

use std::sync::Arc;

use super::{Relay, Session};
use crate::session::Reader;
use crate::session::event::EventId;
use crate::session::streams::ResumeError;

// === impl Relay ===

impl Relay {
    /// Opens the standalone stream of a session.
    pub fn open_get(self: &Arc<Self>, session: &Arc<Session>) -> Reader {
        let reader = session.streams.open_get();
        self.hear_servers_of_before(session);
        reader
    }

    /// Goes on with a stream behind the last event the caller saw.
    ///
    /// # Errors
    /// [`ResumeError`]
    pub fn resume(self: &Arc<Self>, session: &Arc<Session>, last: EventId) -> Result<Reader, ResumeError> {
        let resumed = session.streams.resume(last);
        self.metrics.stream_resumed(match &resumed {
            Ok(_) => "replayed",
            Err(ResumeError::Over) => "complete",
            Err(ResumeError::Unknown) => "unknown",
        });
        self.hear_servers_of_before(session);
        resumed
    }
}
