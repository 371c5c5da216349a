//! What an adopted session's servers say outside its calls is heard again.
//!
//! Adoption opens no link by itself; one opens when it is first needed. Two things need one at once: resource
//! subscriptions, and a caller who listens on its GET, where its servers were heard before.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::shared::Pick;
use super::{Relay, Session};
use crate::catalog::Endpoint;
use crate::protocol::revision::Era;
use crate::settings::ServerSettings;
use crate::store::lock;

// === impl Relay ===

impl Relay {
    /// Goes on, in the background, with the sessions that an earlier owner had at HTTP servers, if the caller listens:
    /// their standalone streams are taken up where they stood.
    pub(super) fn hear_servers_of_before(self: &Arc<Self>, session: &Arc<Session>) {
        let known: Vec<Arc<ServerSettings>> = {
            let before = lock(&session.attached.before);
            // Nearly always: no earlier owner, or all is taken up.
            if before.is_empty() || !session.streams.get_is_open() {
                return;
            }
            let begun = before.iter().filter(|(_, state)| state.session.is_some());
            begun.filter_map(|(name, _)| self.catalog.server(name)).collect()
        };
        for server in known {
            self.hear_again(session, server);
        }
    }

    /// Makes the subscriptions of an adopted session again, in the background: a link to each of their servers opens for
    /// that.
    pub(super) async fn subscribe_again(
        self: &Arc<Self>,
        session: &Arc<Session>,
        endpoint: &Arc<Endpoint>,
        uris: BTreeSet<String>,
    ) {
        for server in self.remember_all(session, endpoint, uris).await {
            self.hear_again(session, server);
        }
    }

    /// Opens the link to a server. A new one is brought to the state of its session, subscriptions included; a modern
    /// server is listened to apart from it.
    pub(super) fn hear_again(self: &Arc<Self>, session: &Arc<Session>, server: Arc<ServerSettings>) {
        let (relay, session) = (self.clone(), session.clone());
        self.tasks.spawn(async move {
            // A failure is logged there.
            let opened = relay.link(&session, &server, Pick::First).await;
            if opened.is_ok_and(|connected| connected.link.era() == Era::Modern) {
                relay.listen_again(&session, &server);
            }
        });
    }
}
