//! One caller request in flight at one server, and where what the server says meanwhile goes.
//!
//! The caller's progress token is only given back; the server sees the gateway's own (case-H07).

use std::sync::{Arc, Mutex, Weak};

use bytes::Bytes;

use super::Session;
use super::ask::{self, Belonging};
use super::clock::Clock;
use super::outlet::Outlet;
use super::parked::{self, ForModern};
use super::tasks::{about_task, renamed};
use crate::protocol::edit::Edit;
use crate::protocol::envelope::{Notification, Request, Span};
use crate::protocol::error::Code;
use crate::protocol::method::Method;
use crate::protocol::object::Object;
use crate::session::journal::Origin;
use crate::session::log::EventKind;
use crate::settings::ServerSettings;
use crate::store::event_log::Question;
use crate::store::lock;
use crate::upstream::{Link, Listener, Reply};

/// One caller request in flight at one server.
pub(super) struct Exchange {
    /// Tells it apart from all others of its session.
    pub(super) number: u64,
    /// The caller's progress token, raw.
    pub(super) caller_token: Option<Box<str>>,
    /// The server.
    pub(super) server: Arc<ServerSettings>,
    /// The link it runs on: a server's ids count on one link only.
    pub(super) link: Arc<Link>,
    /// Where messages for its caller go.
    pub(super) outlet: Arc<Outlet>,
    /// Its limits in time.
    pub(super) clock: Arc<Clock>,
    /// The caller's session.
    pub(super) session: Weak<Session>,
    /// What hears the link outside calls: change notices that arrive on the call's stream go there too.
    pub(super) origin: Arc<dyn Listener>,
    /// The server's id of its last event, until it is journaled with one for the caller.
    pub(super) cursor: Mutex<Option<Box<str>>>,
}

// === impl Exchange ===

impl Exchange {
    /// Gives a message to the caller, on the stream of its POST or, if that cannot take it, on the GET.
    pub(super) fn deliver(&self, kind: EventKind, message: Bytes) {
        if !self.outlet.emit(kind, message.clone(), self.came_from())
            && let Some(session) = self.session.upgrade()
        {
            session.streams.push_get(kind, message);
        }
    }

    /// Puts a server's request on the stream of the POST; `false` if that cannot take it.
    pub(super) fn put(&self, message: Bytes, question: Option<Question>) -> bool {
        self.outlet.emit(EventKind::Request, message, Origin { question, ..self.came_from() })
    }

    /// Where the server's stream stands.
    fn came_from(&self) -> Origin {
        Origin { cursor: lock(&self.cursor).take(), question: None }
    }

    /// Passes progress on under the caller's token; without one the caller asked for none.
    fn progress(&self, message: &Notification) {
        self.clock.progressed();
        if let Some(modern) = self.outlet.for_modern() {
            return self.progress_for(modern, message);
        }
        // Progress of a task may come on the stream of any later request about it.
        if let Some(message) = self.session.upgrade().and_then(|s| about_task(&s, &self.server.name, message))
        {
            return self.deliver(EventKind::Notification, message);
        }
        let Some(token) = &self.caller_token else { return };
        let place = message.params().and_then(|raw| {
            let params = Object::parse(raw).ok()?;
            Some(Span::of(params.get("progressToken")?, message.bytes()))
        });
        if let Some(place) = place {
            let message = Edit::of(message.bytes()).replace(place, token).finish();
            // Progress is for the stream of its call and for no other.
            let _ = self.outlet.emit_soon(
                EventKind::Progress { exchange: self.number },
                message,
                self.came_from(),
            );
        }
    }

    /// The same for a modern caller, who may be between two requests of the call.
    fn progress_for(&self, modern: &ForModern, message: &Notification) {
        if let Some(text) = modern.wanted.progress(self.caller_token.as_deref(), message)
            && !self.outlet.emit_soon(EventKind::Progress { exchange: self.number }, text, Origin::default())
        {
            modern.wanted.keep(message.clone());
        }
    }
}

impl Listener for Exchange {
    fn notification(&self, message: Notification) {
        match message.method() {
            Method::Progress => self.progress(&message),
            Method::ToolsListChanged
            | Method::PromptsListChanged
            | Method::ResourcesListChanged
            | Method::ResourcesUpdated => self.origin.notification(message),
            Method::Cancelled if self.outlet.for_modern().is_some() => {
                if let Some(session) = self.session.upgrade() {
                    parked::take_back(session.attached.running.this(self).as_slice(), &message);
                }
            }
            Method::Cancelled => {
                if let Some(session) = self.session.upgrade() {
                    ask::take_back(&session, &self.server.name, Some(&self.link), &message);
                }
            }
            Method::LogMessage if !super::log_level::wanted(self, &message) => {}
            // About what only legacy callers were told of.
            Method::ElicitationComplete | Method::TaskStatus if self.outlet.for_modern().is_some() => {}
            Method::TaskStatus => {
                let session = self.session.upgrade();
                if let Some(message) = session.and_then(|s| about_task(&s, &self.server.name, &message)) {
                    self.deliver(EventKind::Notification, message);
                }
            }
            _ => {
                let Some(session) = self.session.upgrade() else { return };
                self.deliver(EventKind::Notification, renamed(&session, &self.server.name, &message));
            }
        }
    }

    fn request(&self, message: Request, reply: Reply) {
        let Some(session) = self.session.upgrade() else { return };
        match session.attached.running.this(self) {
            Some(exchange) => {
                ask::ask(&session, &self.server, &Belonging::Call(exchange), &message, reply);
            }
            None => reply.refuse(Code::Internal.number(), "the call that this belongs to is over"),
        }
    }

    fn at(&self, cursor: &str) {
        if self.session.upgrade().is_some_and(|session| session.streams.journal().is_some()) {
            *lock(&self.cursor) = Some(cursor.into());
        }
    }

    fn settled(&self) {
        self.outlet.flush();
    }

    fn polled(&self, _retry: Option<std::time::Duration>) {
        self.outlet.ask_to_poll();
    }
}
