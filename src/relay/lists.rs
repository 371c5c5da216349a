//! The lists a caller sees: from the shelf where they are known, read from servers where they are not.

use std::sync::Arc;

use super::deaf::Deaf;
use super::shared::SHARED_CLASS;
use super::{Relay, Session};
use crate::catalog::fetch::fetch;
use crate::catalog::shelf::Freshness;
use crate::catalog::{CallerClass, Endpoint, Kind, List, View};
use crate::protocol::edit::Text;
use crate::settings::ServerSettings;
use crate::settings::servers::Isolation;
use crate::store::lock;
use crate::upstream::Failure;

/// How eager a look at a server's list is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// Take what is known; read what never was, within `timeouts.list`.
    Known,
    /// Read again, within `timeouts.list`: a name that nobody knows was asked for.
    Again,
}

// === impl Relay ===

impl Relay {
    /// What the caller of `session` sees of one kind at `endpoint`.
    pub(super) async fn view(
        self: &Arc<Self>,
        session: &Arc<Session>,
        endpoint: &Endpoint,
        kind: Kind,
        look: Look,
    ) -> Arc<View> {
        let known = endpoint.servers.iter().map(|server| self.known_list(session, server, kind));
        let mut lists: Vec<Option<Arc<List>>> = known.collect();
        let missing =
            endpoint.servers.iter().zip(&mut lists).filter(|(_, l)| look == Look::Again || l.is_none());
        let reads: Vec<_> = missing
            .map(|(server, list)| async move {
                if let Some(read) = self.read_within_bounds(session, server, kind).await {
                    *list = Some(read);
                }
            })
            .collect();
        futures_util::future::join_all(reads).await;
        let servers = endpoint.servers.iter().cloned();
        let lists = servers.zip(lists).filter_map(|(server, list)| Some((server, list?))).collect();
        endpoint.view(class_of(session), kind, lists)
    }

    /// What the caller would see now, from what is known; asks no server.
    pub(super) fn known_view(&self, session: &Session, endpoint: &Endpoint, kind: Kind) -> Arc<View> {
        let list = |server: &Arc<ServerSettings>| {
            let list = session.attached.own_list(&server.name, kind).or_else(|| {
                let shelf = self.catalog.shelf(&server.name, class_for(session, server));
                shelf.get(kind).map(|shelved| shelved.list)
            });
            list.map(|list| (server.clone(), list))
        };
        endpoint.view(class_of(session), kind, endpoint.servers.iter().filter_map(list).collect())
    }

    /// Answers a list request.
    pub(super) async fn list(
        self: &Arc<Self>,
        session: &Arc<Session>,
        endpoint: &Endpoint,
        kind: Kind,
        id: &str,
    ) -> Text {
        let view = self.view(session, endpoint, kind, Look::Known).await;
        session.attached.show(kind, view.digest());
        let head = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#);
        Text { head: head.into(), tail: view.result_and_brace().clone() }
    }

    fn known_list(
        self: &Arc<Self>,
        session: &Arc<Session>,
        server: &Arc<ServerSettings>,
        kind: Kind,
    ) -> Option<Arc<List>> {
        if let Some(own) = session.attached.own_list(&server.name, kind) {
            return Some(own);
        }
        let shelved = self.catalog.shelf(&server.name, class_for(session, server)).get(kind)?;
        if shelved.freshness == Freshness::LastGood {
            let (relay, session, server) = (self.clone(), session.clone(), server.clone());
            self.tasks.spawn(async move { relay.read(&session, &server, kind, Freshness::LastGood).await });
        }
        Some(shelved.list)
    }

    /// Reads a server's list, but waits for it no longer than `timeouts.list`; the reading goes on regardless.
    async fn read_within_bounds(
        self: &Arc<Self>,
        session: &Arc<Session>,
        server: &Arc<ServerSettings>,
        kind: Kind,
    ) -> Option<Arc<List>> {
        let patience = server.timeouts.list;
        let reading = {
            let (relay, session, server) = (self.clone(), session.clone(), server.clone());
            self.tasks.spawn(async move { relay.read(&session, &server, kind, Freshness::Fresh).await })
        };
        let list =
            tokio::time::timeout(patience, reading).await.ok().and_then(Result::ok).and_then(Result::ok);
        if list.is_none() {
            self.metrics.list_failed(&server.name);
        }
        list
    }

    /// Reads a server's list into the shelf, one reader at a time; `seen` is how fresh the shelf was found.
    async fn read(
        self: &Arc<Self>,
        session: &Arc<Session>,
        server: &Arc<ServerSettings>,
        kind: Kind,
        seen: Freshness,
    ) -> Result<Arc<List>, Failure> {
        let class = class_for(session, server);
        let shelf = self.catalog.shelf(&server.name, class);
        let before = shelf.get(kind).map(|s| s.list);
        let _one_reader = shelf.fetching(kind).lock().await;
        // Another reader may have done it while this one waited.
        if let Some(now) = shelf.get(kind)
            && now.freshness == Freshness::Fresh
            && (seen == Freshness::LastGood || !before.is_some_and(|b| Arc::ptr_eq(&b, &now.list)))
        {
            return Ok(now.list);
        }
        let link = self.link(session, server).await?;
        let read = fetch(&link, server, self.catalog.names(), kind, Arc::new(Deaf)).await;
        match read {
            Ok(list) => Ok(self.catalog.put(&server.name, class, kind, list)),
            Err(failure) => {
                tracing::warn!(server = %server.name, layer = failure.layer.as_str(), "{}", failure.message);
                Err(failure)
            }
        }
    }

    /// A server told this session that lists have changed: read them again for it; others read when they next ask.
    pub(super) fn list_changed(
        self: &Arc<Self>,
        session: &Arc<Session>,
        server: &Arc<ServerSettings>,
        kinds: &'static [Kind],
    ) {
        let (relay, session, server) = (self.clone(), session.clone(), server.clone());
        self.tasks.spawn(async move {
            for kind in kinds {
                relay.relist(&session, &server, *kind).await;
            }
        });
    }

    async fn relist(self: &Arc<Self>, session: &Arc<Session>, server: &Arc<ServerSettings>, kind: Kind) {
        let shelf = self.catalog.shelf(&server.name, class_for(session, server));
        let Some(shelved) = shelf.get(kind) else { return };
        let Ok(link) = self.link(session, server).await else { return };
        let Ok(list) = fetch(&link, server, self.catalog.names(), kind, Arc::new(Deaf)).await else { return };
        let list = if list.digest == shelved.list.digest { shelved.list } else { Arc::new(list) };
        lock(&session.attached.own_lists).insert((server.name.as_str().into(), kind), list);
        shelf.expire(kind);
        self.tell_changes(session);
    }

    /// The same for a shared link, whose list is the same for all.
    pub(super) fn shared_list_changed(
        self: &Arc<Self>,
        tenant: Option<&str>,
        server: &Arc<ServerSettings>,
        kinds: &'static [Kind],
    ) {
        let Isolation::Shared { size } = server.isolation else { return };
        let (relay, server) = (self.clone(), server.clone());
        let tenant: Option<Box<str>> = tenant.map(Into::into);
        self.tasks.spawn(async move {
            let Ok(link) = relay.shared_link(tenant.as_deref(), &server, size).await else { return };
            for kind in kinds {
                if let Ok(list) = fetch(&link, &server, relay.catalog.names(), *kind, Arc::new(Deaf)).await {
                    relay.catalog.put(&server.name, SHARED_CLASS, *kind, list);
                }
            }
        });
    }
}

/// The class of a session's caller.
pub(super) fn class_of(session: &Session) -> CallerClass {
    CallerClass { revision: session.revision(), capabilities: session.greeting.class }
}

/// The class under which a server's lists are kept for a session.
fn class_for(session: &Session, server: &ServerSettings) -> CallerClass {
    match server.isolation {
        Isolation::Session => class_of(session),
        Isolation::Shared { .. } => SHARED_CLASS,
    }
}
