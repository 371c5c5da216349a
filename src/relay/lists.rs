//! The lists a caller sees: from the shelf where they are known, read from servers where they are not.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::time::error::Elapsed;

use super::reading::Reader;
use super::request::{Next, no_cursor};
use super::serving::Serving;
use super::shared::SHARED_CLASS;
use super::{Relay, Session};
use crate::catalog::endpoint::Part;
use crate::catalog::hints;
use crate::catalog::shelf::Outcome;
use crate::catalog::{CallerClass, Endpoint, Hints, Kind, Scope, View};
use crate::protocol::edit::Text;
use crate::protocol::error::RpcError;
use crate::protocol::meta;
use crate::settings::ServerSettings;
use crate::settings::servers::Isolation;

/// What the gateway calls itself.
pub(super) const SERVER_INFO: &str =
    concat!(r#"{"name":"mcpgate","version":""#, env!("CARGO_PKG_VERSION"), r#""}"#);

/// What a look at a view does beside looking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// Has lists that are due read again, behind the caller's back.
    Refreshing,
    /// Nothing.
    Only,
}

// === impl Relay ===

impl Relay {
    /// What the caller of `session` sees of one kind at `endpoint`, from what is known; waits for no server.
    ///
    /// While nothing changes this is a look into two maps, however many servers there are.
    pub(super) fn view(
        self: &Arc<Self>,
        session: &Arc<Session>,
        endpoint: &Endpoint,
        kind: Kind,
    ) -> Arc<View> {
        let current = |view: &Arc<View>| view.is_current(self.catalog.generation());
        if let Some(view) = last_shared(session, endpoint, kind).filter(current) {
            return view;
        }
        let view = self.assembled(session, endpoint, kind, Look::Refreshing);
        view.checked();
        view
    }

    /// The same without any reading.
    pub(super) fn known_view(
        self: &Arc<Self>,
        session: &Arc<Session>,
        endpoint: &Endpoint,
        kind: Kind,
    ) -> Arc<View> {
        let unchanged = |view: &Arc<View>| view.is_of_generation(self.catalog.generation());
        if let Some(view) = last_shared(session, endpoint, kind).filter(unchanged) {
            return view;
        }
        self.assembled(session, endpoint, kind, Look::Only)
    }

    /// What a list request is answered with; a server never listed before is waited for, within `timeouts.list`, and so
    /// is one whose list is older than it lets anyone keep it.
    pub(super) async fn list(
        self: &Arc<Self>,
        session: &Arc<Session>,
        endpoint: &Endpoint,
        kind: Kind,
    ) -> Arc<View> {
        let view = self.whole_view(session, endpoint, kind).await;
        session.attached.show(kind, view.digest());
        self.want_shown(session, endpoint, kind);
        view
    }

    /// The answer to a list request of a modern caller: the items are those that legacy callers are given, behind a
    /// head that says how they may be kept (K1, K6) and who answers (M6). That is the gateway, also where only one
    /// server is behind it: it is the gateway's list.
    pub(super) async fn listed_modern(
        self: &Arc<Self>,
        serving: Serving<'_>,
        kind: Kind,
    ) -> Result<Next, RpcError> {
        let Serving { session, endpoint, request, .. } = serving;
        no_cursor(request)?;
        let view = self.list(session, endpoint, kind).await;
        let head =
            format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{{},"#, request.id(), complete(view.hints()),);
        // The view's own brace is in the head.
        Ok(Next::Caller(Text { head: head.into(), tail: view.result_and_brace().slice(1..) }))
    }

    /// The same for nobody to see: the caller is not taken to know it.
    pub(super) async fn whole_view(
        self: &Arc<Self>,
        session: &Arc<Session>,
        endpoint: &Endpoint,
        kind: Kind,
    ) -> Arc<View> {
        let view = self.view(session, endpoint, kind);
        match self.await_lists(session, &view, &endpoint.servers, kind).await {
            0 => view,
            _ => self.view(session, endpoint, kind),
        }
    }

    /// Waits for the lists of `servers` that `view` lacks, or that are too old to be shown; gives how many those were.
    pub(super) async fn await_lists(
        self: &Arc<Self>,
        session: &Arc<Session>,
        view: &View,
        servers: &[Arc<ServerSettings>],
        kind: Kind,
    ) -> usize {
        let is_overdue = |server| self.catalog.of(server).shelf(class_for(session, server)).is_overdue(kind);
        let missing = servers.iter().filter(|server| !view.has(server) || is_overdue(server));
        let reads: Vec<_> = missing.map(|server| self.await_list(session, server, kind)).collect();
        let count = reads.len();
        futures_util::future::join_all(reads).await;
        count
    }

    /// Tells apart what is known of the lists of those servers of an endpoint that are `named`.
    pub(super) fn digest_of(
        &self,
        session: &Session,
        endpoint: &Endpoint,
        kind: Kind,
        named: &[Arc<str>],
    ) -> u64 {
        let mut digest = DefaultHasher::new();
        for server in endpoint.servers.iter().filter(|s| named.iter().any(|name| **name == *s.name)) {
            let shelved = || self.catalog.of(server).shelf(class_for(session, server)).known(kind);
            if let Some(list) = session.attached.own_lists.get(&server.name, kind).or_else(shelved) {
                (&server.name, list.digest).hash(&mut digest);
            }
        }
        digest.finish()
    }

    /// Looks again, at the servers themselves, since a name was asked for that no list has; within `timeouts.list`,
    /// or until `found` says that enough is known.
    pub(super) async fn view_again(
        self: &Arc<Self>,
        session: &Arc<Session>,
        endpoint: &Endpoint,
        kind: Kind,
        found: impl Fn(&View) -> bool,
    ) -> Arc<View> {
        let reads = endpoint.servers.iter().map(|server| self.reread_list(session, server, kind));
        let mut reads: FuturesUnordered<_> = reads.collect();
        while reads.next().await.is_some() {
            let view = self.view(session, endpoint, kind);
            if found(&view) {
                return view;
            }
        }
        self.view(session, endpoint, kind)
    }

    /// The view of the lists as they are.
    fn assembled(
        self: &Arc<Self>,
        session: &Arc<Session>,
        endpoint: &Endpoint,
        kind: Kind,
        look: Look,
    ) -> Arc<View> {
        // Taken before the lists are, so that a change meanwhile makes the view an old one.
        let generation = self.catalog.generation();
        let mut parts: Vec<Part> = Vec::with_capacity(endpoint.servers.len());
        let mut own = false;
        let scope = if endpoint.shows_all_as_is() { Scope::Public } else { Scope::Private };
        let mut hints = Hints { ttl: hints::MOST, scope };
        for server in &endpoint.servers {
            let shelf = self.catalog.of(server).shelf(class_for(session, server));
            if look == Look::Refreshing
                && shelf.is_due(kind)
                && shelf.last_good(kind).is_some()
                && !session.attached.own_lists.concern(&server.name, kind)
            {
                self.read_list(&Reader::for_session(session, server), server, kind);
            }
            let shelved = shelf.known(kind);
            let list = match session.attached.own_lists.get(&server.name, kind) {
                Some(list) if shelved.as_ref().is_none_or(|s| s.digest != list.digest) => {
                    own = true;
                    hints = hints.and(Hints::default());
                    Some(list)
                }
                _ => {
                    hints = hints.and(if shelved.is_some() { shelf.hints(kind) } else { Hints::default() });
                    shelved
                }
            };
            parts.extend(list.map(|list| (server.clone(), list)));
        }
        let view = if own {
            session.attached.own_lists.view(endpoint, kind, parts)
        } else {
            endpoint.view(class_of(session), kind, parts)
        };
        view.stamp(generation);
        view.keep(hints);
        view
    }

    /// Waits for a list that nobody knows yet, or that is too old to be shown, no longer than `timeouts.list`; the reading goes on regardless.
    async fn await_list(self: &Arc<Self>, session: &Arc<Session>, server: &Arc<ServerSettings>, kind: Kind) {
        let shelf = self.catalog.of(server).shelf(class_for(session, server));
        // A server that failed a moment ago is not waited for; it is tried again behind the caller's back.
        if shelf.may_be_behind(kind) {
            match self.awaited(session, server, kind).await {
                Ok(Some(_)) => return,
                Ok(None) => {}
                Err(_) if self.catalog.of(server).is_late() => {
                    let limit = server.timeouts.list;
                    tracing::warn!(server = %server.name, "server `{}` has not answered within timeouts.list ({limit:?}): lists go out without it until it has", server.name);
                }
                Err(_) => {}
            }
        }
        self.metrics.list_failed(&server.name);
    }

    pub(super) async fn reread_list(
        self: &Arc<Self>,
        session: &Arc<Session>,
        server: &Arc<ServerSettings>,
        kind: Kind,
    ) {
        if session.attached.own_lists.concern(&server.name, kind) {
            let relist = self.relist(session, server, kind);
            let _ = tokio::time::timeout(server.timeouts.list, relist).await;
            return;
        }
        let shelf = self.catalog.of(server).shelf(class_for(session, server));
        if shelf.may_be_behind(kind) && !matches!(self.awaited(session, server, kind).await, Ok(Some(_))) {
            self.metrics.list_failed(&server.name);
        }
    }

    /// Has a list read, and waits for it until the reading has run for `timeouts.list`. A reading that another
    /// session began and that failed may have failed with that session, so it is done once more.
    async fn awaited(
        self: &Arc<Self>,
        session: &Arc<Session>,
        server: &Arc<ServerSettings>,
        kind: Kind,
    ) -> Result<Outcome, Elapsed> {
        let reader = Reader::for_session(session, server);
        let begun = tokio::time::Instant::now();
        loop {
            let waiting = self.read_list(&reader, server, kind);
            let (began, patience) = (waiting.began, server.timeouts.list);
            let left = patience.saturating_sub(began.elapsed());
            let outcome = tokio::time::timeout(left, waiting.outcome()).await?;
            if outcome.is_some() || began >= begun {
                return Ok(outcome);
            }
        }
    }
}

/// What every cacheable result of the gateway's own begins with: that it is whole, how it may be kept, and whose it is.
pub(super) fn complete(hints: Hints) -> String {
    format!(
        r#""resultType":"complete","ttlMs":{},"cacheScope":"{}","_meta":{{"{}":{SERVER_INFO}}}"#,
        hints.ttl.as_millis(),
        hints.scope.as_str(),
        meta::SERVER_INFO,
    )
}

/// What callers of the session's class saw last, if the session has no lists of its own.
fn last_shared(session: &Session, endpoint: &Endpoint, kind: Kind) -> Option<Arc<View>> {
    let shares = !session.attached.own_lists.are_any();
    shares.then(|| endpoint.last_view(class_of(session), kind)).flatten()
}

/// The class of a session's caller.
pub(super) fn class_of(session: &Session) -> CallerClass {
    CallerClass { revision: session.revision(), capabilities: session.greeting.class }
}

/// The class under which a server's lists are kept for a session.
pub(super) fn class_for(session: &Session, server: &ServerSettings) -> CallerClass {
    match server.isolation {
        Isolation::Session => class_of(session),
        Isolation::Shared { .. } => SHARED_CLASS,
    }
}
