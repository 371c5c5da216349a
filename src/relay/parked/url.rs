//! The error -32042 of legacy servers: a call that needs URLs visited first (X44).
//!
//! The call has ended, so nothing is parked: the caller is asked to visit them, and its retry makes the call anew.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::carried::Carried;
use super::retry::{Retried, invalid, replayed};
use super::room::{Place, SessionRoom};
use super::state::{GoesOn, State, request_digest};
use crate::protocol::capability::Capability;
use crate::protocol::envelope::{Message, Request, Response};
use crate::protocol::error::{Code, Layer, RpcError};
use crate::protocol::method::Method;
use crate::protocol::object::Object;
use crate::protocol::revision::Era;
use crate::protocol::translate::{at_first, check_answer, input_required, required_urls};
use crate::relay::Relay;
use crate::relay::route::Route;
use crate::relay::seat::Seat;
use crate::relay::serving::Serving;
use crate::session::Binding;
use crate::store::lock;

/// What is kept of a call that is to be made again, until it is: once (R5), and only if its caller did as it was asked.
pub(super) struct Again {
    server: Arc<str>,
    /// `inputRequests` as the caller was asked, raw, and how many they are.
    asked: String,
    count: usize,
    /// How long the caller has.
    input: Duration,
    /// The call's seat, if its session would end with it: the server may know by the session that the URLs were
    /// visited.
    seat: Mutex<Option<Seat>>,
    /// Told when it is taken.
    taken: CancellationToken,
    _place: Place,
}

/// What a caller did about the URLs of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Visited {
    All,
    /// It has not said so of all of them.
    NotYet,
    /// It said no to one.
    Refused,
}

// === impl Relay ===

impl Relay {
    /// The response that asks a modern caller to visit URLs, if that is what the response of a server of `era` wants;
    /// -32021 if this caller cannot be asked to (T42).
    pub(in crate::relay) fn wants_urls(
        &self,
        serving: Serving<'_>,
        route: &Route,
        response: &Response,
        era: Era,
    ) -> Option<Bytes> {
        let Serving { session, request, outlet, .. } = serving;
        if (session.revision().era(), era) != (Era::Modern, Era::Legacy) {
            return None;
        }
        let modern = outlet.for_modern()?;
        let questions = modern.questions.as_ref()?;
        let entries = required_urls(response.error()?).filter(|entries| !entries.is_empty())?;
        let server = &route.target.server;
        if !questions.declared(Capability::ElicitationUrl) {
            let message = format!(
                "Server `{}` wants URLs to be visited before this call, and this client did not declare elicitation.url.",
                server.name
            );
            let error = RpcError::new(Code::MissingCapability, "missing_capability", message)
                .at(&server.name, Layer::Call)
                .with_data(r#""requiredCapabilities":{"elicitation":{"url":{}}}"#);
            return Some(error.to_message(Some(request.id()), Some(&outlet.request_id())));
        }
        // Without a place for it the caller hears the error itself.
        let place = session.attached.room.as_ref().and_then(SessionRoom::take)?;
        let keyed = entries.iter().enumerate().map(|(n, entry)| format!(r#""{}":{entry}"#, key(n)));
        let again = Again {
            server: server.name.as_str().into(),
            asked: format!("{{{}}}", keyed.collect::<Vec<_>>().join(",")),
            count: entries.len(),
            input: server.timeouts.input,
            seat: Mutex::default(),
            taken: CancellationToken::new(),
            _place: place,
        };
        let params = request.params().and_then(|raw| Object::parse(raw).ok()).unwrap_or_default();
        let number = *modern.again.get_or_init(|| self.parked.next_number());
        let asking = self.ask_for_urls(request, &params, &session.binding, number, &again);
        self.keep_again(number, again);
        Some(asking)
    }

    /// The response that asks for the URLs of a call.
    fn ask_for_urls(
        &self,
        request: &Request,
        params: &Object<'_>,
        binding: &Binding,
        number: u64,
        again: &Again,
    ) -> Bytes {
        let goes_on = GoesOn::Again { replica: self.sessions.replica().0.to_string(), number };
        let state = State::new(goes_on, request_digest(request.method(), params), again.input);
        input_required(request.id(), &again.asked, &state.seal(&self.sealer, binding))
    }

    fn keep_again(&self, number: u64, again: Again) {
        let (taken, input) = (again.taken.clone(), again.input);
        let (again, calls) = (Arc::new(again), self.parked.again.clone());
        calls.insert(number, again);
        let stopping = self.stopping.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = taken.cancelled() => {}
                () = tokio::time::sleep(input) => {}
                () = stopping.cancelled() => {}
            }
            calls.remove(&number);
        });
    }

    /// Keeps the seat of a call that is to be made again, if its session would end with it.
    pub(super) fn keep_seat(&self, carried: &mut Carried) {
        let number = carried.outlet.for_modern().and_then(|modern| modern.again.get().copied());
        let Some(again) = number.and_then(|number| self.parked.again.get(&number)) else { return };
        *lock(&again.seat) = carried.take_seat().filter(Seat::is_alone);
    }

    /// Makes a call again whose caller comes back from the URLs.
    ///
    /// # Errors
    /// -32602 for answers that are none; `outcome_unknown` if it was made again already, or is not known any more;
    /// `declined` if the caller did not want to.
    pub(super) fn made_again(
        &self,
        request: &Request,
        params: &Object<'_>,
        binding: &Binding,
        number: u64,
        answers: &Object<'_>,
    ) -> Result<Retried, RpcError> {
        let again = self.parked.again.get(&number).ok_or_else(replayed)?;
        let visited = again.visited(answers)?;
        if visited == Visited::NotYet {
            return Ok(Retried::Asked(self.ask_for_urls(request, params, binding, number, &again)));
        }
        // Whoever takes it out is the one that makes it.
        let again = self.parked.again.remove(&number).ok_or_else(replayed)?;
        again.taken.cancel();
        if visited == Visited::Refused {
            let message = format!(
                "Server `{}` wants URLs to be visited before this call, and this client declined; the call did not run.",
                again.server
            );
            return Err(RpcError::new(Code::Internal, "declined", message).at(&again.server, Layer::Call));
        }
        let seat = lock(&again.seat).take();
        match Message::parse(at_first(request)) {
            Ok(Message::Request(first)) => Ok(Retried::Again(first, seat)),
            _ => Err(invalid("invalid_params", "The request cannot be read without its state.")),
        }
    }
}

// === impl Again ===

impl Again {
    /// What the answers say.
    ///
    /// # Errors
    /// -32602 for one that has not the form of an answer.
    fn visited(&self, answers: &Object<'_>) -> Result<Visited, RpcError> {
        let mut visited = Visited::All;
        for key in (0..self.count).map(key) {
            let Some(raw) = answers.get(&key) else {
                visited = Visited::NotYet;
                continue;
            };
            check_answer(&Method::ElicitationCreate, raw)
                .map_err(|why| invalid("invalid_answer", format!("inputResponses[\"{key}\"] {why}")))?;
            let action =
                Object::parse(raw).ok().and_then(|answer| answer.text("action").map(Cow::into_owned));
            if action.as_deref() != Some("accept") {
                return Ok(Visited::Refused);
            }
        }
        Ok(visited)
    }
}

/// The key of one of the URLs.
fn key(number: usize) -> String {
    format!("elicitation-{}", number + 1)
}
