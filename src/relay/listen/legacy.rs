//! Resource subscriptions at legacy servers for listens: made over the implicit session's link, once for all of its
//! listens, and taken back with the last (X41).

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use futures_util::StreamExt as _;
use tokio::time::Instant;

use crate::protocol::method::Method;
use crate::relay::links::Connected;
use crate::relay::subscribe::{ask, subscribed_at};
use crate::relay::{Relay, Session};
use crate::settings::ServerSettings;
use crate::settings::servers::{Isolation, TransportSettings};
use crate::store::lock;
use crate::upstream::Heard;

/// How many subscriptions are made at once.
const AT_ONCE: usize = 16;

/// Whether a legacy server can say anything by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::relay) enum Telling {
    /// It can, or may.
    Perhaps,
    /// It is reached over HTTP and offers no stream for that (X41).
    Never,
}

/// Resources of a legacy server that one listen subscribed to, until this is dropped.
pub(super) struct Subscribed {
    relay: Arc<Relay>,
    session: Arc<Session>,
    server: Arc<ServerSettings>,
    taken: Mutex<BTreeSet<Arc<str>>>,
}

// === impl Relay ===

impl Relay {
    /// Whether a legacy server, to which a link is open, can say anything by itself; waits until `deadline`
    /// at most to know.
    pub(in crate::relay) async fn telling(&self, server: &Arc<ServerSettings>, deadline: Instant) -> Telling {
        if matches!(server.transport, TransportSettings::Stdio(_)) {
            return Telling::Perhaps;
        }
        match tokio::time::timeout_at(deadline, self.catalog.heard(server)).await {
            Ok(Heard::Never) => Telling::Never,
            Ok(Heard::OnStream) | Err(_) => Telling::Perhaps,
        }
    }

    /// Subscribes to resources for one listen, until `deadline`; what the server took stays taken for as long as what this gives lives.
    pub(super) async fn subscribe_all(
        self: &Arc<Self>,
        session: &Arc<Session>,
        server: &Arc<ServerSettings>,
        to: &Connected,
        uris: &BTreeSet<Arc<str>>,
        deadline: Instant,
    ) -> Subscribed {
        let (relay, session) = (self.clone(), session.clone());
        let subscribed = Subscribed { relay, session, server: server.clone(), taken: Mutex::default() };
        let all = futures_util::stream::iter(uris).for_each_concurrent(AT_ONCE, |own| {
            let subscribed = &subscribed;
            async move {
                // Counted before the server is asked: it may tell of a change before its answer is read.
                let counted = Counted::new(subscribed, own);
                if !counted.first || ask(server, to, &Method::ResourcesSubscribe, own).await {
                    counted.keep();
                }
            }
        });
        if tokio::time::timeout_at(deadline, all).await.is_err() {
            tracing::warn!(server = %server.name, "not all resources of a listen could be subscribed to in time");
        }
        subscribed
    }

    /// The open link that a session uses for a server, if there is one.
    pub(super) fn live_link(&self, session: &Session, server: &Arc<ServerSettings>) -> Option<Connected> {
        session.attached.links.live(server).or_else(|| {
            let shared = self.shared.live(session.attached.tenant.as_deref());
            shared.into_iter().find(|(of, _)| Arc::ptr_eq(of, server)).map(|(_, link)| link)
        })
    }
}

// === impl Subscribed ===

impl Subscribed {
    /// The server's own URIs that it took.
    pub(super) fn uris(&self) -> BTreeSet<Arc<str>> {
        lock(&self.taken).clone()
    }
}

impl Drop for Subscribed {
    fn drop(&mut self) {
        let Self { relay, session, server, taken } = self;
        let listens = &session.attached.listens;
        let taken = std::mem::take(&mut *lock(taken));
        let mut over: Vec<_> =
            taken.into_iter().filter(|own| listens.unsubscribe(&server.name, own)).collect();
        if matches!(server.isolation, Isolation::Shared { .. }) && !over.is_empty() {
            // A shared link serves others too: the server goes on telling while one of them listens.
            let sessions = relay.sessions_of(session.attached.tenant.as_deref());
            let others: BTreeSet<_> = sessions.iter().flat_map(|s| subscribed_at(s, &server.name)).collect();
            over.retain(|own| !others.contains(own));
        }
        let Some(to) = relay.live_link(session, server).filter(|_| !over.is_empty()) else { return };
        let (server, session) = (server.clone(), session.clone());
        relay.tasks.spawn(async move {
            let all = futures_util::stream::iter(over).for_each_concurrent(AT_ONCE, |own| {
                let (server, to, session) = (&server, &to, &session);
                async move {
                    // Another listen may have come for it meanwhile.
                    if !session.attached.listens.subscribed_at(&server.name).contains(&own) {
                        ask(server, to, &Method::ResourcesUnsubscribe, &own).await;
                    }
                }
            });
            let _ = tokio::time::timeout(server.timeouts.list, all).await;
        });
    }
}

/// A subscription that is counted in; counted out again unless it is kept.
struct Counted<'a> {
    of: &'a Subscribed,
    own: &'a Arc<str>,
    /// Whether no other listen of the session has it.
    first: bool,
    kept: bool,
}

impl<'a> Counted<'a> {
    fn new(of: &'a Subscribed, own: &'a Arc<str>) -> Self {
        let first = of.session.attached.listens.subscribe(&of.server.name, own);
        Self { of, own, first, kept: false }
    }

    fn keep(mut self) {
        self.kept = true;
        lock(&self.of.taken).insert(self.own.clone());
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        if !self.kept {
            self.of.session.attached.listens.unsubscribe(&self.of.server.name, self.own);
        }
    }
}
