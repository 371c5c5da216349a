//! Links used by all sessions of a tenant at once (`isolation: shared`).
//!
//! Such a link offers the server no client capabilities: over stdio a server's question could not be attributed to
//! one of its callers. What it says outside calls is dropped and counted, but for change notices.

mod key;

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use key::{GroupKey, Names};

use super::era::asked_revision;
use super::links::{Connected, Held, Opened, Opening, reconfigured, wait_for};
use super::tasks::about_task;
use super::{Relay, Session, subscribe};
use crate::catalog::{CallerClass, Kind};
use crate::protocol::capability::CapabilityClass;
use crate::protocol::envelope::{Notification, Request};
use crate::protocol::error::Code;
use crate::protocol::method::Method;
use crate::protocol::object::Object;
use crate::protocol::revision::{Era, Revision};
use crate::session::Arrival;
use crate::session::log::EventKind;
use crate::settings::ServerSettings;
use crate::store::{Epoch, Flight, Registry, lock};
use crate::upstream::{Failure, Heard, Hello, Listener, Reply};

/// How many looks in a row must find no session of a tenant before its links are closed.
const LOOKS: usize = 3;

/// What servers behind shared links are told of their callers.
pub(super) const SHARED_CLASS: CallerClass =
    CallerClass { revision: Revision::LATEST_LEGACY, capabilities: CapabilityClass::NONE };

/// All shared links, by tenant and server.
#[derive(Default)]
pub(super) struct SharedLinks(Registry<GroupKey, Arc<Group>>);

/// Which link of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pick {
    /// The next in turn.
    Any,
    /// The one of this number, of those that one session has.
    Lane(usize),
    /// Always the same: what a server keeps for a link, such as subscriptions, is kept on this one.
    First,
}

/// The shared links of one tenant to one server.
struct Group {
    server: Arc<ServerSettings>,
    tenant: Option<Box<str>>,
    next: AtomicUsize,
    slots: Vec<Mutex<Slot>>,
    /// Cancelled once nobody uses it any more: a link that is still opening then is closed when it is open.
    over: CancellationToken,
    /// How many looks in a row found no session of the tenant.
    unused: AtomicUsize,
}

enum Slot {
    Vacant,
    Opening(Opening),
    Live(Held),
}

/// Hears a server behind a shared link.
struct SharedOrigin {
    relay: Weak<Relay>,
    tenant: Option<Box<str>>,
    server: Arc<ServerSettings>,
}

// === impl SharedLinks ===

impl SharedLinks {
    /// Takes leave of links to servers that are not meant to be here any more.
    pub(super) fn close_unless(&self, keep: impl Fn(&Arc<ServerSettings>) -> bool, relay: &Relay) {
        self.close_where(|group| !keep(&group.server), relay);
    }

    /// Takes leave of the links of tenants that have had no session for some looks in a row: how many tenants there
    /// are, their tokens decide.
    pub(super) fn close_unused(&self, relay: &Relay) {
        if self.0.is_empty() {
            return;
        }
        let sessions = relay.sessions.all();
        let tenants: HashSet<Option<&str>> = sessions.iter().map(|s| s.attached.tenant.as_deref()).collect();
        let unused = |group: &Group| {
            if tenants.contains(&group.tenant.as_deref()) {
                group.unused.store(0, Relaxed);
            }
            group.unused.fetch_add(1, Relaxed) >= LOOKS
        };
        self.close_where(unused, relay);
    }

    /// Takes the links to a server out of use without closing them.
    pub(super) fn retire(&self, server: &ServerSettings) {
        for group in self.0.values().into_iter().filter(|g| g.server.name == server.name) {
            self.0.remove(&*group as &dyn Names);
        }
    }

    /// The first link of a tenant to a server as it is configured now, if it is open.
    pub(super) fn in_use(&self, tenant: Option<&str>, server: &Arc<ServerSettings>) -> Option<Connected> {
        lock(self.group(tenant, server)?.slots.first()?).in_use()
    }

    fn group(&self, tenant: Option<&str>, server: &Arc<ServerSettings>) -> Option<Arc<Group>> {
        let group = self.0.get(&(tenant, server.name.as_str()) as &dyn Names)?;
        Arc::ptr_eq(&group.server, server).then_some(group)
    }

    fn close_where(&self, doomed: impl Fn(&Group) -> bool, relay: &Relay) {
        for group in self.0.values().into_iter().filter(|g| doomed(g)) {
            let names = &*group as &dyn Names;
            // A newer group may have taken its place since.
            if self.0.get(names).is_some_and(|now| Arc::ptr_eq(&now, &group)) {
                self.0.remove(names);
            }
            group.over.cancel();
            for slot in &group.slots {
                if let Slot::Live(held) = std::mem::replace(&mut *lock(slot), Slot::Vacant) {
                    held.close_on(&relay.tasks);
                }
            }
        }
    }

    /// The links of a tenant that are open.
    pub(super) fn live(&self, tenant: Option<&str>) -> Vec<(Arc<ServerSettings>, Connected)> {
        let groups = self.0.values().into_iter().filter(|g| g.tenant.as_deref() == tenant);
        groups.flat_map(|g| g.live().into_iter().map(move |(_, link)| (g.server.clone(), link))).collect()
    }
}

// === impl Group ===

impl Group {
    fn new(server: Arc<ServerSettings>, tenant: Option<Box<str>>, size: usize) -> Self {
        let slots = (0..size.max(1)).map(|_| Mutex::new(Slot::Vacant)).collect();
        Self {
            server,
            tenant,
            next: AtomicUsize::new(0),
            slots,
            over: CancellationToken::new(),
            unused: AtomicUsize::new(0),
        }
    }

    /// The links that are open, and their places.
    fn live(&self) -> Vec<(usize, Connected)> {
        self.slots.iter().enumerate().filter_map(|(at, slot)| Some((at, lock(slot).in_use()?))).collect()
    }
}

impl Names for Group {
    fn names(&self) -> (Option<&str>, &str) {
        (self.tenant.as_deref(), &self.server.name)
    }
}

// === impl Slot ===

impl Slot {
    /// The link, if it is open and not down.
    fn in_use(&self) -> Option<Connected> {
        match self {
            Self::Live(held) if !held.is_down() => Some(held.connected.clone()),
            _ => None,
        }
    }
}

// === impl Relay ===

impl Relay {
    pub(super) async fn shared_link(
        self: &Arc<Self>,
        tenant: Option<&str>,
        server: &Arc<ServerSettings>,
        size: usize,
        pick: Pick,
    ) -> Opened {
        let group = self.shared_group(tenant, server, size)?;
        let at = match pick {
            Pick::Any | Pick::Lane(_) => group.next.fetch_add(1, Relaxed) % group.slots.len(),
            Pick::First => 0,
        };
        let Some(slot) = group.slots.get(at) else { unreachable!("taken modulo the length") };
        let opening = {
            let mut slot = lock(slot);
            match &*slot {
                Slot::Live(held) if !held.is_down() => return Ok(held.connected.clone()),
                Slot::Opening(opening) if opening.is_under_way() => opening.clone(),
                _ => {
                    let (relay, group) = (self.clone(), group.clone());
                    let opening =
                        Flight::begin(&self.tasks, |_| async move { relay.open_shared(&group, at).await });
                    if let Slot::Live(dead) = std::mem::replace(&mut *slot, Slot::Opening(opening.clone())) {
                        dead.close_on(&self.tasks);
                    }
                    opening
                }
            }
        };
        wait_for(server, opening).await
    }

    fn shared_group(
        &self,
        tenant: Option<&str>,
        server: &Arc<ServerSettings>,
        size: usize,
    ) -> Result<Arc<Group>, Failure> {
        if let Some(group) = self.shared.group(tenant, server) {
            return Ok(group);
        }
        if !self.catalog.knows(server) {
            return Err(reconfigured(&server.name));
        }
        self.shared.close_unless(|s| s.name != server.name || Arc::ptr_eq(s, server), self);
        let new = || Arc::new(Group::new(server.clone(), tenant.map(Into::into), size));
        Ok(self.shared.0.get_or_insert_with(GroupKey::new(tenant, &server.name), new))
    }

    async fn open_shared(self: &Arc<Self>, group: &Group, at: usize) -> Opened {
        let (server, tenant) = (&group.server, &group.tenant);
        let hello = Hello { revision: asked_revision(server, SHARED_CLASS.revision), ..Hello::own() };
        let (relay, own) = (Arc::downgrade(self), server.clone());
        let origin: Arc<dyn Listener> = Arc::new(SharedOrigin { relay, tenant: tenant.clone(), server: own });
        let opened = async {
            let place = self.place(server, Arrival::New).await?;
            let known = self.learn(server).await?;
            let link = self.open_link(server, known, hello, Epoch::FIRST.0, origin.clone()).await?;
            Ok(Held { connected: Connected { link, origin }, place, settings: server.clone() })
        };
        let opened = opened.await;
        let connected = opened.as_ref().map(|held| held.connected.clone()).map_err(Clone::clone);
        if let Ok(connected) = &connected {
            self.restore_shared(tenant.as_deref(), server, connected, at).await;
        }
        let Some(slot) = group.slots.get(at) else { return connected };
        let mut slot = lock(slot);
        *slot = match opened {
            Ok(held) if group.over.is_cancelled() => {
                held.close_on(&self.tasks);
                Slot::Vacant
            }
            Ok(held) => Slot::Live(held),
            Err(_) => Slot::Vacant,
        };
        connected
    }

    /// Brings a new shared link to the state that its sessions asked for.
    async fn restore_shared(
        &self,
        tenant: Option<&str>,
        server: &ServerSettings,
        link: &Connected,
        at: usize,
    ) {
        // A modern server is told the level with each request, and is listened to apart from its link.
        if link.link.era() == Era::Modern {
            return;
        }
        let sessions = self.sessions_of(tenant);
        if let Some(level) = super::log_level::most_verbose(&sessions) {
            super::log_level::send(link, level).await;
        }
        if at == 0 {
            let uris = sessions.iter().flat_map(|s| subscribe::subscribed_at(s, &server.name));
            let uris: std::collections::BTreeSet<Arc<str>> = uris.collect();
            subscribe::renew_all(server, link, uris).await;
        }
    }

    /// The sessions of a tenant.
    pub(super) fn sessions_of(&self, tenant: Option<&str>) -> Vec<Arc<Session>> {
        self.sessions.all().into_iter().filter(|s| s.attached.tenant.as_deref() == tenant).collect()
    }
}

impl Listener for SharedOrigin {
    fn notification(&self, message: Notification) {
        let Some(relay) = self.relay.upgrade() else { return };
        let kinds: &'static [Kind] = match message.method() {
            Method::ToolsListChanged => &[Kind::Tools],
            Method::PromptsListChanged => &[Kind::Prompts],
            Method::ResourcesListChanged => &[Kind::Resources, Kind::Templates],
            Method::ResourcesUpdated => {
                let uri = message.params().and_then(|p| Object::parse(p).ok()?.text("uri"));
                if let Some(uri) = uri {
                    self.updated(&relay, &uri);
                }
                return;
            }
            Method::TaskStatus | Method::Progress => return self.about_task(&relay, &message),
            _ => return relay.metrics.unattributed(&self.server.name),
        };
        relay.shared_list_changed(self.tenant.as_deref(), &self.server, kinds);
    }

    fn request(&self, _message: Request, reply: Reply) {
        if let Some(relay) = self.relay.upgrade() {
            relay.metrics.unattributed(&self.server.name);
        }
        reply.refuse(
            Code::MethodNotFound.number(),
            "this link is shared by many callers; none of them can be asked",
        );
    }

    fn ask_era(&self, remembered: Era) -> BoxFuture<'static, Option<Era>> {
        let (relay, server) = (self.relay.upgrade(), self.server.clone());
        async move { relay?.doubt(&server, remembered).await }.boxed()
    }

    fn heard(&self, heard: Heard) {
        if let Some(relay) = self.relay.upgrade() {
            relay.catalog.note_heard(&self.server, heard);
        }
    }

    fn renewed(&self) {
        let Some(relay) = self.relay.upgrade() else { return };
        let (tenant, server) = (self.tenant.clone(), self.server.clone());
        relay.tasks.clone().spawn(async move {
            let group = relay.shared.group(tenant.as_deref(), &server);
            for (at, link) in group.iter().flat_map(|g| g.live()) {
                // Which of them began anew is not told; to do it for all is harmless.
                relay.restore_shared(tenant.as_deref(), &server, &link, at).await;
            }
            relay.shared_list_changed(tenant.as_deref(), &server, &Kind::ALL);
            for session in relay.sessions_of(tenant.as_deref()) {
                session.attached.listens.missed(&server.name);
            }
        });
    }
}

impl SharedOrigin {
    /// Tells the sessions of the tenant that want to hear of it.
    fn updated(&self, relay: &Relay, uri: &str) {
        for session in relay.sessions_of(self.tenant.as_deref()) {
            relay.tell_updated(&session, &self.server.name, uri);
        }
    }

    /// Tells the one session that began the task, as far as its caller can be told at all.
    fn about_task(&self, relay: &Relay, message: &Notification) {
        let told = relay.sessions_of(self.tenant.as_deref()).into_iter().any(|session| {
            let message = about_task(&session, &self.server.name, message);
            message.map(|m| session.streams.push_get(EventKind::Notification, m)).is_some()
        });
        if !told {
            relay.metrics.unattributed(&self.server.name);
        }
    }
}
