//! The open questions of one session, and the way back of their answers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::ask::{Belonging, Place, tell_cancelled};
use super::exchange::Exchange;
use super::running::Running;
use crate::protocol::edit::Edit;
use crate::protocol::envelope::{Notification, Response, Span};
use crate::protocol::error::Code;
use crate::protocol::object::Object;
use crate::protocol::translate::Change;
use crate::settings::ServerSettings;
use crate::store::lock;
use crate::upstream::{Link, Reply};

/// How many questions one server may have open at one session; if it asks more, it gets an error.
const MOST_OPEN: usize = 64;

/// The open questions of one session, by the gateway's ids.
pub(super) struct Asks {
    open: Mutex<HashMap<u64, Ask>>,
    next: AtomicU64,
}

/// One open question.
pub(super) struct Ask {
    reply: Reply,
    server: Arc<ServerSettings>,
    belonging: Belonging,
    /// Where the caller was asked; none while it has no stream.
    place: Option<Place>,
    /// The server's progress token, raw: the caller's progress goes back under it.
    token: Option<Box<str>>,
    /// Cancelled once nobody waits any more; ends the timer of the question.
    settled: CancellationToken,
}

/// Why a question gets no answer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Why {
    /// No stream leads to the caller.
    NoStream,
    /// `timeouts.input` passed.
    TooLate,
    /// There are [`MOST_OPEN`] already.
    TooMany,
    /// The server took it back, or began anew; it hears nothing of this.
    TakenBack,
}

// === impl Asks ===

impl Asks {
    /// Ids contain the owner's epoch (L7).
    pub(super) fn new(epoch: u32) -> Self {
        Self { open: Mutex::default(), next: AtomicU64::new((u64::from(epoch) << 32) + 1) }
    }

    /// A fresh id.
    pub(super) fn next_id(&self) -> u64 {
        self.next.fetch_add(1, Relaxed)
    }

    /// Takes a question in.
    ///
    /// # Errors
    /// The question, if there are too many.
    pub(super) fn open(&self, id: u64, ask: Ask) -> Result<(), Ask> {
        let mut open = lock(&self.open);
        let of_it = open.values().filter(|other| other.server.name == ask.server.name).count();
        if of_it >= MOST_OPEN {
            return Err(ask);
        }
        if let Some(exchange) = ask.belonging.exchange() {
            exchange.clock.question_asked();
        }
        open.insert(id, ask);
        Ok(())
    }

    /// Notes where the caller was asked.
    pub(super) fn asked(&self, id: u64, place: Place) {
        if let Some(ask) = lock(&self.open).get_mut(&id) {
            ask.place = Some(place);
        }
    }

    /// Takes the answer of a caller to its server, with what `changed` says; `false` if nobody waits for it.
    pub(super) fn answer(&self, response: &Response, changed: Option<Change>) -> bool {
        let Some(ask) = number(response.id()).and_then(|id| lock(&self.open).remove(&id)) else {
            return false;
        };
        ask.settle();
        let edit = Edit::of(response.bytes()).replace(response.id_span(), ask.reply.id());
        let message =
            changed.into_iter().fold(edit, |edit, (place, new)| edit.replace_owned(place, new)).finish();
        ask.reply.send(message);
        true
    }

    /// A caller's progress as its server expects it, and that server and link.
    pub(super) fn progress(
        &self,
        notification: &Notification,
    ) -> Option<(Arc<ServerSettings>, Option<Arc<Link>>, Bytes)> {
        let raw = Object::parse(notification.params()?).ok()?.get("progressToken")?;
        let (server, link, token) = {
            let open = lock(&self.open);
            let ask = open.get(&number(raw)?)?;
            (ask.server.clone(), ask.link().cloned(), ask.token.clone()?)
        };
        let place = Span::of(raw, notification.bytes());
        Some((server, link, Edit::of(notification.bytes()).replace(place, &token).finish()))
    }

    /// Drops a question that its server took back; gives the id the caller knows it by, and where it was asked.
    /// `link` tells apart what came on the streams of calls on other links.
    pub(super) fn take_back(
        &self,
        server: &str,
        link: Option<&Arc<Link>>,
        server_id: &str,
    ) -> Option<(u64, Option<Place>)> {
        let same_link = |a: &Ask| match (a.link(), link) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => true,
        };
        let meant = |a: &Ask| a.reply.id() == server_id && a.server.name == server && same_link(a);
        let id = lock(&self.open).iter().find(|(_, a)| meant(a)).map(|(id, _)| *id)?;
        Some((id, self.give_up(id, Why::TakenBack)?))
    }

    /// Drops a question that gets no answer, and tells its server; gives where the caller was asked.
    pub(super) fn give_up(&self, id: u64, why: Why) -> Option<Option<Place>> {
        let ask = lock(&self.open).remove(&id)?;
        ask.settle();
        let place = ask.place.clone();
        ask.refuse(why);
        Some(place)
    }

    /// A call is over. Its questions are dropped and their servers get an error; those that were only taken for its
    /// own are taken for the next oldest call's.
    pub(super) fn call_is_over(&self, over: &Arc<Exchange>, running: &Running) {
        let mut open = lock(&self.open);
        if open.is_empty() {
            return;
        }
        let of_it = |a: &Ask| a.belonging.exchange().is_some_and(|e| Arc::ptr_eq(e, over));
        let next = running.oldest_at(&over.server.name);
        let mut dropped = Vec::new();
        for (id, mut ask) in open.extract_if(|_, a| of_it(a)).collect::<Vec<_>>() {
            match (&ask.belonging, next.as_ref()) {
                (Belonging::Perhaps(_), Some(next)) => {
                    next.clock.question_asked();
                    ask.belonging = Belonging::Perhaps(next.clone());
                }
                (Belonging::Link(_), _) => ask.belonging = Belonging::Link(None),
                (Belonging::Call(_) | Belonging::Perhaps(_), _) => {
                    dropped.push((id, ask));
                    continue;
                }
            }
            open.insert(id, ask);
        }
        drop(open);
        for (id, ask) in dropped {
            ask.settled.cancel();
            if let (Some(place), Some(session)) = (&ask.place, over.session.upgrade()) {
                tell_cancelled(&session, id, place);
            }
        }
    }

    /// The link to a server began anew: what it asked outside of calls before that, nobody waits for any more.
    /// Gives what callers know of it.
    pub(super) fn link_is_new(&self, server: &str) -> Vec<(u64, Place)> {
        let of_it = |a: &Ask| a.server.name == server && matches!(a.belonging, Belonging::Link(_));
        let stale: Vec<u64> = lock(&self.open).iter().filter(|(_, a)| of_it(a)).map(|(id, _)| *id).collect();
        stale.into_iter().filter_map(|id| Some((id, self.give_up(id, Why::TakenBack)??))).collect()
    }

    /// Drops all questions; their servers get an error.
    pub(super) fn drop_all(&self) {
        let gone = std::mem::take(&mut *lock(&self.open));
        gone.values().for_each(Ask::settle);
    }
}

// === impl Ask ===

impl Ask {
    pub(super) fn new(
        reply: Reply,
        server: Arc<ServerSettings>,
        belonging: Belonging,
        token: Option<&str>,
        settled: CancellationToken,
    ) -> Self {
        Self { reply, server, belonging, place: None, token: token.map(Into::into), settled }
    }

    /// Tells the server that there will be no answer.
    pub(super) fn refuse(self, why: Why) {
        let message = match why {
            Why::NoStream => "this client has no stream open on which it could be asked",
            Why::TooLate => "the client did not answer in time",
            Why::TooMany => "the client has too many questions open",
            Why::TakenBack => return self.reply.forget(),
        };
        self.reply.refuse(Code::Internal.number(), message);
    }

    fn link(&self) -> Option<&Arc<Link>> {
        match &self.belonging {
            Belonging::Call(exchange) | Belonging::Perhaps(exchange) => Some(&exchange.link),
            Belonging::Link(_) => None,
        }
    }

    fn settle(&self) {
        self.settled.cancel();
        if let Some(exchange) = self.belonging.exchange() {
            exchange.clock.question_settled();
        }
    }
}

/// Our number as callers write it back: some make a string of it.
fn number(raw: &str) -> Option<u64> {
    raw.strip_prefix('"').and_then(|r| r.strip_suffix('"')).unwrap_or(raw).parse().ok()
}
