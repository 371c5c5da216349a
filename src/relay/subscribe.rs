//! Resource subscriptions: made at the server, remembered in the session, made again on a new link.

mod listened;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::StreamExt as _;

use super::call::Ended;
use super::clock::Clock;
use super::conversation::Subscription;
use super::links::Connected;
use super::route::Route;
use super::serving::Serving;
use super::{Relay, Session};
use crate::catalog::{Endpoint, Target};
use crate::protocol::edit::Text;
use crate::protocol::envelope::{Message, Request};
use crate::protocol::error::{Code, RpcError};
use crate::protocol::listen::is_within;
use crate::protocol::method::Method;
use crate::protocol::object::{Object, quoted};
use crate::protocol::revision::Era;
use crate::settings::ServerSettings;
use crate::settings::servers::Isolation;
use crate::store::lock;
use crate::store::sessions::Change;
use crate::upstream::{Hello, Outgoing};

/// How many resources one session may subscribe to; beyond it the oldest record stays and new ones are not renewed.
const MOST_SUBSCRIPTIONS: usize = 1000;
/// The longest URI that can be subscribed to, bytes.
const LONGEST_URI: usize = 8192;

// === impl Relay ===

impl Relay {
    pub(super) async fn subscribe(self: &Arc<Self>, serving: Serving<'_>, route: &Route) -> Option<Text> {
        let Serving { session, request, .. } = serving;
        let Some(uri) = uri(request) else { return self.call(serving, route).await };
        // Remembered before the server is asked: it may tell of a change before its answer is read.
        let added = remember(session, &uri, &route.target);
        if added == Added::NoPlace {
            let message = format!(
                "A session keeps at most {MOST_SUBSCRIPTIONS} subscriptions of at most {LONGEST_URI} bytes each; \
                 unsubscribe from some."
            );
            let error = RpcError::new(Code::InvalidParams, "too_many_subscriptions", message);
            return Some(error.to_message(Some(request.id()), Some(&serving.outlet.request_id())).into());
        }
        let clock = Clock::start(&route.target.server.timeouts);
        let response = match self.era_at(serving, route, &clock).await {
            Ok(Era::Legacy) => self.call(serving, route).await,
            Ok(Era::Modern) => {
                let ended = self.listen_for(serving, route, &clock, &uri).await;
                self.conclude(serving, route, &clock, ended)
            }
            Err(ended) => self.conclude(serving, route, &clock, ended),
        };
        if response.as_ref().is_some_and(succeeded) {
            let _ = self.sessions.change(session, Change::Subscribe(uri)).await;
        } else if added == Added::Now {
            forget(session, &uri);
        }
        response
    }

    pub(super) async fn unsubscribe(self: &Arc<Self>, serving: Serving<'_>, route: &Route) -> Option<Text> {
        let Serving { session, request, .. } = serving;
        if let Some(uri) = uri(request) {
            forget(session, &uri);
            let _ = self.sessions.change(session, Change::Unsubscribe(uri)).await;
        }
        let (server, own) = (&route.target.server, &route.target.own);
        let shared = matches!(server.isolation, Isolation::Shared { .. });
        let subscribed = |s: &Arc<Session>| subscribed_at(s, &server.name).contains(own);
        // A shared link serves others too: the server goes on telling while one of them listens.
        if shared && self.sessions_of(session.attached.tenant.as_deref()).iter().any(subscribed) {
            return Some(super::request::respond(request.id(), b"{}").into());
        }
        let clock = Clock::start(&server.timeouts);
        match self.era_at(serving, route, &clock).await {
            Ok(Era::Legacy) => self.call(serving, route).await,
            // It is listened to for this no longer than somebody wants it.
            Ok(Era::Modern) => self.conclude(serving, route, &clock, Ended::Done),
            Err(ended) => self.conclude(serving, route, &clock, ended),
        }
    }
}

impl Relay {
    /// Remembers what an adopted session subscribed to; gives the servers.
    pub(super) async fn remember_all(
        self: &Arc<Self>,
        session: &Arc<Session>,
        endpoint: &Arc<Endpoint>,
        uris: BTreeSet<String>,
    ) -> Vec<Arc<ServerSettings>> {
        let mut servers: BTreeMap<String, Arc<ServerSettings>> = BTreeMap::new();
        for uri in uris {
            let Ok(target) = self.resource_target(session, endpoint, &uri).await else { continue };
            servers.insert(target.server.name.clone(), target.server.clone());
            remember(session, &uri, &target);
        }
        servers.into_values().collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Added {
    Now,
    Before,
    NoPlace,
}

fn remember(session: &Session, uri: &str, target: &Target) -> Added {
    let mut all = lock(&session.attached.subscriptions);
    if all.contains_key(uri) {
        return Added::Before;
    }
    if all.len() >= MOST_SUBSCRIPTIONS || uri.len() > LONGEST_URI {
        return Added::NoPlace;
    }
    let (server, own) = (target.server.name.as_str().into(), target.own.clone());
    let subscription = Subscription { server, own, listened: None };
    all.insert(uri.to_owned(), subscription);
    Added::Now
}

fn forget(session: &Session, uri: &str) {
    let gone = lock(&session.attached.subscriptions).remove(uri);
    // What it held is let go of without the lock.
    drop(gone);
}

/// How many subscriptions are made again at once.
const RENEWED_AT_ONCE: usize = 16;

/// Makes subscriptions again on a new link, all of them within `timeouts.list`: callers wait for the link meanwhile.
pub(super) async fn renew_all(server: &ServerSettings, to: &Connected, uris: BTreeSet<Arc<str>>) {
    let all = futures_util::stream::iter(uris).for_each_concurrent(RENEWED_AT_ONCE, |uri| async move {
        if !ask(server, to, &Method::ResourcesSubscribe, &uri).await {
            tracing::warn!(server = %server.name, "a resource subscription could not be made again");
        }
    });
    if tokio::time::timeout(server.timeouts.list, all).await.is_err() {
        tracing::warn!(server = %server.name, "not all resource subscriptions could be made again in time");
    }
}

/// Subscribes or unsubscribes at a legacy server; whether the server did so.
pub(super) async fn ask(server: &ServerSettings, to: &Connected, method: &Method, own: &str) -> bool {
    let id = to.link.allot();
    let params = format!(r#""uri":{}"#, quoted(own));
    let request = Outgoing::own(Era::Legacy, id, method, &params, &Hello::own());
    let call = to.link.call(id, request, to.origin.clone());
    matches!(tokio::time::timeout(server.timeouts.list, call).await, Ok(Ok(r)) if r.result().is_some())
}

/// The server's own URIs that a session subscribed to.
pub(super) fn subscribed_at(session: &Session, server: &str) -> Vec<Arc<str>> {
    let mut at = session.attached.listens.subscribed_at(server);
    let all = lock(&session.attached.subscriptions);
    at.extend(all.values().filter(|s| *s.server == *server).map(|s| s.own.clone()));
    at
}

/// Whether a session subscribed to this URI of the server, or to one above it (N7).
pub(super) fn is_subscribed(session: &Session, server: &str, own: &str) -> bool {
    lock(&session.attached.subscriptions).values().any(|s| *s.server == *server && is_within(own, &s.own))
}

/// What the caller calls a URI of the server: as it subscribed to it, or to the nearest one above it.
pub(super) fn callers_uri(session: &Session, server: &str, own: &str) -> String {
    let all = lock(&session.attached.subscriptions);
    let above = all.iter().filter(|(_, s)| *s.server == *server && is_within(own, &s.own));
    match above.max_by_key(|(_, s)| s.own.len()) {
        Some((uri, s)) => format!("{uri}{}", own.get(s.own.len()..).unwrap_or_default()),
        None => own.to_owned(),
    }
}

fn uri(request: &Request) -> Option<String> {
    Some(Object::parse(request.params()?).ok()?.text("uri")?.into_owned())
}

fn succeeded(response: &Text) -> bool {
    matches!(Message::parse(response.clone().join()), Ok(Message::Response(r)) if r.result().is_some())
}
