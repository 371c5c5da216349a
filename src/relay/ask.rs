//! Questions of servers to callers (sampling, elicitation, roots): the way there.
//!
//! A question goes to the one session and stream it belongs to; a caller that cannot answer is not asked, and the
//! server is told at once (case-H11). [`asks`](super::asks) keeps those that are open.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::Session;
use super::asks::{Ask, Why};
use super::exchange::Exchange;
use super::parked;
use super::tasks::{self, related_by_server};
use crate::protocol::capability::Capability;
use crate::protocol::edit::{Edit, one_line};
use crate::protocol::envelope::{Notification, Request, Span};
use crate::protocol::error::Code;
use crate::protocol::method::Method;
use crate::protocol::object::Object;
use crate::protocol::revision::Era;
use crate::session::journal::Origin;
use crate::session::log::EventKind;
use crate::settings::ServerSettings;
use crate::store::event_log::Question;
use crate::upstream::{Link, Reply};

/// How long a question outside any call waits for the caller to open its GET stream.
const GET_WAIT: Duration = Duration::from_secs(5);

/// What a question belongs to.
#[derive(Clone)]
pub(super) enum Belonging {
    /// This call: it came on the call's own stream.
    Call(Arc<Exchange>),
    /// Perhaps this call: stdio does not tell, so it is taken for the oldest that runs (X35).
    Perhaps(Arc<Exchange>),
    /// No call, in the server's words; some libraries send what a call asks on the standalone stream too, so the
    /// oldest call rests while it waits, and takes the question if there is no other stream.
    Link(Option<Arc<Exchange>>),
}

/// Where the caller was asked.
#[derive(Clone)]
pub(super) enum Place {
    /// On the stream of this call.
    Call(Arc<Exchange>),
    /// On the standalone GET.
    Get,
}

// === impl Belonging ===

impl Belonging {
    /// The call whose idle limit rests while the question waits.
    pub(super) fn exchange(&self) -> Option<&Arc<Exchange>> {
        match self {
            Self::Call(exchange) | Self::Perhaps(exchange) => Some(exchange),
            Self::Link(exchange) => exchange.as_ref(),
        }
    }
}

/// Asks the caller of `session` what `server` wants to know.
pub(super) fn ask(
    session: &Arc<Session>,
    server: &Arc<ServerSettings>,
    belonging: &Belonging,
    request: &Request,
    reply: Reply,
) {
    if session.revision().era() == Era::Modern {
        return parked::ask(session, belonging.exchange(), request, reply);
    }
    let params = request.params().and_then(|raw| Object::parse(raw).ok());
    let Some(needed) = capability_for(request.method(), params.as_ref()) else {
        return reply.refuse(Code::MethodNotFound.number(), "this client does not know the method");
    };
    if !session.greeting.class.has(needed) {
        return reply
            .refuse(Code::MethodNotFound.number(), "this client did not declare the capability for it");
    }
    let id = session.attached.asks.next_id();
    let id_text = id.to_string();
    let mut edit = Edit::of(request.bytes()).replace(request.id_span(), &id_text);
    let token = params.and_then(|p| Object::parse(p.get("_meta")?).ok()?.get("progressToken"));
    if let Some(token) = token {
        edit = edit.replace(Span::of(token, request.bytes()), &id_text);
    }
    let related =
        request.params().and_then(|raw| related_by_server(session, &server.name, raw, request.bytes()));
    if let Some(related) = related {
        edit = tasks::with(edit, related);
    }
    let message = one_line(edit.finish());
    let settled = CancellationToken::new();
    let ask = Ask::new(reply, server.clone(), belonging.clone(), token, settled.clone());
    if let Err(ask) = session.attached.asks.open(id, ask) {
        return ask.refuse(Why::TooMany);
    }
    let journal = session.streams.journal();
    let question = journal.map(|_| Question { server: server.name.as_str().into(), id: request.id().into() });
    let place = place(session, belonging, &message, question.as_ref());
    if let Some(place) = &place {
        session.attached.asks.asked(id, place.clone());
    } else if !matches!(belonging, Belonging::Link(_)) {
        // The caller takes only JSON, or left without an event id: it can never be asked.
        session.attached.asks.give_up(id, Why::NoStream);
        return;
    }
    let (session, input) = (session.clone(), server.timeouts.input);
    session.attached.tasks().clone().spawn(async move {
        tokio::select! {
            () = wait_for_answer(&session, id, place, (message, question), input) => {}
            () = settled.cancelled() => {}
            () = session.ended.cancelled() => {}
        }
    });
}

/// Waits until the question's time is over; the answer itself ends it from outside.
async fn wait_for_answer(
    session: &Session,
    id: u64,
    place: Option<Place>,
    (message, question): (Bytes, Option<Question>),
    input: Duration,
) {
    let asks = &session.attached.asks;
    if place.is_none() {
        let opened = tokio::time::timeout(GET_WAIT, session.streams.get_opened()).await;
        let origin = Origin { question, cursor: None };
        if opened.is_err() || !session.streams.append_get(EventKind::Request, message, origin) {
            asks.give_up(id, Why::NoStream);
            return;
        }
        asks.asked(id, Place::Get);
    }
    tokio::time::sleep(input).await;
    if let Some(Some(place)) = asks.give_up(id, Why::TooLate) {
        tell_cancelled(session, id, &place);
    }
}

/// Puts the question on the stream where it belongs, or on another that reaches the caller.
fn place(
    session: &Session,
    belonging: &Belonging,
    message: &Bytes,
    question: Option<&Question>,
) -> Option<Place> {
    let on_call = |exchange: &Arc<Exchange>| {
        exchange.put(message.clone(), question.cloned()).then(|| Place::Call(exchange.clone()))
    };
    let on_get = || {
        let open = session.streams.get_is_open();
        let origin = Origin { question: question.cloned(), cursor: None };
        (open && session.streams.append_get(EventKind::Request, message.clone(), origin))
            .then_some(Place::Get)
    };
    match belonging {
        Belonging::Call(exchange) | Belonging::Perhaps(exchange) => on_call(exchange).or_else(on_get),
        Belonging::Link(exchange) => on_get().or_else(|| exchange.as_ref().and_then(on_call)),
    }
}

/// A server took a question back: the caller need not answer any more.
pub(super) fn take_back(session: &Session, server: &str, link: Option<&Arc<Link>>, message: &Notification) {
    let taken = message.params().and_then(|params| {
        let id = Object::parse(params).ok()?.get("requestId")?;
        session.attached.asks.take_back(server, link, id)
    });
    if let Some((id, Some(place))) = taken {
        tell_cancelled(session, id, &place);
    }
}

/// Tells the caller that it need not answer any more, where it was asked.
pub(super) fn tell_cancelled(session: &Session, id: u64, place: &Place) {
    let text =
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#);
    match place {
        Place::Call(exchange) => exchange.deliver(EventKind::Notification, text.into()),
        Place::Get => drop(session.streams.push_get(EventKind::Notification, text.into())),
    }
}

/// The capability that a caller must have declared to be asked this.
pub(super) fn capability_for(method: &Method, params: Option<&Object<'_>>) -> Option<Capability> {
    match method {
        Method::SamplingCreate => {
            let tools = params.is_some_and(|p| p.get("tools").is_some());
            Some(if tools { Capability::SamplingTools } else { Capability::Sampling })
        }
        Method::RootsList => Some(Capability::Roots),
        Method::ElicitationCreate => {
            let url = params.and_then(|p| p.text("mode")).is_some_and(|m| m == "url");
            Some(if url { Capability::ElicitationUrl } else { Capability::ElicitationForm })
        }
        _ => None,
    }
}
