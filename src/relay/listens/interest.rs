//! What is wanted of one server, counted; and which lists of modern servers a session wants to hear of.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use super::Wanted;
use crate::catalog::{Endpoint, Kind};
use crate::protocol::listen::{Filter, ListType, Lists};
use crate::protocol::revision::Era;
use crate::relay::{Relay, Session};
use crate::store::lock;

/// How many resources one upstream listen asks for at most, all callers together; those that are wanted beyond it are
/// not acknowledged to whoever wants them.
const MOST_URIS: usize = 10_000;
/// How long their URIs are together at most, bytes.
const MOST_BYTES: usize = 4 << 20;

/// What is wanted of one server, counted.
#[derive(Default)]
pub(super) struct Interest {
    lists: [usize; 3],
    uris: HashMap<Arc<str>, usize>,
    /// How long the URIs are together.
    bytes: usize,
    /// Counts up whenever something is wanted that was not before, or is not any more.
    pub(super) version: u64,
}

/// What a session wants to hear of modern servers because it was shown their lists: a legacy link tells its session
/// of changes by itself, so this must too (X10).
#[derive(Default)]
pub(in crate::relay) struct SessionLists {
    wanted: Mutex<HashMap<Arc<str>, (Lists, Wanted)>>,
    /// The generation of the catalog in which it was last looked after, and one, for each list.
    seen: [AtomicU64; 3],
}

// === impl Interest ===

impl Interest {
    /// Counts `filter` in, as far as there is room for its resources; gives what of it was counted.
    pub(super) fn add(&mut self, filter: &Filter) -> Filter {
        let before = self.version;
        for (count, list) in self.lists.iter_mut().zip(ListType::ALL) {
            if filter.lists.has(list) {
                *count += 1;
                self.version = if *count == 1 { before + 1 } else { self.version };
            }
        }
        let mut added = Filter { lists: filter.lists, ..Filter::default() };
        for uri in &filter.uris {
            if let Some(count) = self.uris.get_mut(uri) {
                *count += 1;
            } else if self.uris.len() < MOST_URIS && self.bytes + uri.len() <= MOST_BYTES {
                self.uris.insert(uri.clone(), 1);
                self.bytes += uri.len();
                self.version = before + 1;
            } else {
                continue;
            }
            added.uris.insert(uri.clone());
        }
        added
    }

    /// Counts `filter` out.
    pub(super) fn remove(&mut self, filter: &Filter) {
        let before = self.version;
        for (count, list) in self.lists.iter_mut().zip(ListType::ALL) {
            if filter.lists.has(list) {
                *count = count.saturating_sub(1);
                self.version = if *count == 0 { before + 1 } else { self.version };
            }
        }
        for uri in &filter.uris {
            let Some(count) = self.uris.get_mut(uri) else { continue };
            *count -= 1;
            if *count == 0 {
                self.uris.remove(uri);
                self.bytes = self.bytes.saturating_sub(uri.len());
                self.version = before + 1;
            }
        }
    }

    /// All that is wanted.
    pub(super) fn all(&self) -> Filter {
        let wanted = self.lists.iter().zip(ListType::ALL).filter(|(count, _)| **count > 0);
        let lists = wanted.fold(Lists::default(), |lists, (_, list)| lists.with(list));
        Filter { lists, uris: self.uris.keys().cloned().collect() }
    }

    /// Whether nothing is wanted.
    pub(super) fn is_empty(&self) -> bool {
        self.lists.iter().all(|count| *count == 0) && self.uris.is_empty()
    }
}

// === impl SessionLists ===

impl SessionLists {
    /// Nothing is wanted any more.
    pub(in crate::relay) fn clear(&self) {
        drop(std::mem::take(&mut *lock(&self.wanted)));
    }
}

// === impl Relay ===

impl Relay {
    /// A session of the legacy era was shown a list: from now on it wants to hear when that changes at a modern server.
    pub(in crate::relay) fn want_shown(
        self: &Arc<Self>,
        session: &Arc<Session>,
        endpoint: &Endpoint,
        kind: Kind,
    ) {
        if session.revision().era() == Era::Modern {
            return;
        }
        let list = list_of(kind);
        let lists = &session.attached.modern_lists;
        // While nothing changes this is one look.
        let generation = self.catalog.generation().saturating_add(1);
        let Some(seen) = lists.seen.get(list as usize) else { return };
        if seen.swap(generation, Relaxed) == generation {
            return;
        }
        for server in &endpoint.servers {
            if self.catalog.era(server) != Some(Era::Modern) {
                continue;
            }
            let mut wanted = lock(&lists.wanted);
            let before = wanted.get(server.name.as_str());
            let same = before.filter(|(_, w)| Arc::ptr_eq(&w.standing.server, server)).map(|(l, _)| *l);
            if same.is_some_and(|lists| lists.has(list)) {
                continue;
            }
            let all = same.unwrap_or_default().with(list);
            let more = self.want(session, server, &Filter { lists: all, ..Filter::default() });
            let less = wanted.insert(server.name.as_str().into(), (all, more));
            drop(wanted);
            drop(less);
        }
        // The session may have ended between the last look and this.
        if session.ended.is_cancelled() {
            lists.clear();
        }
    }
}

/// The list type that a kind's changes are told by.
pub(in crate::relay) fn list_of(kind: Kind) -> ListType {
    match kind {
        Kind::Tools => ListType::Tools,
        Kind::Prompts => ListType::Prompts,
        Kind::Resources | Kind::Templates => ListType::Resources,
    }
}

#[cfg(test)]
mod tests;
