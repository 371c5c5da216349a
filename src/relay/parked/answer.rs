//! How a modern request is answered: with JSON if nothing need be said ahead of its result, else with a stream; or,
//! if its server asks in mid-call, with what its caller is asked, while the call is parked.

use std::sync::Arc;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::carried::{Carried, Served};
use super::questions::Round;
use crate::protocol::edit::Text;
use crate::protocol::envelope::Message;
use crate::protocol::error::Code;
use crate::protocol::method::Method;
use crate::protocol::object::Object;
use crate::relay::outlet::Outlet;
use crate::relay::{Form, ModernAnswer, Relay};
use crate::session::Reader;

// === impl Relay ===

impl Relay {
    /// Runs the work on the caller's task for as long as nothing need be sent ahead of its answer; a stream begins with
    /// the first message, or when a connection that stays silent may be taken for dead (F15). So what fails early
    /// has its HTTP status, also for a caller that takes streams only.
    pub(in crate::relay) async fn answer_modern(
        self: &Arc<Self>,
        mut carried: Carried,
        form: Form,
    ) -> ModernAnswer {
        let outlet = carried.outlet.clone();
        let silent = tokio::time::sleep(self.keep_alive);
        tokio::select! {
            biased;
            served = carried.served() => {
                self.keep_seat(&mut carried);
                return answered(&outlet, carried.request.method(), served, form);
            }
            round = outlet.round() => return self.ask_caller(carried, &round),
            () = outlet.begun() => {}
            () = silent, if form != Form::JsonOnly => drop(outlet.begin()),
        }
        let reader = outlet.take_reader();
        let closed = CancellationToken::new();
        let open = closed.clone().drop_guard();
        let relay = self.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                biased;
                served = carried.served() => {
                    relay.keep_seat(&mut carried);
                    finish(&outlet, served);
                }
                // The caller is gone: dropping the call cancels it (T54).
                () = closed.cancelled() => {}
                round = outlet.round() => drop(relay.ask_caller(carried, &round)),
            }
        });
        match reader {
            Some(reader) => ModernAnswer::Stream(reader, open),
            None => nothing(),
        }
    }

    /// Answers the caller's request with what its server asks, and parks the call.
    fn ask_caller(self: &Arc<Self>, carried: Carried, round: &Round) -> ModernAnswer {
        // First of all nothing else gets a way to the caller; last of all it learns how to come back.
        let left = carried.outlet.leave();
        let response = self.park(carried, round);
        match left {
            None => ModernAnswer::Json(response.into()),
            Some(mut left) => {
                left.answer(response);
                left.reader.take().map_or_else(nothing, complete)
            }
        }
    }
}

/// The answer of work that ended before anything was sent ahead of it; none if its caller is gone.
fn answered(outlet: &Outlet, method: &Method, served: Option<Served>, form: Form) -> ModernAnswer {
    // A message may have gone ahead of it at the very end.
    let begun = match &served {
        Some(Served::Response(text)) if form == Form::SseOnly && code_with_status(method, text).is_none() => {
            outlet.begin();
            outlet.take_reader()
        }
        _ => outlet.settle(),
    };
    match (begun, served) {
        (Some(reader), served) => {
            finish(outlet, served);
            complete(reader)
        }
        (None, Some(Served::Response(text))) => match code_with_status(method, &text) {
            Some(code) => ModernAnswer::Failed(code, text),
            None => ModernAnswer::Json(text),
        },
        (None, Some(Served::Refused(error, _))) => ModernAnswer::Refused(error),
        (None, None) => nothing(),
    }
}

fn finish(outlet: &Outlet, served: Option<Served>) {
    if let Some(response) = served.map(|served| served.into_text(outlet)) {
        outlet.push_response(response.join());
    }
    outlet.complete();
}

/// A stream that ends with what is on it.
fn complete(reader: Reader) -> ModernAnswer {
    ModernAnswer::Stream(reader, CancellationToken::new().drop_guard())
}

/// For a caller that is gone.
fn nothing() -> ModernAnswer {
    ModernAnswer::Json(Bytes::new().into())
}

/// The code of a server's error that has an HTTP status whoever says it: the caller lacks a capability (T42), or there
/// is no such method, where only the server could know (T40). Errors are small, and few texts mention the number, so
/// most responses cost a look at their bytes.
fn code_with_status(method: &Method, text: &Text) -> Option<Code> {
    let mentions =
        |code: Code| memchr::memmem::find(&text.head, code.number().to_string().as_bytes()).is_some();
    let unknown = matches!(method, Method::Other(_)) && mentions(Code::MethodNotFound);
    if !text.tail.is_empty() || !(unknown || mentions(Code::MissingCapability)) {
        return None;
    }
    let Ok(Message::Response(response)) = Message::parse(text.head.clone()) else { return None };
    let code: i32 = Object::parse(response.error()?).ok()?.get("code")?.parse().ok()?;
    let known = if unknown { Code::MethodNotFound } else { Code::MissingCapability };
    (known.number() == code).then_some(known)
}
