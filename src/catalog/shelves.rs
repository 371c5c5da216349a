//! The lists that servers gave, kept for all callers of a class, and what servers said of themselves.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use tokio::sync::watch;

use super::hints::{Hints, Scope};
use super::kind::Kind;
use super::known_era::KnownEra;
use super::list::List;
use super::pattern::admits;
use super::shelf::{CallerClass, Shelf};
use crate::protocol::revision::Era;
use crate::settings::ServerSettings;
use crate::store::{Registry, lock};
use crate::telemetry::Metrics;
use crate::upstream::{Heard, Introduction};

/// What is known of all servers.
pub struct Catalog {
    servers: Registry<Arc<str>, Arc<Shelves>>,
    /// Counts up whenever callers may see something else than before.
    generation: AtomicU64,
    changed: watch::Sender<u64>,
    metrics: Arc<Metrics>,
}

/// What is known of one server.
#[derive(Debug)]
pub struct Shelves {
    server: Arc<ServerSettings>,
    by_class: Mutex<HashMap<CallerClass, Arc<Shelf>>>,
    introduction: Mutex<Option<Arc<Introduction>>>,
    /// Which era it speaks, unless that is in doubt (T66).
    era: KnownEra,
    /// Whether it can say anything outside calls, once that has turned out.
    heard: watch::Sender<Option<Heard>>,
    unsaved: AtomicBool,
    late: AtomicBool,
}

// === impl Catalog ===

impl Catalog {
    /// One that knows nothing yet of these servers.
    pub fn new(servers: &[Arc<ServerSettings>], metrics: Arc<Metrics>) -> Self {
        let (changed, _) = watch::channel(0);
        let catalog = Self { servers: Registry::new(), generation: AtomicU64::new(0), changed, metrics };
        catalog.replace_servers(servers);
        catalog
    }

    /// Forgets what is known of servers that are not among these or are reached in another way, and takes new
    /// ones in.
    pub fn replace_servers(&self, servers: &[Arc<ServerSettings>]) {
        for gone in self.all() {
            if !servers.iter().any(|s| s.name == gone.server.name) {
                self.servers.remove(gone.server.name.as_str());
            }
        }
        for server in servers {
            let before = self.servers.get(server.name.as_str());
            if before.as_ref().is_some_and(|b| Arc::ptr_eq(&b.server, server)) {
                continue;
            }
            let shelves = Arc::new(Shelves::new(server.clone()));
            // Another limit in time or another filter does not change what the server says.
            if let Some(before) = before.filter(|b| b.server.transport == server.transport) {
                shelves.inherit(&before);
            }
            self.servers.insert(server.name.as_str().into(), shelves);
        }
        self.note_change();
    }

    /// What is known of the server of this name.
    pub fn named(&self, server: &str) -> Option<Arc<Shelves>> {
        self.servers.get(server)
    }

    /// What is known of `server`. For one that is not configured (any more) it is something of its own that nobody
    /// else sees.
    pub fn of(&self, server: &Arc<ServerSettings>) -> Arc<Shelves> {
        let known = self.servers.get(server.name.as_str()).filter(|s| Arc::ptr_eq(&s.server, server));
        known.unwrap_or_else(|| Arc::new(Shelves::new(server.clone())))
    }

    /// Whether this very server is configured.
    pub fn knows(&self, server: &Arc<ServerSettings>) -> bool {
        self.servers.get(server.name.as_str()).is_some_and(|s| Arc::ptr_eq(&s.server, server))
    }

    /// The server of this name, as it is configured now.
    pub fn server(&self, name: &str) -> Option<Arc<ServerSettings>> {
        self.servers.get(name).map(|shelves| shelves.server.clone())
    }

    /// What is known of each server.
    pub fn all(&self) -> Vec<Arc<Shelves>> {
        self.servers.values()
    }

    /// Puts a list that a server just gave in its place; `changes` as in [`Shelf::put`].
    pub fn put(
        &self,
        shelves: &Shelves,
        class: CallerClass,
        kind: Kind,
        list: List,
        changes: u64,
    ) -> Arc<List> {
        let server = &shelves.server;
        if kind == Kind::Tools {
            let offered = list.items.iter().filter(|i| admits(&server.include, &server.exclude, &i.own));
            self.metrics.tools_listed(&server.name, offered.count(), list.quarantined);
        }
        shelves.late.store(false, Relaxed);
        // What an era does not know it does not say.
        let modern = shelves.era.get() == Some(Era::Modern);
        let hints = modern.then(|| list.hints.unwrap_or_default());
        let list = shelves.alike(kind, list);
        let mut differs = shelves.shelf(class).put(kind, &list, hints, changes);
        if let Some(hints) = hints.filter(|h| h.scope == Scope::Public) {
            differs |= shelves.share(class, kind, &list, hints);
        }
        if differs {
            shelves.unsaved.store(true, Relaxed);
            self.note_change();
        }
        list
    }

    /// Remembers what a server said of itself. A server that says something new has lists that may be new too.
    pub fn introduce(&self, server: &Arc<ServerSettings>, introduction: &Arc<Introduction>) {
        let shelves = self.of(server);
        let era = introduction.revision.era();
        shelves.era.set(Some(era));
        self.metrics.server_era(&server.name, era);
        let before = lock(&shelves.introduction).replace(introduction.clone());
        let same = before.is_some_and(|before| {
            let text = |i: &Introduction| {
                (i.revision.era(), i.capabilities.clone(), i.server_info.clone(), i.instructions.clone())
            };
            text(&before) == text(introduction)
        });
        if !same {
            shelves.expire(&Kind::ALL);
            shelves.unsaved.store(true, Relaxed);
            self.note_change();
        }
    }

    /// What a server last said of itself, if it ever did.
    pub fn introduction(&self, server: &Arc<ServerSettings>) -> Option<Arc<Introduction>> {
        self.of(server).introduction()
    }

    /// Which era a server speaks, if that is known.
    pub fn era(&self, server: &Arc<ServerSettings>) -> Option<Era> {
        self.of(server).era.get()
    }

    /// Remembers which era a server speaks, or that it is in doubt: it is asked again then.
    pub fn note_era(&self, server: &Arc<ServerSettings>, era: Option<Era>) {
        self.of(server).era.set(era);
    }

    /// Remembers whether a legacy server behind HTTP can say anything outside calls.
    pub fn note_heard(&self, server: &Arc<ServerSettings>, heard: Heard) {
        if self.of(server).heard.send_replace(Some(heard)) != Some(heard) {
            self.note_change();
        }
    }

    /// The same, if it has turned out.
    pub fn heard_now(&self, server: &Arc<ServerSettings>) -> Option<Heard> {
        *self.of(server).heard.borrow()
    }

    /// The same, as soon as it has turned out.
    pub async fn heard(&self, server: &Arc<ServerSettings>) -> Heard {
        let shelves = self.of(server);
        let mut heard = shelves.heard.subscribe();
        let turned_out = heard.wait_for(Option::is_some).await;
        // The sender is the shelves' own, so it is there.
        turned_out.ok().and_then(|heard| *heard).unwrap_or(Heard::OnStream)
    }

    /// The server said that its lists changed, or may have.
    pub fn expire(&self, server: &Arc<ServerSettings>, kinds: &[Kind]) {
        self.of(server).expire(kinds);
        // Views look at their lists again, though they are still the same ones.
        self.generation.fetch_add(1, Relaxed);
    }

    /// Counts up whenever callers may see something else than before.
    pub fn generation(&self) -> u64 {
        self.generation.load(Relaxed)
    }

    /// Tells when callers may see something else than before.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Callers may see something else than before.
    pub fn note_change(&self) {
        self.generation.fetch_add(1, Relaxed);
        self.changed.send_modify(|n| *n += 1);
    }
}

// === impl Shelves ===

impl Shelves {
    fn new(server: Arc<ServerSettings>) -> Self {
        Self {
            server,
            by_class: Mutex::default(),
            introduction: Mutex::default(),
            era: KnownEra::default(),
            heard: watch::Sender::new(None),
            unsaved: AtomicBool::new(false),
            late: AtomicBool::new(false),
        }
    }

    /// The server.
    pub fn server(&self) -> &Arc<ServerSettings> {
        &self.server
    }

    /// The lists for callers of `class`; a new class begins with what is the same for all.
    pub fn shelf(&self, class: CallerClass) -> Arc<Shelf> {
        let mut by_class = lock(&self.by_class);
        if let Some(shelf) = by_class.get(&class) {
            return shelf.clone();
        }
        let shelf = Arc::new(Shelf::default());
        for (_, other) in by_class.iter().filter(|(other, _)| other.revision == class.revision) {
            shelf.take_public(other);
        }
        by_class.insert(class, shelf.clone());
        shelf
    }

    /// The lists for all classes.
    pub fn by_class(&self) -> Vec<(CallerClass, Arc<Shelf>)> {
        lock(&self.by_class).iter().map(|(class, shelf)| (*class, shelf.clone())).collect()
    }

    /// Gives a list that is the same for all to the other classes of callers of the same revision, so that it is not
    /// read for each of them (K2). Tells whether any of them sees something else than before.
    fn share(&self, class: CallerClass, kind: Kind, list: &Arc<List>, hints: Hints) -> bool {
        let mut differs = false;
        for (other, shelf) in self.by_class() {
            if other.revision == class.revision && other != class {
                differs |= shelf.put(kind, list, Some(hints), shelf.changes(kind));
            }
        }
        differs
    }

    /// What the server last said of itself, if it ever did.
    pub fn introduction(&self) -> Option<Arc<Introduction>> {
        lock(&self.introduction).clone()
    }

    /// Notes that a list went out without this server; whether that is news since it last gave one.
    pub fn is_late(&self) -> bool {
        !self.late.swap(true, Relaxed)
    }

    /// Takes what was kept from an earlier process.
    pub(super) fn restore(&self, introduction: Introduction) {
        self.era.set_if_unknown(introduction.revision.era());
        lock(&self.introduction).get_or_insert_with(|| Arc::new(introduction));
    }

    /// Whether something was put since this was last asked.
    pub(super) fn take_unsaved(&self) -> bool {
        self.unsaved.swap(false, Relaxed)
    }

    /// It could not be saved, so it still is to be.
    pub(super) fn is_unsaved(&self) {
        self.unsaved.store(true, Relaxed);
    }

    /// Takes over what is known from the time before a reload.
    fn inherit(&self, before: &Self) {
        lock(&self.by_class).clone_from(&*lock(&before.by_class));
        lock(&self.introduction).clone_from(&*lock(&before.introduction));
        self.era.set(before.era.get());
        self.heard.send_replace(*before.heard.borrow());
        self.unsaved.store(before.take_unsaved(), Relaxed);
    }

    fn expire(&self, kinds: &[Kind]) {
        for (_, shelf) in self.by_class() {
            kinds.iter().for_each(|kind| shelf.expire(*kind));
        }
    }

    /// The list that some class has already with the same contents, so that views made from it stay valid and
    /// classes cost no memory of their own; else this one.
    fn alike(&self, kind: Kind, list: List) -> Arc<List> {
        let shelves = self.by_class();
        let mut kept = shelves.iter().filter_map(|(_, shelf)| shelf.last_good(kind));
        kept.find(|k| k.digest == list.digest && k.items.len() == list.items.len())
            .unwrap_or_else(|| Arc::new(list))
    }
}
