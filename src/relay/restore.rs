//! Bringing a new link to its session's state: log level and subscriptions (a reconnect is not recovery until
//! state is back).

use std::sync::Arc;

use super::ask::tell_cancelled;
use super::links::Connected;
use super::subscribe::{renew_all, subscribed_at};
use super::{Relay, Session};
use crate::protocol::revision::Era;
use crate::settings::ServerSettings;

// === impl Relay ===

impl Relay {
    /// Brings a new link to the session's state, and drops what was about the link before.
    pub(super) async fn restore(&self, session: &Session, server: &ServerSettings, link: &Connected) {
        session.attached.own_lists.forget(&server.name);
        for (id, place) in session.attached.asks.link_is_new(&server.name) {
            tell_cancelled(session, id, &place);
        }
        // A modern server is told the level with each request, and is listened to apart from its link.
        if link.link.era() == Era::Modern {
            return;
        }
        self.restore_level(session, link).await;
        let uris: std::collections::BTreeSet<Arc<str>> =
            subscribed_at(session, &server.name).into_iter().collect();
        renew_all(server, link, uris).await;
    }
}
