//! What hears a server outside its calls, on behalf of one session.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::ask::{self, Belonging};
use super::tasks::{about_task, renamed};
use super::{Relay, Session, parked, subscribe};
use crate::catalog::Kind;
use crate::protocol::envelope::{Notification, Request};
use crate::protocol::method::Method;
use crate::protocol::object::Object;
use crate::protocol::revision::Era;
use crate::session::log::EventKind;
use crate::session::notices::Notice;
use crate::settings::ServerSettings;
use crate::settings::servers::TransportSettings;
use crate::store::sessions::Change;
use crate::store::{ServerState, lock};
use crate::upstream::{Heard, Listener, Reply};

/// How long the store may take to note a session at a server before that is used all the same.
const STORED_WITHIN: Duration = Duration::from_secs(1);

/// One server as heard by one session.
pub(super) struct Origin {
    pub(super) relay: Weak<Relay>,
    pub(super) session: Weak<Session>,
    pub(super) server: Arc<ServerSettings>,
}

// === impl Origin ===

impl Origin {
    fn changed(&self, session: &Arc<Session>, kinds: &'static [Kind]) {
        if let Some(relay) = self.relay.upgrade() {
            relay.list_changed(session, &self.server, kinds);
        }
    }

    fn unattributed(&self) {
        if let Some(relay) = self.relay.upgrade() {
            relay.metrics.unattributed(&self.server.name);
        }
    }

    fn is_stdio(&self) -> bool {
        matches!(self.server.transport, TransportSettings::Stdio(_))
    }

    /// A message that belongs to no call we can name: on stdio it is taken for the oldest one that runs.
    fn stray(&self, session: &Session, message: Bytes) {
        let exchange = session.attached.running.oldest_at(&self.server.name).filter(|_| self.is_stdio());
        match exchange {
            Some(exchange) => exchange.deliver(EventKind::Notification, message),
            None => drop(session.streams.push_get(EventKind::Notification, message)),
        }
    }
}

impl Listener for Origin {
    fn notification(&self, message: Notification) {
        let Some(session) = self.session.upgrade() else { return };
        match message.method() {
            Method::ToolsListChanged => self.changed(&session, &[Kind::Tools]),
            Method::PromptsListChanged => self.changed(&session, &[Kind::Prompts]),
            Method::ResourcesListChanged => self.changed(&session, &[Kind::Resources, Kind::Templates]),
            Method::ResourcesUpdated => {
                let uri = message.params().and_then(|p| Object::parse(p).ok()?.text("uri"));
                if let (Some(uri), Some(relay)) = (uri, self.relay.upgrade()) {
                    // Over a link of its own, what a legacy session hears is the server's choice.
                    match session.revision().era() {
                        Era::Legacy => {
                            let uri = subscribe::callers_uri(&session, &self.server.name, &uri);
                            session.streams.notice(Notice::Updated(uri));
                        }
                        Era::Modern => relay.tell_updated(&session, &self.server.name, &uri),
                    }
                }
            }
            Method::Cancelled if is_modern(&session) => {
                parked::take_back(&session.attached.running.heard_by(self), &message);
            }
            Method::Cancelled => ask::take_back(&session, &self.server.name, None, &message),
            // Of a call that is over, or of what only legacy callers were told of.
            Method::TaskStatus | Method::Progress if is_modern(&session) => {}
            // A message that cannot be told whose it is is nobody's (X39).
            _ if is_modern(&session) => {
                if let [only] = session.attached.running.heard_by(self).as_slice() {
                    only.notification(message);
                }
            }
            // Of a task, or of a call that is over.
            Method::TaskStatus | Method::Progress => {
                match about_task(&session, &self.server.name, &message) {
                    Some(message) if session.streams.get_is_open() => {
                        session.streams.push_get(EventKind::Notification, message);
                    }
                    Some(message) => self.stray(&session, message),
                    None => self.unattributed(),
                }
            }
            _ => self.stray(&session, renamed(&session, &self.server.name, &message)),
        }
    }

    fn request(&self, message: Request, reply: Reply) {
        let Some(session) = self.session.upgrade() else { return };
        if is_modern(&session) {
            let calls = session.attached.running.heard_by(self);
            let whose = if self.is_stdio() { parked::on_turn(calls) } else { parked::only(calls) };
            return parked::ask(&session, whose.as_ref(), &message, reply);
        }
        let oldest = session.attached.running.oldest_at(&self.server.name);
        let belonging = match oldest {
            Some(exchange) if self.is_stdio() => Belonging::Perhaps(exchange),
            oldest => Belonging::Link(oldest),
        };
        ask::ask(&session, &self.server, &belonging, &message, reply);
    }

    fn ask_era(&self, remembered: Era) -> BoxFuture<'static, Option<Era>> {
        let (relay, server) = (self.relay.upgrade(), self.server.clone());
        async move { relay?.doubt(&server, remembered).await }.boxed()
    }

    fn heard(&self, heard: Heard) {
        if let Some(relay) = self.relay.upgrade() {
            relay.catalog.note_heard(&self.server, heard);
        }
    }

    fn standalone_at(&self, cursor: &str) {
        if let Some(session) = self.session.upgrade() {
            session.attached.cursors.stand(&self.server.name, cursor);
        }
    }

    fn begun(&self, state: ServerState) -> BoxFuture<'_, ()> {
        let (Some(relay), Some(session)) = (self.relay.upgrade(), self.session.upgrade()) else {
            return std::future::ready(()).boxed();
        };
        let server: Box<str> = self.server.name.as_str().into();
        session.attached.cursors.forget(&server);
        lock(&session.attached.servers).insert(server.clone(), state.clone());
        async move {
            // Without it an adopter would begin anew at the server; that is no reason to fail here.
            let change = Change::Server(server, Some(state));
            let _ = tokio::time::timeout(STORED_WITHIN, relay.sessions.change(&session, change)).await;
        }
        .boxed()
    }

    fn renewed(&self) {
        if let (Some(relay), Some(session)) = (self.relay.upgrade(), self.session.upgrade())
            && let Some(found) = session.attached.links.live(&self.server)
        {
            let server = self.server.clone();
            relay.tasks.clone().spawn(async move {
                relay.catalog.introduce(&server, &found.link.introduction());
                relay.restore(&session, &server, &found).await;
                relay.list_changed(&session, &server, &Kind::ALL);
                session.attached.listens.missed(&server.name);
            });
        }
    }
}

fn is_modern(session: &Session) -> bool {
    session.revision().era() == Era::Modern
}
