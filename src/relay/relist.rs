//! What follows when a server says that its lists have changed, or its link began anew.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::coalesce::Coalesced;
use super::links::hello_of;
use super::lists::class_for;
use super::reading::Reader;
use super::{Relay, Session};
use crate::catalog::endpoint::Part;
use crate::catalog::fetch::fetch;
use crate::catalog::{Endpoint, Kind, List, View};
use crate::settings::ServerSettings;
use crate::settings::servers::Isolation;
use crate::store::lock;

/// How long changes are gathered before the server is asked what they are.
const DEBOUNCE: Duration = Duration::from_millis(20);
/// The longest time between two readings of a list that never comes to rest.
const RESTLESS: Duration = Duration::from_secs(1);

/// A kind of list of a server, by its name; or of an endpoint, by its path.
pub(super) type ListKey = (Arc<str>, Kind);
/// The same for the links of one tenant.
pub(super) type TenantListKey = (Option<Box<str>>, Arc<str>, Kind);

/// Lists that a session's own links gave after they said that they had changed: what this session sees may be
/// another thing than what all of its class do.
#[derive(Default)]
pub(super) struct OwnLists {
    lists: Mutex<HashMap<ListKey, Arc<List>>>,
    /// How many there are: most sessions have none and must not pay for it.
    count: AtomicUsize,
    views: Mutex<HashMap<ListKey, Arc<View>>>,
    pub(super) relisting: Coalesced<ListKey>,
}

// === impl OwnLists ===

impl OwnLists {
    pub(super) fn are_any(&self) -> bool {
        self.count.load(Relaxed) > 0
    }

    pub(super) fn get(&self, server: &str, kind: Kind) -> Option<Arc<List>> {
        if !self.are_any() {
            return None;
        }
        lock(&self.lists).get(&(Arc::from(server), kind)).cloned()
    }

    /// The session's view of lists of its own.
    pub(super) fn view(&self, endpoint: &Endpoint, kind: Kind, parts: Vec<Part>) -> Arc<View> {
        let mut views = lock(&self.views);
        let key = (endpoint.path.clone(), kind);
        if let Some(view) = views.get(&key).filter(|view| view.is_of(&parts)) {
            return view.clone();
        }
        let view = Arc::new(View::new(endpoint, kind, parts));
        views.insert(key, view.clone());
        view
    }

    /// Whether what the session's own link gives of this kind is for the session alone: it gave something else
    /// before, or is about to.
    pub(super) fn concern(&self, server: &str, kind: Kind) -> bool {
        self.get(server, kind).is_some() || self.relisting.runs(&(Arc::from(server), kind))
    }

    fn put(&self, server: &str, kind: Kind, list: Arc<List>) {
        let mut lists = lock(&self.lists);
        lists.insert((Arc::from(server), kind), list);
        self.count.store(lists.len(), Relaxed);
    }

    /// Forgets the lists of one server: its link is another one now.
    pub(super) fn forget(&self, server: &str) {
        if !self.are_any() {
            return;
        }
        let mut lists = lock(&self.lists);
        lists.retain(|(name, _), _| **name != *server);
        self.count.store(lists.len(), Relaxed);
        lock(&self.views).clear();
    }

    fn remove(&self, server: &str, kind: Kind) {
        let mut lists = lock(&self.lists);
        lists.remove(&(Arc::from(server), kind));
        self.count.store(lists.len(), Relaxed);
    }
}

// === impl Relay ===

impl Relay {
    /// A server told this session that lists have changed: they are read again for it; others read when they next
    /// ask. However often the server says so, one reading runs at a time.
    pub(super) fn list_changed(
        self: &Arc<Self>,
        session: &Arc<Session>,
        server: &Arc<ServerSettings>,
        kinds: &'static [Kind],
    ) {
        self.catalog.expire(server, kinds);
        self.tell_peers(server);
        for kind in kinds {
            let key = (Arc::from(server.name.as_str()), *kind);
            if !session.attached.own_lists.relisting.begin(key.clone()) {
                continue;
            }
            let (relay, session, server) = (self.clone(), session.clone(), server.clone());
            self.tasks.spawn(async move {
                let mut pause = DEBOUNCE;
                loop {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(RESTLESS);
                    tokio::select! {
                        () = relay.relist(&session, &server, *kind) => {}
                        () = session.ended.cancelled() => {}
                    }
                    if !session.attached.own_lists.relisting.again(&key) {
                        return;
                    }
                }
            });
        }
    }

    /// Reads a list again over the session's own link, for this session.
    pub(super) async fn relist(
        self: &Arc<Self>,
        session: &Arc<Session>,
        server: &Arc<ServerSettings>,
        kind: Kind,
    ) {
        let shelf = self.catalog.of(server).shelf(class_for(session, server));
        // What nobody has seen yet need not be seen again.
        let Some(shelved) = shelf.last_good(kind) else { return };
        let Some(connected) = session.attached.links.live(server) else { return };
        let hello = hello_of(session, server);
        let list =
            fetch(&connected.link, server, kind, &hello, session.revision(), connected.origin.clone()).await;
        let Ok(list) = list else { return };
        if list.digest == shelved.digest {
            session.attached.own_lists.remove(&server.name, kind);
        } else {
            session.attached.own_lists.put(&server.name, kind, Arc::new(list));
        }
        self.tell_changes(session);
    }

    /// The same for a shared link, whose list is the same for all, or for all of a class.
    pub(super) fn shared_list_changed(
        self: &Arc<Self>,
        tenant: Option<&str>,
        server: &Arc<ServerSettings>,
        kinds: &'static [Kind],
    ) {
        self.catalog.expire(server, kinds);
        self.tell_peers(server);
        for kind in kinds {
            let key = (tenant.map(Into::into), Arc::from(server.name.as_str()), *kind);
            if !self.relisting.begin(key.clone()) {
                continue;
            }
            let (relay, server) = (self.clone(), server.clone());
            let tenant: Option<Box<str>> = tenant.map(Into::into);
            self.tasks.spawn(async move {
                let mut pause = DEBOUNCE;
                loop {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(RESTLESS);
                    let readers = relay.readers_of_shared(tenant.as_deref(), &server, *kind);
                    let reads =
                        readers.iter().map(|reader| relay.read_list(reader, &server, *kind).outcome());
                    futures_util::future::join_all(reads).await;
                    if !relay.relisting.again(&key) {
                        return;
                    }
                }
            });
        }
    }

    /// For whom a list behind a shared link is read again: a modern server tells each class what fits that class, so
    /// one session of each that was shown the list, or listens to it, reads it.
    fn readers_of_shared(&self, tenant: Option<&str>, server: &ServerSettings, kind: Kind) -> Vec<Reader> {
        if let Isolation::Shared { .. } = server.isolation {
            return vec![Reader::Tenant(tenant.map(Into::into))];
        }
        let mut classes = HashSet::new();
        let sees = |session: &Session| {
            let endpoint = self.endpoint(&session.binding.endpoint);
            endpoint.is_some_and(|endpoint| endpoint.servers.iter().any(|s| s.name == server.name))
        };
        let mut sessions = self.sessions_of(tenant);
        let wants = |s: &Session| s.attached.was_shown(kind) || s.attached.listens.hear(kind);
        sessions.retain(|s| wants(s) && sees(s) && classes.insert(class_for(s, server)));
        sessions.into_iter().map(Reader::Session).collect()
    }
}
