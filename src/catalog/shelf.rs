//! The lists that servers gave, kept for all callers of a class, and what servers said of themselves.

use std::sync::{Arc, Mutex};

use tokio::sync::watch;

use super::kind::Kind;
use super::list::List;
use crate::protocol::capability::CapabilityClass;
use crate::protocol::revision::Revision;
use crate::settings::NameSettings;
use crate::store::{Registry, lock};
use crate::telemetry::Metrics;
use crate::upstream::Introduction;

/// What two callers must share for a server to tell both the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallerClass {
    /// The revision asked of the server.
    pub revision: Revision,
    /// The capabilities offered to it.
    pub capabilities: CapabilityClass,
}

/// Whether a list is the server's word of this process's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// Nothing said that it changed.
    Fresh,
    /// The server said that it changed, or it was kept from an earlier process: shown while it is read again.
    LastGood,
}

/// A list and how far it can be trusted.
#[derive(Clone, Debug)]
pub struct Shelved {
    /// The list.
    pub list: Arc<List>,
    /// How far it can be trusted.
    pub freshness: Freshness,
}

/// The lists of one server for one class of callers.
#[derive(Debug, Default)]
pub struct Shelf {
    lists: [Mutex<Option<Shelved>>; 4],
    fetching: [tokio::sync::Mutex<()>; 4],
}

/// The lists of all servers.
pub struct Catalog {
    shelves: Registry<(Arc<str>, CallerClass), Arc<Shelf>>,
    introductions: Registry<Arc<str>, Arc<Introduction>>,
    names: NameSettings,
    changed: watch::Sender<u64>,
    metrics: Arc<Metrics>,
}

// === impl Catalog ===

impl Catalog {
    /// An empty one.
    pub fn new(names: NameSettings, metrics: Arc<Metrics>) -> Self {
        let (changed, _) = watch::channel(0);
        Self { shelves: Registry::new(), introductions: Registry::new(), names, changed, metrics }
    }

    /// How qualified names are made.
    pub fn names(&self) -> &NameSettings {
        &self.names
    }

    /// The lists of `server` for callers of `class`.
    pub fn shelf(&self, server: &str, class: CallerClass) -> Arc<Shelf> {
        self.shelves.get_or_insert_with((server.into(), class), Arc::default)
    }

    /// Puts a list that a server just gave in its place.
    pub fn put(&self, server: &str, class: CallerClass, kind: Kind, list: List) -> Arc<List> {
        if kind == Kind::Tools {
            self.metrics.tools_listed(server, list.items.len(), list.quarantined);
        }
        let shelf = self.shelf(server, class);
        let mut slot = lock(shelf.slot(kind));
        // The same contents keep their identity, so that views made from them stay valid.
        let list = match slot.take() {
            Some(old) if old.list.digest == list.digest => old.list,
            _ => {
                self.changed.send_modify(|n| *n += 1);
                Arc::new(list)
            }
        };
        *slot = Some(Shelved { list: list.clone(), freshness: Freshness::Fresh });
        list
    }

    /// Remembers what a server said of itself.
    pub fn introduce(&self, server: &str, introduction: Arc<Introduction>) {
        self.introductions.insert(server.into(), introduction);
    }

    /// What a server last said of itself, if it ever did.
    pub fn introduction(&self, server: &str) -> Option<Arc<Introduction>> {
        self.introductions.get(server)
    }

    /// Tells when any list has changed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }
}

// === impl Shelf ===

impl Shelf {
    /// The list of one kind, if there is one.
    pub fn get(&self, kind: Kind) -> Option<Shelved> {
        lock(self.slot(kind)).clone()
    }

    /// The server said that its list changed.
    pub fn expire(&self, kind: Kind) {
        if let Some(shelved) = lock(self.slot(kind)).as_mut() {
            shelved.freshness = Freshness::LastGood;
        }
    }

    /// Held while the list is read from the server, so that only one reads.
    pub fn fetching(&self, kind: Kind) -> &tokio::sync::Mutex<()> {
        let [tools, prompts, resources, templates] = &self.fetching;
        match kind {
            Kind::Tools => tools,
            Kind::Prompts => prompts,
            Kind::Resources => resources,
            Kind::Templates => templates,
        }
    }

    fn slot(&self, kind: Kind) -> &Mutex<Option<Shelved>> {
        let [tools, prompts, resources, templates] = &self.lists;
        match kind {
            Kind::Tools => tools,
            Kind::Prompts => prompts,
            Kind::Resources => resources,
            Kind::Templates => templates,
        }
    }
}
