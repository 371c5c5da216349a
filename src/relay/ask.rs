//! Questions of servers to callers (sampling, elicitation, roots): the way there and the answer's way back.
//!
//! A question goes to the one session and stream it belongs to; a caller that cannot answer is not asked, and the
//! server is told at once (case-H11).

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::Session;
use super::exchange::Exchange;
use crate::protocol::capability::Capability;
use crate::protocol::edit::{Edit, one_line};
use crate::protocol::envelope::{Notification, Request, Response, Span};
use crate::protocol::error::Code;
use crate::protocol::method::Method;
use crate::protocol::object::Object;
use crate::session::log::EventKind;
use crate::settings::ServerSettings;
use crate::store::lock;
use crate::upstream::Reply;

/// How long a question outside any call waits for the caller to open its GET stream.
const GET_WAIT: Duration = Duration::from_secs(5);

/// The open questions of one session, by the gateway's ids.
pub(super) struct Asks {
    open: Mutex<HashMap<u64, Ask>>,
    next: AtomicU64,
}

struct Ask {
    reply: Reply,
    exchange: Option<Arc<Exchange>>,
    server: Arc<ServerSettings>,
    /// The server's progress token, raw: the caller's progress goes back under it.
    token: Option<Box<str>>,
    /// Cancelled once nobody waits any more; ends the timer of the question.
    settled: CancellationToken,
}

// === impl Asks ===

impl Asks {
    /// Ids contain the owner's epoch (L7).
    pub(super) fn new(epoch: u32) -> Self {
        Self { open: Mutex::default(), next: AtomicU64::new((u64::from(epoch) << 32) + 1) }
    }

    /// Takes the answer of a caller to its server; `false` if nobody waits for it.
    pub(super) fn answer(&self, response: &Response) -> bool {
        let id = response.id().parse().ok();
        let Some(ask) = id.and_then(|id: u64| lock(&self.open).remove(&id)) else { return false };
        ask.settle();
        let message = Edit::of(response.bytes()).replace(response.id_span(), ask.reply.id()).finish();
        ask.reply.send(message);
        true
    }

    /// A caller's progress as its server expects it, and that server.
    pub(super) fn progress(&self, notification: &Notification) -> Option<(Arc<ServerSettings>, Bytes)> {
        let raw = Object::parse(notification.params()?).ok()?.get("progressToken")?;
        let (server, token) = {
            let open = lock(&self.open);
            let ask = open.get(&raw.parse().ok()?)?;
            if let Some(exchange) = &ask.exchange {
                exchange.clock.progressed();
            }
            (ask.server.clone(), ask.token.clone()?)
        };
        let place = Span::of(raw, notification.bytes());
        Some((server, Edit::of(notification.bytes()).replace(place, &token).finish()))
    }

    /// Drops a question that its server took back; gives the id the caller knows it by.
    pub(super) fn take_back(&self, server: &str, server_id: &str) -> Option<(u64, Option<Arc<Exchange>>)> {
        let mut open = lock(&self.open);
        let meant = |a: &Ask| a.server.name == server && a.reply.id() == server_id;
        let id = open.iter().find(|(_, a)| meant(a)).map(|(id, _)| *id)?;
        let ask = open.remove(&id)?;
        drop(open);
        ask.settle();
        let exchange = ask.exchange.clone();
        // The server no longer waits, so what this sends is ignored.
        ask.reply.refuse(Code::Internal.number(), "cancelled");
        Some((id, exchange))
    }

    /// Drops the questions of an exchange that is over; their servers get an error.
    pub(super) fn drop_of(&self, exchange: &Arc<Exchange>) {
        let of_it = |a: &Ask| a.exchange.as_ref().is_some_and(|e| Arc::ptr_eq(e, exchange));
        let mut open = lock(&self.open);
        if open.is_empty() {
            return;
        }
        let gone: Vec<Ask> = open.extract_if(|_, a| of_it(a)).map(|(_, a)| a).collect();
        drop(open);
        gone.iter().for_each(Ask::settle);
    }

    /// Drops all questions; their servers get an error.
    pub(super) fn drop_all(&self) {
        let gone = std::mem::take(&mut *lock(&self.open));
        gone.values().for_each(Ask::settle);
    }

    fn expire(&self, id: u64) -> bool {
        let Some(ask) = lock(&self.open).remove(&id) else { return false };
        ask.settle();
        ask.reply.refuse(Code::Internal.number(), "the caller did not answer in time");
        true
    }
}

impl Ask {
    fn settle(&self) {
        self.settled.cancel();
        if let Some(exchange) = &self.exchange {
            exchange.clock.question_settled();
        }
    }
}

/// Asks the caller of `session` what `server` wants to know, on the stream of `exchange` or on the GET.
pub(super) fn ask(
    session: &Arc<Session>,
    server: &Arc<ServerSettings>,
    exchange: Option<&Arc<Exchange>>,
    request: &Request,
    reply: Reply,
) {
    let params = request.params().and_then(|raw| Object::parse(raw).ok());
    let Some(needed) = capability_for(request.method(), params.as_ref()) else {
        return reply.refuse(Code::MethodNotFound.number(), "this client does not know the method");
    };
    if !session.greeting.class.has(needed) {
        return reply
            .refuse(Code::MethodNotFound.number(), "this client did not declare the capability for it");
    }
    let asks = &session.attached.asks;
    let id = asks.next.fetch_add(1, Relaxed);
    let id_text = id.to_string();
    let mut edit = Edit::of(request.bytes()).replace(request.id_span(), &id_text);
    let token = params.and_then(|p| Object::parse(p.get("_meta")?).ok()?.get("progressToken"));
    if let Some(token) = token {
        edit = edit.replace(Span::of(token, request.bytes()), &id_text);
    }
    let message = one_line(edit.finish());
    if let Some(exchange) = exchange {
        exchange.clock.question_asked();
    }
    let settled = CancellationToken::new();
    let ask = Ask {
        reply,
        exchange: exchange.cloned(),
        server: server.clone(),
        token: token.map(Into::into),
        settled: settled.clone(),
    };
    lock(&asks.open).insert(id, ask);
    let input = server.timeouts.input;
    let delivered = exchange.is_some_and(|e| e.outlet.emit(EventKind::Request, message.clone()));
    if exchange.is_some() && !delivered {
        // The caller takes only JSON, or left without an event id: it can never be asked.
        asks.expire(id);
        return;
    }
    let session = session.clone();
    let tasks = session.attached.tasks().clone();
    tasks.spawn(async move {
        if !delivered && !deliver_on_get(&session, &message).await {
            session.attached.asks.expire(id);
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(input) => {
                if session.attached.asks.expire(id) {
                    tell_cancelled(&session, id, None);
                }
            }
            () = settled.cancelled() => {}
            () = session.ended.cancelled() => {}
        }
    });
}

/// Tells the caller that it need not answer any more, where it was asked.
pub(super) fn tell_cancelled(session: &Session, id: u64, exchange: Option<&Arc<Exchange>>) {
    let text =
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#);
    match exchange {
        Some(exchange) => exchange.deliver(EventKind::Notification, text.into()),
        None => drop(session.streams.push_get(EventKind::Notification, text.into())),
    }
}

async fn deliver_on_get(session: &Session, message: &Bytes) -> bool {
    let deadline = tokio::time::Instant::now() + GET_WAIT;
    loop {
        if session.streams.push_get(EventKind::Request, message.clone()) {
            return true;
        }
        if tokio::time::Instant::now() >= deadline || session.ended.is_cancelled() {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn capability_for(method: &Method, params: Option<&Object<'_>>) -> Option<Capability> {
    match method {
        Method::SamplingCreate => Some(Capability::Sampling),
        Method::RootsList => Some(Capability::Roots),
        Method::ElicitationCreate => {
            let url = params.and_then(|p| p.text("mode")).is_some_and(|m| m == "url");
            Some(if url { Capability::ElicitationUrl } else { Capability::ElicitationForm })
        }
        _ => None,
    }
}
