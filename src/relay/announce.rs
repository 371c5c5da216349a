//! Telling callers that what they would see has changed: only when it has, once, and not too often.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{Relay, Session, subscribe};
use crate::catalog::Kind;
use crate::protocol::revision::Era;
use crate::session::notices::Notice;

/// How long changes are gathered before sessions are looked at.
const DEBOUNCE: Duration = Duration::from_millis(50);

// === impl Relay ===

impl Relay {
    /// Watches the catalog until `stop`; run it on a task.
    pub async fn announce_until(self: Arc<Self>, stop: CancellationToken) {
        let mut changes = self.catalog.changes();
        loop {
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return },
                () = stop.cancelled() => return,
            }
            tokio::time::sleep(DEBOUNCE).await;
            changes.mark_unchanged();
            for session in self.sessions.all() {
                self.tell_changes(&session);
            }
        }
    }

    /// Notes for one session that a resource changed, by the server's own URI, if it wants to hear of it.
    pub(super) fn tell_updated(&self, session: &Session, server: &str, own: &str) {
        if subscribe::is_subscribed(session, server, own) {
            let uri = subscribe::callers_uri(session, server, own);
            session.streams.notice(Notice::Updated(uri));
        }
        session.attached.listens.all().iter().for_each(|open| open.updated(server, own));
    }

    /// Notes for one session what differs from what it was last shown.
    pub(super) fn tell_changes(self: &Arc<Self>, session: &Arc<Session>) {
        let Some(endpoint) = self.endpoint(&session.binding.endpoint) else { return };
        for open in session.attached.listens.all() {
            for kind in Kind::ALL.into_iter().filter(|kind| open.hears(*kind)) {
                let digest = match open.counted() {
                    Some(servers) => self.digest_of(session, &endpoint, kind, &servers),
                    None => self.known_view(session, &endpoint, kind).digest(),
                };
                open.shows(kind, digest);
            }
        }
        // A modern caller hears only what it listens to; what it was shown stays what it knows.
        if session.revision().era() == Era::Modern {
            return;
        }
        for kind in Kind::ALL {
            if !session.attached.was_shown(kind) {
                continue;
            }
            self.want_shown(session, &endpoint, kind);
            let view = self.known_view(session, &endpoint, kind);
            if session.attached.differs(kind, view.digest()) {
                session.streams.notice(match kind {
                    Kind::Tools => Notice::Tools,
                    Kind::Prompts => Notice::Prompts,
                    Kind::Resources | Kind::Templates => Notice::Resources,
                });
            }
        }
    }
}
