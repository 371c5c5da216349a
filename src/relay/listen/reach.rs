//! The way of one listen to its servers: opened for it, held for it, opened anew when it is lost.
//!
//! Change notices of a legacy server come over open links only, so a listen opens one to each of its servers; a
//! modern server is listened to on behalf of all who want it ([`crate::relay::listens`]).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::kinds_of;
use super::legacy::{Subscribed, Telling};
use super::open::{Lead, OpenListen};
use crate::catalog::{Endpoint, Kind, Naming, Target};
use crate::protocol::listen::{Filter, Lists};
use crate::protocol::revision::Era;
use crate::relay::links::Connected;
use crate::relay::listens::Wanted;
use crate::relay::offered::Offered;
use crate::relay::shared::Pick;
use crate::relay::{Relay, Session};
use crate::settings::ServerSettings;
use crate::settings::servers::Isolation;
use crate::upstream::{Backoff, Link};

/// How often it is looked whether a server that is lost is there again: somebody else's call may have reached it.
const LOOK: Duration = Duration::from_secs(1);
/// How often it is looked whether links are as they were, when nothing told that they are not.
const SLOW_LOOK: Duration = Duration::from_secs(30);

/// The way of one listen to its servers.
pub(super) struct Reach {
    session: Arc<Session>,
    pub(super) endpoint: Arc<Endpoint>,
    asked: Filter,
    servers: Vec<Reached>,
}

/// One server of a listen.
struct Reached {
    server: Arc<ServerSettings>,
    /// What is wanted of it, by its own URIs.
    wanted: Filter,
    uris: Vec<UriPair>,
    held: Held,
    /// What of `wanted` it tells.
    granted: Filter,
    retry: Retry,
}

/// A URI of the caller's that leads to a server, and the server's own for it.
type UriPair = (Arc<str>, Arc<str>);

/// By what a server is held to tell.
enum Held {
    /// It could not be reached, or nothing of it is of use.
    Nothing,
    /// The upstream listen of a modern server.
    Modern { wanted: Wanted },
    /// The link to a legacy server, and what is subscribed to over it.
    Legacy { link: Weak<Link>, ended: CancellationToken, _subscribed: Option<Subscribed> },
}

/// When a server that is lost is tried again.
#[derive(Default)]
struct Retry {
    at: Option<Instant>,
    backoff: Backoff,
}

// === impl Reach ===

impl Reach {
    pub(super) fn new(session: &Arc<Session>, endpoint: &Arc<Endpoint>, asked: Filter) -> Self {
        Self { session: session.clone(), endpoint: endpoint.clone(), asked, servers: Vec::new() }
    }

    /// What of what was asked for can be delivered, by the caller's URIs (N2).
    pub(super) fn granted(&self) -> Filter {
        let lists = self.servers.iter().fold(Lists::default(), |lists, s| lists.or(s.granted.lists));
        let uris = self.servers.iter().flat_map(Reached::granted_uris).map(|(callers, _)| callers.clone());
        Filter { lists, uris: uris.collect() }
    }

    /// Waits until a server may have to be tended: when its link ends, soon when one is lost already.
    pub(super) fn wants_tending(&self) -> impl Future<Output = ()> + Send + use<> {
        let is_lost = |s: &Reached| match &s.held {
            Held::Nothing => true,
            Held::Modern { .. } => false,
            Held::Legacy { ended, .. } => ended.is_cancelled(),
        };
        let look = if self.servers.iter().any(is_lost) { LOOK } else { SLOW_LOOK };
        let links = self.servers.iter().filter(|s| !is_lost(s)).filter_map(|s| match &s.held {
            Held::Legacy { ended, .. } => Some(ended.clone().cancelled_owned()),
            Held::Nothing | Held::Modern { .. } => None,
        });
        let mut links: FuturesUnordered<_> = links.collect();
        async move {
            tokio::select! {
                Some(()) = links.next() => {}
                () = tokio::time::sleep(look) => {}
            }
        }
    }

    /// The granted resources, by the caller's URIs.
    fn subscriptions(&self) -> BTreeMap<Arc<str>, Lead> {
        let all = self.servers.iter().flat_map(|reached| {
            let server: Arc<str> = reached.server.name.as_str().into();
            let lead = move |own: &Arc<str>| Lead { server: server.clone(), own: own.clone() };
            reached.granted_uris().map(move |(callers, own)| (callers.clone(), lead(own)))
        });
        all.collect()
    }
}

// === impl Reached ===

impl Reached {
    fn granted_uris(&self) -> impl Iterator<Item = &UriPair> {
        self.uris.iter().filter(|(_, own)| self.granted.uris.contains(own))
    }
}

// === impl Relay ===

impl Relay {
    /// Finds the servers of a listen and reaches all of them side by side, each within `timeouts.list`; reads the
    /// lists whose changes are to be told, so that a change can be known as one.
    pub(super) async fn reach_all(self: &Arc<Self>, reach: &mut Reach) {
        let (session, endpoint) = (reach.session.clone(), reach.endpoint.clone());
        let mut targets: BTreeMap<Arc<str>, Vec<UriPair>> = BTreeMap::new();
        for (uri, target) in self.targets(&session, &endpoint, &reach.asked.uris).await {
            targets.entry(target.server.name.as_str().into()).or_default().push((uri, target.own));
        }
        let lists = reach.asked.lists;
        let reaching = endpoint.servers.iter().filter_map(|server| {
            let uris = targets.remove(server.name.as_str()).unwrap_or_default();
            if lists.is_empty() && uris.is_empty() {
                return None;
            }
            let wanted = Filter { lists, uris: uris.iter().map(|(_, own)| own.clone()).collect() };
            let session = &session;
            Some(async move {
                let (held, granted) = self.reach(session, server, &wanted).await;
                Reached { server: server.clone(), wanted, uris, held, granted, retry: Retry::default() }
            })
        });
        let reading = kinds_of(&reach.asked).map(|kind| self.whole_view(&session, &endpoint, kind));
        let (servers, _) = futures_util::future::join(
            futures_util::future::join_all(reaching.collect::<Vec<_>>()),
            futures_util::future::join_all(reading),
        )
        .await;
        reach.servers = servers;
    }

    /// Where the URIs of a listen lead; those that lead nowhere are left out. Servers are asked for their lists at
    /// most once for all of them.
    async fn targets(
        self: &Arc<Self>,
        session: &Arc<Session>,
        endpoint: &Arc<Endpoint>,
        uris: &BTreeSet<Arc<str>>,
    ) -> Vec<(Arc<str>, Target)> {
        if let (Naming::Bare, [only]) = (endpoint.naming, endpoint.servers.as_slice()) {
            let there = |uri: &Arc<str>| (uri.clone(), Target { server: only.clone(), own: uri.clone() });
            return uris.iter().map(there).collect();
        }
        let known = |uri: &Arc<str>| Some((uri.clone(), self.known_uri(session, endpoint, uri)?));
        let found: Vec<_> = uris.iter().filter_map(known).collect();
        if found.len() == uris.len() {
            return found;
        }
        futures_util::future::join(
            self.view_again(session, endpoint, Kind::Resources, |_| false),
            self.view_again(session, endpoint, Kind::Templates, |_| false),
        )
        .await;
        let any = |uri: &Arc<str>| {
            let found = self.known_uri(session, endpoint, uri);
            Some((uri.clone(), found.or_else(|| self.only_one_with_resources(endpoint, uri))?))
        };
        uris.iter().filter_map(any).collect()
    }

    /// Reaches one server, within `timeouts.list` for all steps of the way; gives by what it is held, and what it tells.
    async fn reach(
        self: &Arc<Self>,
        session: &Arc<Session>,
        server: &Arc<ServerSettings>,
        wanted: &Filter,
    ) -> (Held, Filter) {
        let deadline = Instant::now() + server.timeouts.list;
        match tokio::time::timeout_at(deadline, self.link(session, server, Pick::First)).await {
            Ok(Ok(connected)) if connected.link.era() == Era::Modern => {
                let wants = self.want(session, server, wanted);
                match wants.accepted(deadline).await {
                    Ok(granted) => (Held::Modern { wanted: wants }, granted),
                    // What it does not take must not stay among what others want of it.
                    Err(_) => self.unreached(server, wanted),
                }
            }
            Ok(Ok(connected)) => {
                let (_subscribed, granted) =
                    self.reach_legacy(session, server, &connected, wanted, deadline).await;
                let (link, ended) = (Arc::downgrade(&connected.link), connected.link.ended().clone());
                (Held::Legacy { link, ended, _subscribed }, granted)
            }
            Ok(Err(_)) | Err(_) => self.unreached(server, wanted),
        }
    }

    /// A server that cannot be reached will tell of its lists when it is there again.
    fn unreached(&self, server: &Arc<ServerSettings>, wanted: &Filter) -> (Held, Filter) {
        let offered = self.catalog.introduction(server).map(|i| Offered::by(&i)).unwrap_or_default();
        let lists = wanted.lists.and(offered.tells);
        (Held::Nothing, Filter { lists, ..Filter::default() })
    }

    async fn reach_legacy(
        self: &Arc<Self>,
        session: &Arc<Session>,
        server: &Arc<ServerSettings>,
        connected: &Connected,
        wanted: &Filter,
        deadline: Instant,
    ) -> (Option<Subscribed>, Filter) {
        let offered = Offered::by(&connected.link.introduction());
        if self.telling(server, deadline).await == Telling::Never {
            return (None, Filter::default());
        }
        let lists = wanted.lists.and(offered.tells);
        if !offered.subscribe {
            return (None, Filter { lists, ..Filter::default() });
        }
        let subscribed = self.subscribe_all(session, server, connected, &wanted.uris, deadline).await;
        let uris = subscribed.uris();
        (Some(subscribed), Filter { lists, uris })
    }

    /// From now on a listen is told of what its servers granted.
    pub(super) fn begin_to_tell(self: &Arc<Self>, reach: &Reach, open: &OpenListen) {
        let seen = Kind::ALL.map(|kind| {
            // What its caller was last shown; without that, what it would be shown now.
            let now = || self.known_view(&reach.session, &reach.endpoint, kind).digest();
            reach.session.attached.shown(kind).unwrap_or_else(now)
        });
        open.grant(reach.granted().lists, reach.subscriptions(), seen);
        self.tell_changes(&reach.session);
    }

    /// Looks after the links of a listen: those that are lost are opened anew, and what may have been missed is told.
    pub(super) async fn tend(
        self: &Arc<Self>,
        reach: &mut Reach,
        endpoint: Arc<Endpoint>,
        open: &OpenListen,
    ) {
        if !Arc::ptr_eq(&endpoint, &reach.endpoint) {
            let mut anew = Reach::new(&reach.session, &endpoint, reach.asked.clone());
            self.reach_all(&mut anew).await;
            // What was not acknowledged is not told, whatever can be told now.
            open.regrant(anew.subscriptions());
            *reach = anew;
            self.tell_changes(&reach.session);
            return;
        }
        let session = reach.session.clone();
        let mut changed = false;
        for reached in &mut reach.servers {
            let server = reached.server.clone();
            let live = match &reached.held {
                Held::Modern { .. } if self.catalog.era(&server) != Some(Era::Legacy) => continue,
                Held::Legacy { link, .. } => {
                    let live = self.live_link(&session, &server);
                    if live.as_ref().is_some_and(|live| std::ptr::eq(link.as_ptr(), &raw const *live.link)) {
                        reached.retry.backoff.reset();
                        continue;
                    }
                    live
                }
                Held::Nothing | Held::Modern { .. } => None,
            };
            if live.is_none() && !reached.retry.is_due() {
                continue;
            }
            let (held, granted) = self.reach(&session, &server, &reached.wanted).await;
            changed = true;
            match &held {
                Held::Nothing => {}
                Held::Modern { wanted } => wanted.reread_lists(self),
                Held::Legacy { .. } => self.reread_lists(&session, &server),
            }
            if !matches!(held, Held::Nothing) {
                open.missed(&server.name);
            }
            (reached.held, reached.granted) = (held, granted);
        }
        if changed {
            open.regrant(reach.subscriptions());
        }
    }

    /// Has the lists of a legacy server read again that could not be heard for a while.
    fn reread_lists(self: &Arc<Self>, session: &Arc<Session>, server: &Arc<ServerSettings>) {
        match server.isolation {
            Isolation::Session => self.list_changed(session, server, &Kind::ALL),
            Isolation::Shared { .. } => {
                self.shared_list_changed(session.attached.tenant.as_deref(), server, &Kind::ALL);
            }
        }
    }
}

// === impl Retry ===

impl Retry {
    /// Whether it is time for the next try; if so, the one after that waits longer.
    fn is_due(&mut self) -> bool {
        let now = Instant::now();
        let due = self.at.is_none_or(|at| at <= now);
        if due {
            self.at = Some(now + self.backoff.wait());
        }
        due
    }
}
