//! The listens that are open for one implicit session, and what each is told.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use tokio_util::sync::CancellationToken;

use crate::catalog::Kind;
use crate::protocol::listen::{Filter, ListType, Lists, is_within};
use crate::relay::Session;
use crate::relay::listens::list_of;
use crate::session::Streams;
use crate::session::notices::Notice;
use crate::store::lock;

/// The listens that are open for one session.
#[derive(Default)]
pub(in crate::relay) struct SessionListens {
    open: Mutex<Vec<Arc<OpenListen>>>,
    /// How many: most sessions have none and must not pay for it.
    count: AtomicUsize,
    /// What of legacy servers they subscribe to over the session's links, counted.
    subscribed: Mutex<HashMap<ServersUri, usize>>,
}

/// The name of a server, and its own URI of a resource.
type ServersUri = (Arc<str>, Arc<str>);

/// One open listen.
pub(in crate::relay) struct OpenListen {
    pub(super) streams: Arc<Streams>,
    /// Cancelled when it is to end with its result.
    pub(super) ending: CancellationToken,
    opener: OpenedBy,
    told: Mutex<Told>,
}

/// Who reads a listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpenedBy {
    /// The caller.
    Caller,
    /// Another replica, which passes on to its caller's listen what is told here.
    Peer,
}

/// What a listen is told from its acknowledgement on.
pub(super) struct Grant {
    pub(super) lists: Lists,
    /// What was acknowledged, by the caller's URIs.
    pub(super) acknowledged: BTreeSet<Arc<str>>,
    /// Where those lead that are told of here.
    pub(super) uris: BTreeMap<Arc<str>, Lead>,
    pub(super) counted: Counted,
}

/// Of which servers a listen's lists are, and what they were when it was last told of them.
pub(super) struct Counted {
    /// The names of the servers; none for all of the endpoint.
    pub(super) servers: Option<Arc<[Arc<str>]>>,
    /// Digests of what it was last told of, or saw, of each kind.
    pub(super) seen: [u64; 4],
}

/// Where a resource of a listen leads.
pub(super) struct Lead {
    pub(super) server: Arc<str>,
    /// The server's own URI.
    pub(super) own: Arc<str>,
}

/// What a listen is told.
enum Told {
    /// It is not acknowledged yet: what changes meanwhile is remembered, by server and its own URI.
    NotYet(BTreeSet<(Arc<str>, Box<str>)>),
    /// What was granted; its resources lead elsewhere when their server does.
    Granted(Grant),
}

/// Updates remembered for a listen that is not acknowledged yet; more are lost, as they are before a listen.
const MOST_EARLY: usize = 1000;

// === impl SessionListens ===

impl SessionListens {
    /// All that are open.
    pub(in crate::relay) fn all(&self) -> Vec<Arc<OpenListen>> {
        if self.count.load(Relaxed) == 0 { Vec::new() } else { lock(&self.open).clone() }
    }

    /// Whether any is to be told of changes of a kind.
    pub(in crate::relay) fn hear(&self, kind: Kind) -> bool {
        self.all().iter().any(|open| open.hears(kind))
    }

    /// A server could not be heard for a while.
    pub(in crate::relay) fn missed(&self, server: &str) {
        self.all().iter().for_each(|open| open.missed(server));
    }

    /// Ends all with their results.
    pub(in crate::relay) fn end_all(&self) {
        self.all().iter().for_each(|open| open.ending.cancel());
    }

    /// Ends those that other replicas have open.
    pub(in crate::relay) fn end_those_of_peers(&self) {
        let of_peer = |open: &&Arc<OpenListen>| open.opener == OpenedBy::Peer;
        self.all().iter().filter(of_peer).for_each(|open| open.ending.cancel());
    }

    /// Counts a subscription in; tells whether it is the first of that resource.
    pub(super) fn subscribe(&self, server: &str, own: &Arc<str>) -> bool {
        let mut subscribed = lock(&self.subscribed);
        let count = subscribed.entry((server.into(), own.clone())).or_default();
        *count += 1;
        *count == 1
    }

    /// Counts a subscription out; tells whether it was the last of that resource.
    pub(super) fn unsubscribe(&self, server: &str, own: &Arc<str>) -> bool {
        let mut subscribed = lock(&self.subscribed);
        let key = (Arc::from(server), own.clone());
        let Some(count) = subscribed.get_mut(&key) else { return false };
        *count -= 1;
        let last = *count == 0;
        if last {
            subscribed.remove(&key);
        }
        last
    }

    /// The server's own URIs that are subscribed to over the session's link to it.
    pub(in crate::relay) fn subscribed_at(&self, server: &str) -> Vec<Arc<str>> {
        if self.count.load(Relaxed) == 0 {
            return Vec::new();
        }
        let subscribed = lock(&self.subscribed);
        subscribed.keys().filter(|(at, _)| **at == *server).map(|(_, own)| own.clone()).collect()
    }
}

// === impl OpenListen ===

impl OpenListen {
    /// A listen of `session` that tells on `streams`, once it is granted something.
    pub(super) fn enter(session: &Session, streams: Arc<Streams>, opener: OpenedBy) -> Arc<Self> {
        let told = Mutex::new(Told::NotYet(BTreeSet::new()));
        let open = Arc::new(Self { streams, ending: CancellationToken::new(), opener, told });
        let listens = &session.attached.listens;
        let mut all = lock(&listens.open);
        all.push(open.clone());
        listens.count.store(all.len(), Relaxed);
        open
    }

    pub(super) fn leave(self: &Arc<Self>, session: &Session) {
        let listens = &session.attached.listens;
        let mut all = lock(&listens.open);
        all.retain(|open| !Arc::ptr_eq(open, self));
        listens.count.store(all.len(), Relaxed);
    }

    /// It is acknowledged: from now on it is told of this, beginning with what changed since it came.
    pub(super) fn grant(&self, grant: Grant) {
        let before = std::mem::replace(&mut *lock(&self.told), Told::Granted(grant));
        if let Told::NotYet(early) = before {
            early.iter().for_each(|(server, own)| self.updated(server, own));
        }
    }

    /// Its lists are those of other servers now.
    pub(super) fn count(&self, anew: Counted) {
        if let Told::Granted(grant) = &mut *lock(&self.told) {
            grant.counted = anew;
        }
    }

    /// Of which servers its lists are; none for all.
    pub(in crate::relay) fn counted(&self) -> Option<Arc<[Arc<str>]>> {
        match &*lock(&self.told) {
            Told::Granted(grant) => grant.counted.servers.clone(),
            Told::NotYet(_) => None,
        }
    }

    /// Its resources lead elsewhere now; what was not granted before is not told.
    pub(super) fn regrant(&self, mut anew: BTreeMap<Arc<str>, Lead>) {
        let Told::Granted(Grant { uris, acknowledged, .. }) = &mut *lock(&self.told) else { return };
        anew.retain(|uri, _| acknowledged.contains(uri));
        *uris = anew;
    }

    /// Whether it is to be told of changes of a kind.
    pub(in crate::relay) fn hears(&self, kind: Kind) -> bool {
        matches!(&*lock(&self.told), Told::Granted(grant) if grant.lists.has(list_of(kind)))
    }

    /// Its caller would see this of a kind now.
    pub(in crate::relay) fn shows(&self, kind: Kind, digest: u64) {
        let Told::Granted(grant) = &mut *lock(&self.told) else { return };
        let Some(seen) = grant.counted.seen.get_mut(kind.index()) else { return };
        if std::mem::replace(seen, digest) != digest {
            self.streams.notice(notice_of(list_of(kind)));
        }
    }

    /// Tells of all this, as far as it was granted: it has changed, or may have.
    pub(super) fn tell(&self, changed: &Filter) {
        let Told::Granted(grant) = &*lock(&self.told) else { return };
        for list in changed.lists.and(grant.lists).iter() {
            self.streams.notice(notice_of(list));
        }
        for uri in changed.uris.intersection(&grant.acknowledged) {
            self.streams.notice(Notice::Within { uri: uri.to_string(), subscribed: uri.to_string() });
        }
    }

    /// Another replica told that the resource `uri` changed, which the caller knows by that; it is one of `of`, or
    /// below one.
    pub(super) fn updated_elsewhere(&self, uri: &str, of: &BTreeSet<Arc<str>>) {
        let Told::Granted(grant) = &*lock(&self.told) else { return };
        let within = |s: &&Arc<str>| is_within(uri, s) && grant.acknowledged.contains(*s);
        if let Some(subscribed) = of.iter().filter(within).max_by_key(|s| s.len()) {
            self.streams.notice(Notice::Within { uri: uri.to_owned(), subscribed: subscribed.to_string() });
        }
    }

    /// A server told that a resource changed, by its own URI.
    pub(in crate::relay) fn updated(&self, server: &str, own: &str) {
        let mut told = lock(&self.told);
        let uris = match &mut *told {
            Told::Granted(grant) => &grant.uris,
            Told::NotYet(early) if early.len() < MOST_EARLY => {
                early.insert((server.into(), own.into()));
                return;
            }
            Told::NotYet(_) => return,
        };
        let within = |s: &Lead| *s.server == *server && is_within(own, &s.own);
        // As it was subscribed to, or by the nearest one above it.
        let nearest = uris.iter().filter(|(_, s)| within(s)).max_by_key(|(_, s)| s.own.len());
        if let Some((uri, s)) = nearest {
            let rest = own.get(s.own.len()..).unwrap_or_default();
            let notice = Notice::Within { uri: format!("{uri}{rest}"), subscribed: uri.to_string() };
            self.streams.notice(notice);
        }
    }

    /// What a server may have told while it could not be heard.
    pub(super) fn missed(&self, server: &str) {
        let Told::Granted(grant) = &*lock(&self.told) else { return };
        for (uri, _) in grant.uris.iter().filter(|(_, s)| *s.server == *server) {
            self.streams.notice(Notice::Within { uri: uri.to_string(), subscribed: uri.to_string() });
        }
    }
}

fn notice_of(list: ListType) -> Notice {
    match list {
        ListType::Tools => Notice::Tools,
        ListType::Prompts => Notice::Prompts,
        ListType::Resources => Notice::Resources,
    }
}
