//! Taking new settings in while sessions go on.
//!
//! A server that is configured as before keeps its identity, and nobody who uses it notices anything. The links to
//! one that is gone, or configured anew, are closed everywhere; callers are told of what they see now.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::reading::Reader;
use super::{Relay, Session, by_path};
use crate::catalog::{Endpoint, Kind};
use crate::session::EndReason;
use crate::settings::{ServerSettings, Settings};
use crate::store::lock;

// === impl Relay ===

impl Relay {
    /// Replaces endpoints, names and servers; the rest of `settings` is not the relay's to change.
    pub async fn reload(self: &Arc<Self>, settings: &Settings) {
        let mut settings = settings.clone();
        let before: Vec<_> = self.catalog.all().iter().map(|shelves| shelves.server().clone()).collect();
        for server in &mut settings.servers {
            if let Some(same) = before.iter().find(|s| ***s == **server) {
                *server = same.clone();
            }
        }
        let servers = settings.servers.clone();
        let stays = |server: &Arc<ServerSettings>| servers.iter().any(|s| Arc::ptr_eq(s, server));
        let gone: Vec<_> = before.iter().filter(|s| !stays(s)).collect();
        for server in &gone {
            tracing::info!(server = %server.name, "a server was removed or configured anew; its links are closed");
        }

        let endpoints = self.kept_endpoints(by_path(&settings));
        self.metrics.register(servers.iter().map(|s| s.name.as_str()), endpoints.keys().map(|path| &**path));
        self.endpoints.store(Arc::new(endpoints));
        self.catalog.replace_servers(&servers);
        gone.iter().for_each(|server| self.children.forget(&server.name));
        self.load_catalog().await;
        self.shared.close_unless(stays, self);
        for session in self.sessions.all() {
            if self.endpoint(&session.binding.endpoint).is_none() {
                self.sessions.end(&session, EndReason::Reconfigured).await;
                continue;
            }
            self.leave_servers(&session, stays);
        }
        self.meet_servers();
        self.catalog.note_change();
    }

    /// Endpoints that are as before stay the very same, with the views they made.
    fn kept_endpoints(
        &self,
        mut endpoints: HashMap<Arc<str>, Arc<Endpoint>>,
    ) -> HashMap<Arc<str>, Arc<Endpoint>> {
        for (path, endpoint) in &mut endpoints {
            if let Some(before) = self.endpoint(path).filter(|before| before.is_as(endpoint)) {
                *endpoint = before;
            }
        }
        endpoints
    }

    /// Takes a session's leave of servers that do not stay.
    fn leave_servers(&self, session: &Session, stays: impl Fn(&Arc<ServerSettings>) -> bool) {
        for server in session.attached.links.close_unless(stays, &self.tasks) {
            session.attached.own_lists.forget(&server);
        }
        let known = |name: &str| self.catalog.named(name).is_some();
        let gone: Vec<_> =
            lock(&session.attached.subscriptions).extract_if(.., |_, s| !known(&s.server)).collect();
        // What they held is let go of without the lock.
        drop(gone);
    }

    /// Reads what callers will see of new servers, so that they can be told: one session of each class does. A
    /// session that subscribed to something there needs a link of its own again.
    fn meet_servers(self: &Arc<Self>) {
        let mut met = HashSet::new();
        for session in self.sessions.all() {
            let Some(endpoint) = self.endpoint(&session.binding.endpoint) else { continue };
            for server in &endpoint.servers {
                if !super::subscribe::subscribed_at(&session, &server.name).is_empty() {
                    self.hear_again(&session, server.clone());
                }
                let class = super::lists::class_for(&session, server);
                let shelf = self.catalog.of(server).shelf(class);
                for kind in Kind::ALL {
                    let unknown = shelf.last_good(kind).is_none();
                    if unknown
                        && session.attached.was_shown(kind)
                        && met.insert((server.name.clone(), class, kind))
                    {
                        self.read_list(&Reader::for_session(&session, server), server, kind);
                    }
                }
            }
        }
    }
}
