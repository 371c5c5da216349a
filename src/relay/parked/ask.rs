//! Questions of legacy servers to modern callers: which call one belongs to, and whether it can be asked.

use std::sync::Arc;

use super::questions::{Question, Questions, Rest};
use crate::protocol::envelope::{Notification, Request};
use crate::protocol::error::Code;
use crate::protocol::object::Object;
use crate::protocol::translate::input_request;
use crate::relay::Session;
use crate::relay::ask::capability_for;
use crate::relay::exchange::Exchange;
use crate::upstream::Reply;

/// The one of these calls that can be asked, if there is one alone: what came on the standalone stream is its (X35).
pub(in crate::relay) fn only(mut calls: Vec<Arc<Exchange>>) -> Option<Arc<Exchange>> {
    calls.retain(|call| call.outlet.questions().is_some());
    calls.pop().filter(|_| calls.is_empty())
}

/// The same at a child, where calls take turns: one whose caller is being asked rests, so it is meant only if no other
/// runs.
pub(in crate::relay) fn on_turn(calls: Vec<Arc<Exchange>>) -> Option<Arc<Exchange>> {
    let waits = |call: &Arc<Exchange>| call.outlet.questions().is_some_and(Questions::wait_for_caller);
    let askable = calls.into_iter().filter(|call| call.outlet.questions().is_some());
    let (resting, running): (Vec<_>, Vec<_>) = askable.partition(waits);
    only(if running.is_empty() { resting } else { running })
}

/// Asks the caller of `exchange`, by the answer to its request. What belongs to no call, or to one that cannot be
/// answered so (R1), cannot be asked: a modern caller has no stream beside its requests (X36).
pub(in crate::relay) fn ask(
    session: &Session,
    exchange: Option<&Arc<Exchange>>,
    request: &Request,
    reply: Reply,
) {
    let params = request.params().and_then(|raw| Object::parse(raw).ok());
    let Some(needs) = capability_for(request.method(), params.as_ref()) else {
        return reply.refuse(Code::MethodNotFound.number(), "this client does not know the method");
    };
    let asked = exchange.and_then(|exchange| Some((exchange, exchange.outlet.questions()?)));
    let Some((exchange, questions)) = asked else {
        let message = "this client can only be asked during a tools/call, prompts/get or resources/read, and by \
                       a question that belongs to one such call";
        return reply.refuse(Code::MethodNotFound.number(), message);
    };
    let entry = match input_request(request.method(), request.params()) {
        Ok(entry) => entry,
        Err(why) => return reply.refuse(Code::InvalidParams.number(), &why),
    };
    let question = Question {
        method: request.method().clone(),
        needs,
        entry,
        reply,
        rest: Rest::of(&exchange.clock),
        input: exchange.server.timeouts.input,
    };
    questions.ask(question, session.attached.room.as_ref());
}

/// A server took a question back that one of these calls may have.
pub(in crate::relay) fn take_back(exchanges: &[Arc<Exchange>], message: &Notification) {
    let params = message.params().and_then(|raw| Object::parse(raw).ok());
    if let Some(id) = params.and_then(|params| params.get("requestId")) {
        let _ = exchanges.iter().any(|e| e.outlet.questions().is_some_and(|q| q.take_back(id)));
    }
}
