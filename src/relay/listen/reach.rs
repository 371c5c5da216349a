//! The way of one listen to its servers: opened for it, held for it, opened anew when it is lost.
//!
//! Change notices of a legacy server come over open links only, so a listen opens one to each of its servers; a
//! modern server is listened to on behalf of all who want it ([`crate::relay::listens`]). Servers that keep state for a
//! session that another replica owns are reached there ([`super::afar`]).

mod tend;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::afar::{Afar, Attached};
use super::kinds_of;
use super::legacy::{Subscribed, Telling};
use super::open::{Counted, Grant, Lead, OpenListen};
use super::way::Onward;
use crate::catalog::{Endpoint, Kind, Naming, Target};
use crate::protocol::listen::{Filter, Lists};
use crate::protocol::revision::Era;
use crate::relay::elsewhere::Settled;
use crate::relay::links::Connected;
use crate::relay::listens::{Wanted, list_of};
use crate::relay::offered::Offered;
use crate::relay::shared::Pick;
use crate::relay::{Came, Relay, Session};
use crate::settings::ServerSettings;
use crate::upstream::Link;
use crate::upstream::pace::Pace;

pub(super) use tend::Retry;

/// How often it is looked whether a server that is lost is there again: somebody else's call may have reached it.
const LOOK: Duration = Duration::from_secs(1);
/// How often it is looked whether links are as they were, when nothing told that they are not.
const SLOW_LOOK: Duration = Duration::from_secs(30);

/// The way of one listen to its servers.
pub(super) struct Reach {
    session: Arc<Session>,
    pub(super) endpoint: Arc<Endpoint>,
    asked: Filter,
    part: Part,
    servers: Vec<Reached>,
    /// What another replica contributes, if one does.
    afar: Option<Afar>,
}

/// Which servers of its endpoint a listen is for.
#[derive(Clone)]
pub(super) enum Part {
    /// All; what the owner of the session contributes comes on this way, if there are other replicas.
    Whole(Option<Onward>),
    /// Those of these names, for a listen at another replica.
    Of(Arc<[Arc<str>]>),
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

// === impl Reach ===

impl Reach {
    pub(super) fn new(session: &Arc<Session>, endpoint: &Arc<Endpoint>, asked: Filter, part: Part) -> Self {
        let (session, endpoint) = (session.clone(), endpoint.clone());
        Self { session, endpoint, asked, part, servers: Vec::new(), afar: None }
    }

    /// What of what was asked for can be delivered, by the caller's URIs (N2).
    pub(super) fn granted(&self) -> Filter {
        let lists = self.servers.iter().fold(Lists::default(), |lists, s| lists.or(s.granted.lists));
        let uris = self.servers.iter().flat_map(Reached::granted_uris).map(|(callers, _)| callers.clone());
        let here = Filter { lists, uris: uris.collect() };
        self.afar.as_ref().map_or(here.clone(), |afar| here.or(&afar.wanted))
    }

    /// The servers that are reached from here.
    fn here(&self) -> Vec<Arc<ServerSettings>> {
        let is_ours = |server: &&Arc<ServerSettings>| match &self.part {
            Part::Whole(_) => !self.is_afar(server),
            Part::Of(names) => names.iter().any(|name| **name == *server.name),
        };
        self.endpoint.servers.iter().filter(is_ours).cloned().collect()
    }

    fn is_afar(&self, server: &ServerSettings) -> bool {
        self.afar.as_ref().is_some_and(|afar| afar.servers.iter().any(|far| far.name == server.name))
    }

    /// The names of the servers whose lists count here; none if that is all.
    fn counted(&self) -> Option<Arc<[Arc<str>]>> {
        match (&self.part, &self.afar) {
            (Part::Whole(_), None) => None,
            (Part::Whole(_), Some(_)) => Some(self.here().iter().map(|s| s.name.as_str().into()).collect()),
            (Part::Of(names), _) => Some(names.clone()),
        }
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
        let attaching = self.afar.as_ref().map(Afar::wants_attaching);
        let mut attaching: FuturesUnordered<_> = attaching.into_iter().collect();
        async move {
            tokio::select! {
                Some(()) = links.next() => {}
                Some(()) = attaching.next() => {}
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
        let afar = self.afar(reach).await;
        reach.afar = afar;
        let here = reach.here();
        let found = self.targets(reach, &here, &reach.asked.uris).await;
        let is_here = |(_, target): &(Arc<str>, Target)| here.iter().any(|s| s.name == target.server.name);
        let found: Vec<_> = found.into_iter().filter(is_here).collect();
        let Some(mut afar) = reach.afar.take() else {
            reach.servers = self.reach_here(reach, &here, found).await;
            return;
        };
        for (uri, _) in &found {
            afar.wanted.uris.remove(uri);
        }
        let wanted = afar.wanted.uris.clone();
        let attaching = async {
            if afar.wanted.is_empty() {
                Attached::Nowhere
            } else {
                self.attach_first(&reach.session, &mut afar).await
            }
        };
        let (mut servers, attached) =
            futures_util::future::join(self.reach_here(reach, &here, found), attaching).await;
        match attached {
            Attached::At(hop) => drop(afar.attach(hop)),
            Attached::Nowhere => {}
            Attached::Here => {
                let found = self.targets(reach, &afar.servers, &wanted).await;
                servers.extend(self.reach_here(reach, &afar.servers, found).await);
                reach.servers = servers;
                return;
            }
        }
        (reach.servers, reach.afar) = (servers, Some(afar));
    }

    /// The way to the owner of the session, if that is another replica and something may be wanted of servers that keep
    /// state. If nobody owns it, this replica takes it, as a call would.
    async fn afar(self: &Arc<Self>, reach: &Reach) -> Option<Afar> {
        let Part::Whole(Some(onward)) = &reach.part else { return None };
        let Reach { session, endpoint, asked, .. } = reach;
        let stateful: Vec<_> = endpoint.servers.iter().filter(|s| self.keeps_state(s)).cloned().collect();
        let leads_there = |uri: &Arc<str>| {
            let known = self.known_target(session, endpoint, uri);
            known.is_none_or(|target| stateful.iter().any(|s| s.name == target.server.name))
        };
        if stateful.is_empty() || (asked.lists.is_empty() && !asked.uris.iter().any(leads_there)) {
            return None;
        }
        match self.settle_state(session, Came::Caller(None)).await {
            Ok(Settled::Here) => None,
            Ok(_) | Err(_) => Some(Afar::new(onward.clone(), stateful, asked.clone())),
        }
    }

    /// Reaches those of `servers` of which something is wanted.
    async fn reach_here(
        self: &Arc<Self>,
        reach: &Reach,
        servers: &[Arc<ServerSettings>],
        found: Vec<(Arc<str>, Target)>,
    ) -> Vec<Reached> {
        let Reach { session, endpoint, asked, .. } = reach;
        let mut targets: BTreeMap<Arc<str>, Vec<UriPair>> = BTreeMap::new();
        for (uri, target) in found {
            targets.entry(target.server.name.as_str().into()).or_default().push((uri, target.own));
        }
        let lists = asked.lists;
        let reaching = servers.iter().filter_map(|server| {
            let uris = targets.remove(server.name.as_str()).unwrap_or_default();
            if lists.is_empty() && uris.is_empty() {
                return None;
            }
            let wanted = Filter { lists, uris: uris.iter().map(|(_, own)| own.clone()).collect() };
            Some(async move {
                let (held, granted) = self.reach(session, server, &wanted).await;
                let retry = Retry::new(Pace::default());
                Reached { server: server.clone(), wanted, uris, held, granted, retry }
            })
        });
        let reading = kinds_of(asked).map(|kind| async move {
            if servers.len() == endpoint.servers.len() {
                self.whole_view(session, endpoint, kind).await;
            } else {
                // Those of the others are not to be read from here.
                let view = self.known_view(session, endpoint, kind);
                self.await_lists(session, &view, servers, kind).await;
            }
        });
        let (reached, _) = futures_util::future::join(
            futures_util::future::join_all(reaching.collect::<Vec<_>>()),
            futures_util::future::join_all(reading),
        )
        .await;
        reached
    }

    /// Where the URIs of a listen lead; those that lead nowhere are left out. Of `servers` each is asked for its lists
    /// at most once for all of them.
    async fn targets(
        self: &Arc<Self>,
        reach: &Reach,
        servers: &[Arc<ServerSettings>],
        uris: &BTreeSet<Arc<str>>,
    ) -> Vec<(Arc<str>, Target)> {
        let Reach { session, endpoint, .. } = reach;
        let known = |uri: &Arc<str>| Some((uri.clone(), self.known_target(session, endpoint, uri)?));
        let found: Vec<_> = uris.iter().filter_map(known).collect();
        if found.len() == uris.len() {
            return found;
        }
        let kinds = [Kind::Resources, Kind::Templates];
        let reads = servers.iter().flat_map(|s| kinds.map(|kind| self.reread_list(session, s, kind)));
        futures_util::future::join_all(reads).await;
        let any = |uri: &Arc<str>| {
            let found = self.known_uri(session, endpoint, uri);
            Some((uri.clone(), found.or_else(|| self.only_one_with_resources(endpoint, uri))?))
        };
        uris.iter().filter_map(any).collect()
    }

    /// Where a URI leads by all that is known.
    fn known_target(
        self: &Arc<Self>,
        session: &Arc<Session>,
        endpoint: &Endpoint,
        uri: &Arc<str>,
    ) -> Option<Target> {
        match (endpoint.naming, endpoint.servers.as_slice()) {
            (Naming::Bare, [only]) => Some(Target { server: only.clone(), own: uri.clone() }),
            _ => self.known_uri(session, endpoint, uri),
        }
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
    pub(super) fn begin_to_tell(self: &Arc<Self>, reach: &mut Reach, open: &Arc<OpenListen>) {
        let Filter { lists, uris: acknowledged } = reach.granted();
        let (uris, counted) = (reach.subscriptions(), self.counted(reach));
        if counted.servers.is_some() {
            // Only of what counts here is it known below what was before.
            let changed = |kind: &Kind| {
                let now = || self.known_view(&reach.session, &reach.endpoint, *kind).digest();
                reach.session.attached.shown(*kind).is_some_and(|shown| shown != now())
            };
            let changed =
                Kind::ALL.into_iter().filter(changed).map(list_of).fold(Lists::default(), Lists::with);
            open.grant(Grant { lists, acknowledged, uris, counted });
            open.tell(&Filter { lists: changed, ..Filter::default() });
        } else {
            open.grant(Grant { lists, acknowledged, uris, counted });
        }
        self.tell_changes(&reach.session);
        if let Some(afar) = &mut reach.afar {
            self.hear(&reach.session, afar, open);
        }
    }

    /// Of which servers the lists of a listen are, as they are now, or as its caller was last shown them.
    fn counted(self: &Arc<Self>, reach: &Reach) -> Counted {
        let Reach { session, endpoint, .. } = reach;
        let servers = reach.counted();
        let seen = Kind::ALL.map(|kind| match &servers {
            Some(servers) => self.digest_of(session, endpoint, kind, servers),
            None => {
                let now = || self.known_view(session, endpoint, kind).digest();
                session.attached.shown(kind).unwrap_or_else(now)
            }
        });
        Counted { servers, seen }
    }
}
