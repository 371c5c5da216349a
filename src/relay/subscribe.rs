//! Resource subscriptions: made at the server, remembered in the session, made again on a new link.

use std::sync::Arc;

use super::conversation::Subscription;
use super::outlet::Outlet;
use super::route::Route;
use super::{Relay, Session};
use crate::protocol::edit::Text;
use crate::protocol::envelope::{Message, Request};
use crate::protocol::object::Object;
use crate::settings::servers::Isolation;
use crate::store::lock;
use crate::store::sessions::Change;

/// How many resources one session may subscribe to; beyond it the oldest record stays and new ones are not renewed.
const MOST_SUBSCRIPTIONS: usize = 10_000;

// === impl Relay ===

impl Relay {
    pub(super) async fn subscribe(
        self: &Arc<Self>,
        session: &Arc<Session>,
        request: &Request,
        route: Route,
        outlet: &Arc<Outlet>,
    ) -> Option<Text> {
        let (server, own) = (route.target.server.name.clone(), route.target.own.clone());
        let response = self.call(session, request, route, outlet).await?;
        if let Some(uri) = uri(request).filter(|_| succeeded(&response)) {
            let subscription = Subscription { server: server.as_str().into(), own };
            {
                let mut all = lock(&session.attached.subscriptions);
                if all.len() < MOST_SUBSCRIPTIONS {
                    all.insert(uri.clone(), subscription);
                }
            }
            let _ = self.sessions.change(session, Change::Subscribe(uri)).await;
        }
        Some(response)
    }

    pub(super) async fn unsubscribe(
        self: &Arc<Self>,
        session: &Arc<Session>,
        request: &Request,
        route: Route,
        outlet: &Arc<Outlet>,
    ) -> Option<Text> {
        if let Some(uri) = uri(request) {
            lock(&session.attached.subscriptions).remove(&uri);
            let _ = self.sessions.change(session, Change::Unsubscribe(uri)).await;
        }
        let (server, own) = (&route.target.server, &route.target.own);
        let shared = matches!(server.isolation, Isolation::Shared { .. });
        // A shared link serves others too: the server goes on telling while one of them listens.
        if shared && self.sessions.all().iter().any(|s| is_subscribed(s, &server.name, own)) {
            return Some(super::request::respond(request.id(), b"{}").into());
        }
        self.call(session, request, route, outlet).await
    }
}

/// Whether a session subscribed to this URI of the server, or to one above it (N7).
pub(super) fn is_subscribed(session: &Session, server: &str, own: &str) -> bool {
    lock(&session.attached.subscriptions).values().any(|s| &*s.server == server && own.starts_with(&*s.own))
}

/// What the caller calls a URI of the server.
pub(super) fn callers_uri(session: &Session, server: &str, own: &str) -> String {
    lock(&session.attached.subscriptions)
        .iter()
        .find(|(_, s)| &*s.server == server && &*s.own == own)
        .map_or_else(|| own.to_owned(), |(uri, _)| uri.clone())
}

fn uri(request: &Request) -> Option<String> {
    Some(Object::parse(request.params()?).ok()?.text("uri")?.into_owned())
}

fn succeeded(response: &Text) -> bool {
    matches!(Message::parse(response.clone().join()), Ok(Message::Response(r)) if r.result().is_some())
}
