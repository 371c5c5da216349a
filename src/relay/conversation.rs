//! What the relay keeps for one session: its links, its exchanges, open questions, subscriptions, and what it was
//! last shown.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};

use tokio_util::task::TaskTracker;

use super::asks::Asks;
use super::cursors::Cursors;
use super::lanes::Lanes;
use super::links::Links;
use super::listen::SessionListens;
use super::listens::{SessionLists, Wanted};
use super::parked::SessionRoom;
use super::presented::Presented;
use super::relist::OwnLists;
use super::running::Running;
use super::tasks::Begun;
use crate::catalog::Kind;
use crate::session::EndReason;
use crate::session::live::Attachment;
use crate::store::sessions::StreamCursor;
use crate::store::{ServerState, lock};
use crate::upstream::Farewell;

/// What the relay keeps for one session.
pub struct Conversation {
    /// The tenant of its principal.
    pub(super) tenant: Option<Box<str>>,
    pub(super) links: Links,
    pub(super) running: Running,
    pub(super) asks: Asks,
    /// Whose turn it is at the links where calls must not run side by side.
    pub(super) lanes: Lanes,
    /// The places for parked calls, of an implicit session.
    pub(super) room: Option<Arc<SessionRoom>>,
    /// By the caller's URI: the server, and the server's own URI.
    pub(super) subscriptions: Mutex<BTreeMap<String, Subscription>>,
    /// Where their standalone streams stand.
    pub(super) cursors: Cursors,
    pub(super) own_lists: OwnLists,
    /// The listens that are open for it.
    pub(super) listens: SessionListens,
    /// Which lists of modern servers it wants to hear of.
    pub(super) modern_lists: SessionLists,
    /// What an adopter needs to go on at legacy HTTP servers, by their names.
    pub(super) servers: Mutex<BTreeMap<Box<str>, ServerState>>,
    /// The same of an earlier owner, for the first link to each.
    pub(super) before: Mutex<BTreeMap<Box<str>, ServerState>>,
    /// URIs seen in results that no list has, and the server they came from.
    pub(super) seen_uris: Mutex<SeenUris>,
    /// The tasks of 2025-11-25 that its caller began or asked for.
    pub(super) begun: Mutex<Begun>,
    /// What modern servers are told of the caller, once one is.
    pub(super) presented: OnceLock<Presented>,
    given: [AtomicU64; 4],
    tasks: TaskTracker,
}

/// One resource subscription.
pub(super) struct Subscription {
    pub(super) server: Arc<str>,
    pub(super) own: Arc<str>,
    /// What keeps a modern server listened to for it.
    pub(super) listened: Option<Wanted>,
}

/// URIs of links inside results (G8), the oldest forgotten first.
#[derive(Debug, Default)]
pub(super) struct SeenUris {
    by_uri: HashMap<Box<str>, Arc<str>>,
    order: VecDeque<Box<str>>,
}

/// How many links inside results one session remembers.
const MOST_SEEN_URIS: usize = 1024;
/// The longest of them, bytes; a longer one is not remembered.
const LONGEST_SEEN_URI: usize = 2048;

// === impl Conversation ===

impl Conversation {
    pub(super) fn new(tenant: Option<Box<str>>, epoch: u32, tasks: TaskTracker) -> Self {
        Self {
            tenant,
            links: Links::default(),
            running: Running::default(),
            asks: Asks::new(epoch),
            lanes: Lanes::default(),
            room: None,
            subscriptions: Mutex::default(),
            servers: Mutex::default(),
            before: Mutex::default(),
            cursors: Cursors::default(),
            own_lists: OwnLists::default(),
            listens: SessionListens::default(),
            modern_lists: SessionLists::default(),
            seen_uris: Mutex::default(),
            begun: Mutex::default(),
            presented: OnceLock::new(),
            given: Default::default(),
            tasks,
        }
    }

    /// The same for a session whose calls may be parked.
    pub(super) fn with_room(mut self, room: Arc<SessionRoom>) -> Self {
        self.room = Some(room);
        self
    }

    /// The same for an adopted session, with its state at servers.
    pub(super) fn at_servers(self, servers: BTreeMap<Box<str>, ServerState>) -> Self {
        Self { before: Mutex::new(servers.clone()), servers: Mutex::new(servers), ..self }
    }

    /// Where work that outlives a request runs.
    pub(super) fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    /// Remembers what the caller was shown of one kind. 0 stands for nothing yet.
    pub(super) fn show(&self, kind: Kind, digest: u64) {
        if let Some(given) = self.given.get(kind.index()) {
            given.store(digest.max(1), Relaxed);
        }
    }

    /// Whether the caller was shown something else than this, and takes it as shown; `false` if it never asked.
    pub(super) fn differs(&self, kind: Kind, digest: u64) -> bool {
        let Some(given) = self.given.get(kind.index()) else { return false };
        let old = given.load(Relaxed);
        old != 0 && given.swap(digest.max(1), Relaxed) != digest.max(1)
    }

    /// What the caller was last shown of a kind, if it ever asked.
    pub(super) fn shown(&self, kind: Kind) -> Option<u64> {
        self.given.get(kind.index()).map(|g| g.load(Relaxed)).filter(|digest| *digest != 0)
    }

    /// Whether the caller ever asked for a kind.
    pub(super) fn was_shown(&self, kind: Kind) -> bool {
        self.given.get(kind.index()).is_some_and(|g| g.load(Relaxed) != 0)
    }
}

impl Attachment for Conversation {
    fn on_end(&self, reason: EndReason) {
        self.asks.drop_all();
        self.modern_lists.clear();
        let subscriptions = std::mem::take(&mut *lock(&self.subscriptions));
        drop(subscriptions);
        let farewell = if reason.leaves_servers() { Farewell::Leave } else { Farewell::End };
        self.links.close_all(&self.tasks, farewell);
    }

    fn subscriptions(&self) -> BTreeSet<String> {
        lock(&self.subscriptions).keys().cloned().collect()
    }

    fn servers(&self) -> BTreeMap<Box<str>, ServerState> {
        let mut servers = lock(&self.servers).clone();
        for (name, state) in &mut servers {
            state.cursor = self.cursors.at(name).or_else(|| state.cursor.take());
        }
        servers
    }

    fn take_cursors(&self) -> Vec<(Box<str>, StreamCursor)> {
        let unwritten = self.cursors.take_unwritten();
        let servers = lock(&self.servers);
        let of = |(server, at): (Box<str>, Box<str>)| {
            let session = servers.get(&server)?.session.clone();
            Some((server, StreamCursor { session, at }))
        };
        unwritten.into_iter().filter_map(of).collect()
    }
}

// === impl SeenUris ===

impl SeenUris {
    pub(super) fn add(&mut self, uri: &str, server: &str) {
        if uri.len() > LONGEST_SEEN_URI {
            return;
        }
        if self.by_uri.insert(uri.into(), server.into()).is_none() {
            self.order.push_back(uri.into());
            if self.order.len() > MOST_SEEN_URIS
                && let Some(oldest) = self.order.pop_front()
            {
                self.by_uri.remove(&oldest);
            }
        }
    }

    pub(super) fn server_of(&self, uri: &str) -> Option<Arc<str>> {
        self.by_uri.get(uri).cloned()
    }
}
