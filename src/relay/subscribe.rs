//! Resource subscriptions: made at the server, remembered in the session, made again on a new link.

use std::sync::Arc;

use super::conversation::Subscription;
use super::links::Connected;
use super::route::Route;
use super::serving::Serving;
use super::{Relay, Session};
use crate::protocol::edit::Text;
use crate::protocol::envelope::{Message, Request};
use crate::protocol::object::{Object, quoted};
use crate::settings::ServerSettings;
use crate::settings::servers::Isolation;
use crate::store::lock;
use crate::store::sessions::Change;

/// How many resources one session may subscribe to; beyond it the oldest record stays and new ones are not renewed.
const MOST_SUBSCRIPTIONS: usize = 10_000;

// === impl Relay ===

impl Relay {
    pub(super) async fn subscribe(self: &Arc<Self>, serving: Serving<'_>, route: &Route) -> Option<Text> {
        let Serving { session, request, .. } = serving;
        let Some(uri) = uri(request) else { return self.call(serving, route).await };
        // Remembered before the server is asked: it may tell of a change before its answer is read.
        let added = remember(session, &uri, route);
        let response = self.call(serving, route).await;
        if response.as_ref().is_some_and(succeeded) {
            let _ = self.sessions.change(session, Change::Subscribe(uri)).await;
        } else if added == Added::Now {
            lock(&session.attached.subscriptions).remove(&uri);
        }
        response
    }

    pub(super) async fn unsubscribe(self: &Arc<Self>, serving: Serving<'_>, route: &Route) -> Option<Text> {
        let Serving { session, request, .. } = serving;
        if let Some(uri) = uri(request) {
            lock(&session.attached.subscriptions).remove(&uri);
            let _ = self.sessions.change(session, Change::Unsubscribe(uri)).await;
        }
        let (server, own) = (&route.target.server, &route.target.own);
        let shared = matches!(server.isolation, Isolation::Shared { .. });
        let subscribed = |s: &Arc<Session>| subscribed_at(s, &server.name).contains(own);
        // A shared link serves others too: the server goes on telling while one of them listens.
        if shared && self.sessions_of(session.attached.tenant.as_deref()).iter().any(subscribed) {
            return Some(super::request::respond(request.id(), b"{}").into());
        }
        self.call(serving, route).await
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Added {
    Now,
    Before,
}

fn remember(session: &Session, uri: &str, route: &Route) -> Added {
    let mut all = lock(&session.attached.subscriptions);
    if all.contains_key(uri) || all.len() >= MOST_SUBSCRIPTIONS {
        return Added::Before;
    }
    let target = &route.target;
    let subscription = Subscription { server: target.server.name.as_str().into(), own: target.own.clone() };
    all.insert(uri.to_owned(), subscription);
    Added::Now
}

/// Makes a subscription again on a new link.
pub(super) async fn renew(server: &ServerSettings, to: &Connected, uri: &str) {
    let id = to.link.allot();
    let uri = quoted(uri);
    let text =
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"resources/subscribe","params":{{"uri":{uri}}}}}"#);
    let call = to.link.call(id, text.into(), to.origin.clone());
    if !matches!(tokio::time::timeout(server.timeouts.list, call).await, Ok(Ok(r)) if r.result().is_some()) {
        tracing::warn!(server = %server.name, "a resource subscription could not be made again");
    }
}

/// The server's own URIs that a session subscribed to.
pub(super) fn subscribed_at(session: &Session, server: &str) -> Vec<Arc<str>> {
    let all = lock(&session.attached.subscriptions);
    all.values().filter(|s| *s.server == *server).map(|s| s.own.clone()).collect()
}

/// Whether a session subscribed to this URI of the server, or to one above it (N7).
pub(super) fn is_subscribed(session: &Session, server: &str, own: &str) -> bool {
    lock(&session.attached.subscriptions).values().any(|s| *s.server == *server && own.starts_with(&*s.own))
}

/// What the caller calls a URI of the server: as it subscribed to it, or to the nearest one above it.
pub(super) fn callers_uri(session: &Session, server: &str, own: &str) -> String {
    let all = lock(&session.attached.subscriptions);
    let above = all.iter().filter(|(_, s)| *s.server == *server && own.starts_with(&*s.own));
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
