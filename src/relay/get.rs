//! What a GET opens: the standalone stream of a session, or any of its streams again.
//!
//! Who listens to an adopted session hears its servers at once, not only after the next call: the sessions that it has at
//! them are gone on with as soon as its standalone stream is open.

use std::sync::Arc;

use super::shared::Pick;
use super::{Relay, Session};
use crate::session::Reader;
use crate::session::event::EventId;
use crate::session::streams::ResumeError;
use crate::store::lock;

// === impl Relay ===

impl Relay {
    /// Opens the standalone stream of a session.
    pub fn open_get(self: &Arc<Self>, session: &Arc<Session>) -> Reader {
        let reader = session.streams.open_get();
        self.hear_servers(session);
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
        if resumed.is_ok() && session.streams.get_is_open() {
            self.hear_servers(session);
        }
        resumed
    }

    /// Opens links to the servers that an earlier owner had, in the background. One that fails is opened by the next
    /// call.
    fn hear_servers(self: &Arc<Self>, session: &Arc<Session>) {
        let before: Vec<_> = lock(&session.attached.before).keys().cloned().collect();
        for server in before.iter().filter_map(|name| self.catalog.server(name)) {
            let (relay, session) = (self.clone(), session.clone());
            self.tasks.spawn(async move { drop(relay.link(&session, &server, Pick::First).await) });
        }
    }
}
