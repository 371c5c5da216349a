//! One caller request in flight at one server, and the registry of those of a session.
//!
//! Nothing is keyed by what the caller chose: its JSON-RPC id and progress token are only given back (case-H01,
//! case-H07).

use std::sync::{Arc, Mutex, Weak};

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::Session;
use super::clock::Clock;
use super::listener::Origin;
use super::outlet::Outlet;
use crate::protocol::edit::Edit;
use crate::protocol::envelope::{Notification, Request, Span};
use crate::protocol::method::Method;
use crate::protocol::object::Object;
use crate::session::log::EventKind;
use crate::settings::ServerSettings;
use crate::store::lock;
use crate::upstream::{Link, Listener, Reply, UpstreamId};

/// One caller request in flight at one server.
pub(super) struct Exchange {
    /// The gateway's id of it on the server's leg.
    pub(super) id: UpstreamId,
    /// The caller's id, raw.
    pub(super) caller_id: Box<str>,
    /// The caller's progress token, raw.
    pub(super) caller_token: Option<Box<str>>,
    /// The server.
    pub(super) server: Arc<ServerSettings>,
    /// The link it runs on.
    pub(super) link: Arc<Link>,
    /// Where messages for its caller go.
    pub(super) outlet: Arc<Outlet>,
    /// Its limits in time.
    pub(super) clock: Clock,
    /// The caller's session.
    pub(super) session: Weak<Session>,
    /// Cancelled by the caller.
    pub(super) cancelled: CancellationToken,
    /// What hears the server outside calls: change notices that arrive on the call's stream go there too.
    pub(super) origin: Arc<Origin>,
}

/// The exchanges of one session, oldest first.
#[derive(Default)]
pub(super) struct Exchanges(Mutex<Vec<Arc<Exchange>>>);

/// Keeps an exchange in the registry while it runs.
pub(super) struct Registered {
    session: Arc<Session>,
    pub(super) exchange: Arc<Exchange>,
}

// === impl Exchanges ===

impl Exchanges {
    pub(super) fn register(session: &Arc<Session>, exchange: Arc<Exchange>) -> Registered {
        lock(&session.attached.exchanges.0).push(exchange.clone());
        Registered { session: session.clone(), exchange }
    }

    /// The newest one with this caller's id, raw: a caller that reuses ids can mean only that one.
    pub(super) fn by_caller_id(&self, id: &str) -> Option<Arc<Exchange>> {
        lock(&self.0).iter().rev().find(|e| &*e.caller_id == id).cloned()
    }

    /// The oldest one that runs at this server: what stdio cannot attribute belongs to it (X35).
    pub(super) fn oldest_at(&self, server: &str) -> Option<Arc<Exchange>> {
        lock(&self.0).iter().find(|e| e.server.name == server).cloned()
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        lock(&self.session.attached.exchanges.0).retain(|e| !Arc::ptr_eq(e, &self.exchange));
        // A server that still waits for an answer asked on behalf of a call that is over.
        self.session.attached.asks.drop_of(&self.exchange);
    }
}

// === impl Exchange ===

impl Exchange {
    /// Gives a message to the caller, on the stream of its POST or, if that cannot take it, on the GET.
    pub(super) fn deliver(&self, kind: EventKind, message: Bytes) {
        if !self.outlet.emit(kind, message.clone())
            && let Some(session) = self.session.upgrade()
        {
            session.streams.push_get(kind, message);
        }
    }

    /// Passes progress on under the caller's token; without one the caller asked for none.
    fn progress(&self, message: &Notification) {
        self.clock.progressed();
        let Some(token) = &self.caller_token else { return };
        let place = message.params().and_then(|raw| {
            let params = Object::parse(raw).ok()?;
            Some(Span::of(params.get("progressToken")?, message.bytes()))
        });
        if let Some(place) = place {
            let message = Edit::of(message.bytes()).replace(place, token).finish();
            // Progress is for the stream of its call and for no other.
            self.outlet.emit(EventKind::Progress { exchange: self.id.0 }, message);
        }
    }
}

impl Listener for Exchange {
    fn notification(&self, message: Notification) {
        match message.method() {
            Method::Progress => self.progress(&message),
            Method::Cancelled
            | Method::ToolsListChanged
            | Method::PromptsListChanged
            | Method::ResourcesListChanged
            | Method::ResourcesUpdated => self.origin.notification(message),
            _ => self.deliver(EventKind::Notification, message.bytes().clone()),
        }
    }

    fn request(&self, message: Request, reply: Reply) {
        let Some(session) = self.session.upgrade() else { return };
        let exchange = lock(&session.attached.exchanges.0).iter().find(|e| e.id == self.id).cloned();
        super::ask::ask(&session, &self.server, exchange.as_ref(), &message, reply);
    }

    fn polled(&self, _retry: Option<std::time::Duration>) {
        self.outlet.ask_to_poll();
    }
}
