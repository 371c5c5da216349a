//! Resource subscriptions at legacy servers for listens: made over the implicit session's link, once for all of its
//! listens, and taken back with the last (X41).

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::StreamExt as _;

use crate::protocol::method::Method;
use crate::protocol::object::quoted;
use crate::relay::links::Connected;
use crate::relay::subscribe::subscribed_at;
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

// === impl Relay ===

impl Relay {
    /// Whether a legacy server, to which a link is open, can say anything by itself; waits at most `timeouts.list`
    /// to know.
    pub(in crate::relay) async fn telling(&self, server: &Arc<ServerSettings>) -> Telling {
        if matches!(server.transport, TransportSettings::Stdio(_)) {
            return Telling::Perhaps;
        }
        match tokio::time::timeout(server.timeouts.list, self.catalog.heard(server)).await {
            Ok(Heard::Never) => Telling::Never,
            Ok(Heard::OnStream) | Err(_) => Telling::Perhaps,
        }
    }

    /// Subscribes to resources for one listen; gives those that the server took, counted.
    pub(super) async fn subscribe_all(
        self: &Arc<Self>,
        session: &Arc<Session>,
        server: &Arc<ServerSettings>,
        to: &Connected,
        uris: &BTreeSet<Arc<str>>,
    ) -> BTreeSet<Arc<str>> {
        let taken = std::sync::Mutex::new(BTreeSet::new());
        let all = futures_util::stream::iter(uris).for_each_concurrent(AT_ONCE, |own| {
            let taken = &taken;
            async move {
                // Counted before the server is asked: it may tell of a change before its answer is read.
                let counted = Counted::new(session, server, own);
                if counted.first && !ask(server, to, &Method::ResourcesSubscribe, own).await {
                    return;
                }
                counted.keep();
                lock(taken).insert(own.clone());
            }
        });
        if tokio::time::timeout(server.timeouts.list, all).await.is_err() {
            tracing::warn!(server = %server.name, "not all resources of a listen could be subscribed to in time");
        }
        std::mem::take(&mut *lock(&taken))
    }

    /// Takes the subscriptions of one listen back.
    pub(super) fn unsubscribe_all(
        self: &Arc<Self>,
        session: &Arc<Session>,
        server: &Arc<ServerSettings>,
        uris: Vec<Arc<str>>,
    ) {
        let listens = &session.attached.listens;
        let mut over: Vec<_> =
            uris.into_iter().filter(|own| listens.unsubscribe(&server.name, own)).collect();
        if matches!(server.isolation, Isolation::Shared { .. }) && !over.is_empty() {
            // A shared link serves others too: the server goes on telling while one of them listens.
            let sessions = self.sessions_of(session.attached.tenant.as_deref());
            let others: BTreeSet<_> = sessions.iter().flat_map(|s| subscribed_at(s, &server.name)).collect();
            over.retain(|own| !others.contains(own));
        }
        let Some(to) = self.live_link(session, server).filter(|_| !over.is_empty()) else { return };
        let (server, session) = (server.clone(), session.clone());
        self.tasks.spawn(async move {
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

    /// The open link that a session uses for a server, if there is one.
    pub(super) fn live_link(&self, session: &Session, server: &Arc<ServerSettings>) -> Option<Connected> {
        session.attached.links.live(server).or_else(|| {
            let shared = self.shared.live(session.attached.tenant.as_deref());
            shared.into_iter().find(|(of, _)| Arc::ptr_eq(of, server)).map(|(_, link)| link)
        })
    }
}

/// A subscription that is counted in; counted out again unless it is kept.
struct Counted<'a> {
    session: &'a Arc<Session>,
    server: &'a ServerSettings,
    own: &'a Arc<str>,
    first: bool,
    kept: bool,
}

impl<'a> Counted<'a> {
    fn new(session: &'a Arc<Session>, server: &'a ServerSettings, own: &'a Arc<str>) -> Self {
        let first = session.attached.listens.subscribe(&server.name, own);
        Self { session, server, own, first, kept: false }
    }

    fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        if !self.kept {
            self.session.attached.listens.unsubscribe(&self.server.name, self.own);
        }
    }
}

/// Subscribes or unsubscribes; whether the server did so.
async fn ask(server: &ServerSettings, to: &Connected, method: &Method, own: &str) -> bool {
    let id = to.link.allot();
    let uri = quoted(own);
    let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"uri":{uri}}}}}"#);
    let call = to.link.call(id, text, to.origin.clone());
    matches!(tokio::time::timeout(server.timeouts.list, call).await, Ok(Ok(r)) if r.result().is_some())
}
