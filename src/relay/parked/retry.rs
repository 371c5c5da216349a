//! A request that brings `requestState` or `inputResponses`: which call goes on with it, if any (R3, R5, R6).

use std::sync::Arc;

use bytes::Bytes;

use super::Slot;
use super::carried::Carried;
use super::state::{GoesOn, State};
use crate::protocol::envelope::Request;
use crate::protocol::error::{Code, RpcError};
use crate::protocol::method::Method;
use crate::protocol::object::{Object, text};
use crate::protocol::revision::Era;
use crate::relay::call::failed;
use crate::relay::route::{Route, meta_of};
use crate::relay::seat::Seat;
use crate::relay::shared::Pick;
use crate::relay::{Came, Claim, Post, Relay, Session};
use crate::session::journal::Origin;
use crate::session::log::EventKind;
use crate::session::{Binding, Peer, ReplicaId, Unlocated};

/// What a request is that brings a state or answers.
pub(in crate::relay) enum Retried {
    /// It brings no state. Answers alone are for a modern server; a legacy one is not told of them (R6).
    First(Request),
    /// The state it brings is not ours: a modern server's, or nobody's.
    Foreign(Request),
    /// Its call is made again; this is the request as it was at first, and its seat, if that was kept.
    Again(Request, Option<Seat>),
    /// It lacks answers: the response that asks for them again (R6).
    Asked(Bytes),
    /// Its call goes on.
    Resumed(Carried),
    /// Its call is held by another replica, which lives.
    Elsewhere(Request, Peer),
    /// It cannot be said whether the replica lives that holds its call.
    Unplaced(Unlocated),
}

/// Whether requests of this method may be answered with questions (R1).
pub(in crate::relay) fn can_be_asked(method: &Method) -> bool {
    matches!(method, Method::ToolsCall | Method::PromptsGet | Method::ResourcesRead)
}

/// Whether a request may bring a state or answers: a look at its bytes, for most bring none.
pub(in crate::relay) fn mentions_state(request: &Request) -> bool {
    let mentions = |name: &[u8]| memchr::memmem::find(request.bytes(), name).is_some();
    can_be_asked(request.method()) && (mentions(b"\"requestState\"") || mentions(b"\"inputResponses\""))
}

// === impl Relay ===

impl Relay {
    /// Finds what a request goes on with.
    ///
    /// # Errors
    /// -32602 if the state is over, or was given out for another request, or an answer has not the form of its
    /// question; `outcome_unknown` or `call_lost` if the call cannot go on. The call itself is unharmed by all of these.
    pub(in crate::relay) async fn retried(
        self: &Arc<Self>,
        post: &Post<'_>,
        claim: &Claim,
        request: Request,
        came: Came<'_>,
    ) -> Result<Retried, RpcError> {
        let Some(params) = request.params().and_then(|raw| Object::parse(raw).ok()) else {
            return Ok(Retried::First(request));
        };
        let brought = |name| params.get(name).filter(|raw| *raw != "null");
        let answers = brought("inputResponses");
        let Some(state) = brought("requestState") else { return Ok(Retried::First(request)) };
        let binding = Binding { principal: post.caller.binding, endpoint: post.endpoint.path.clone() };
        let state = text(state).and_then(|text| State::open(&self.sealer, &binding, &text));
        let Some(state) = state else { return Ok(Retried::Foreign(request)) };
        if state.is_over() {
            let message =
                "The time to answer is over (timeouts.input); send the request anew without requestState.";
            return Err(invalid("expired_state", message));
        }
        if !state.fits(request.method(), &params) {
            let message = "The requestState was given out for a request with another method or other params; repeat \
                           that one, and change nothing but inputResponses and _meta.";
            return Err(invalid("other_request", message));
        }
        let answers = Object::parse(answers.unwrap_or("{}")).map_err(|why| {
            invalid(
                "invalid_answer",
                format!("inputResponses must be an object with an answer by each key: {why}"),
            )
        })?;
        let (GoesOn::Call { replica, .. } | GoesOn::Again { replica, .. }) = &state.goes_on;
        if **replica != *self.sessions.replica().0 {
            let replica = ReplicaId(replica.as_str().into());
            return match self.holder(&replica, came).await {
                Ok(Some(peer)) => Ok(Retried::Elsewhere(request, peer)),
                Ok(None) => Err(lost()),
                Err(unlocated) => Ok(Retried::Unplaced(unlocated)),
            };
        }
        let slot = match state.goes_on {
            GoesOn::Again { number, .. } => {
                return self.made_again(&request, &params, &binding, number, &answers);
            }
            GoesOn::Call { call, round, .. } => {
                let slot = self.parked.slots.get(&call).filter(|slot| slot.round == round);
                slot.ok_or_else(replayed)?
            }
        };
        let (_, token) = meta_of(&params, &request)?;
        self.check_param_headers(&slot.session, post.endpoint, &request, &claim.params)?;
        let mut carried = self.take(&slot, &answers).await?;
        let token = token.map(|(_, token)| token);
        let outlet = carried.outlet.clone();
        carried.go_on(request.clone());
        outlet.turn_to(self.sessions.plain(), post.form, post.request_id.clone());
        if let Some(modern) = outlet.for_modern() {
            if let Some(missed) = modern.wanted.go_on(claim.log_level.as_deref(), token.as_deref()) {
                outlet.emit(EventKind::Notification, missed, Origin::default());
            }
            // Last, so that what the server says to an answer finds its way.
            if let Some(questions) = &modern.questions {
                questions.answer(claim.class, &answers);
            }
        }
        Ok(Retried::Resumed(carried))
    }

    /// The replica that holds a call, if it is another one that lives. A request that was forwarded already is not
    /// forwarded again.
    async fn holder(&self, replica: &ReplicaId, came: Came<'_>) -> Result<Option<Peer>, Unlocated> {
        match came {
            Came::Caller(dead) if self.has_peers() && dead != Some(replica) => {
                self.sessions.peer(replica).await
            }
            Came::Caller(_) | Came::ToReplica | Came::ToOwner(_) => Ok(None),
        }
    }

    /// Takes a parked call, once the answers to it are found good.
    async fn take(&self, slot: &Slot, answers: &Object<'_>) -> Result<Carried, RpcError> {
        if let Some(questions) = slot.outlet.questions() {
            questions.check(answers).map_err(|why| invalid("invalid_answer", why))?;
        }
        if slot.is_taken() {
            return Err(replayed());
        }
        // The call is to run again at its server, so it waits for those that run there now.
        let lane = slot.outlet.for_modern().and_then(|modern| modern.lane.get());
        let turn = match lane {
            Some(lane) => lane.turn_again().await?,
            None => None,
        };
        let carried = slot.take().await.ok_or_else(replayed)?;
        if let (Some(lane), Some(turn)) = (lane, turn) {
            lane.go_on(turn);
        }
        Ok(carried)
    }

    /// Refuses a state that is not ours on its way to a legacy server, which knows of none.
    ///
    /// # Errors
    /// -32602, or why the server could not be asked for its era.
    pub(in crate::relay) async fn only_for_modern(
        self: &Arc<Self>,
        session: &Arc<Session>,
        route: &Route,
    ) -> Result<(), RpcError> {
        let server = &route.target.server;
        let era = match self.known(server).era() {
            Some(era) => era,
            None => self.link(session, server, Pick::Any).await.map_err(failed)?.link.era(),
        };
        if era == Era::Modern {
            return Ok(());
        }
        let message = "The requestState is nothing that was given out here to this caller at this endpoint, or was \
                       changed; send the request anew without it.";
        Err(invalid("invalid_state", message))
    }
}

fn lost() -> RpcError {
    let message = "The call that this goes on with was lost with the gateway's process that held it; its outcome is \
                   unknown.";
    RpcError::new(Code::Internal, "call_lost", message)
}

pub(super) fn replayed() -> RpcError {
    let message = "This requestState was used before, or its call has ended; a call goes on once from each state. \
                   The outcome of what was sent with it before is unknown here.";
    RpcError::new(Code::Internal, "outcome_unknown", message)
}

pub(super) fn invalid(reason: &'static str, message: impl Into<String>) -> RpcError {
    RpcError::new(Code::InvalidParams, reason, message)
}
