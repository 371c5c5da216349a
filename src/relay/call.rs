//! One request to one server: written for the server, waited for within its limits, its response given back.

use std::sync::Arc;

use super::Relay;
use super::clock::{Clock, TimedOut};
use super::compose::compose;
use super::deliver::deliver;
use super::exchange::Exchange;
use super::links::Connected;
use super::mirrored::{Mended, Params, Refusal};
use super::request::respond;
use super::rounds::{self, Input};
use super::route::Route;
use super::running::Underway;
use super::serving::Serving;
use super::shared::Pick;
use crate::protocol::edit::Text;
use crate::protocol::envelope::{Outcome, Response};
use crate::protocol::error::{Code, Layer, RpcError};
use crate::protocol::method::Method;
use crate::protocol::revision::Era;
use crate::protocol::translate::Change;
use crate::telemetry::metrics::{CallOutcome, Translated};
use crate::upstream::failure::ERA_CHANGED;
use crate::upstream::{Delivery, Failure, Link, UpstreamId};

/// How a call ended.
pub(super) enum Ended {
    /// With the response of a server of this era.
    Answered(Response, Era),
    /// With an error of ours.
    Failed(RpcError),
    /// By one of its limits in time.
    TimedOut(RpcError),
    /// With nothing more to say than that it is done.
    Done,
    /// By its caller, who wants no response any more.
    Cancelled,
}

// === impl Relay ===

impl Relay {
    /// Carries a request along `route`; gives the message for the caller, or none if it was cancelled.
    pub(super) async fn call(self: &Arc<Self>, serving: Serving<'_>, route: &Route) -> Option<Text> {
        let clock = Arc::new(Clock::start(&route.target.server.timeouts));
        let mut ended = self.attempt(serving, route, &clock, &Input::default()).await;
        if rounds::are_wanted(serving, &ended) {
            ended = Box::pin(self.rounds(serving, route, &clock, ended)).await;
        }
        self.conclude(serving, route, &clock, ended)
    }

    /// The message for the caller of a request that `ended` so, which is counted.
    pub(super) fn conclude(
        &self,
        serving: Serving<'_>,
        route: &Route,
        clock: &Clock,
        ended: Ended,
    ) -> Option<Text> {
        let request = serving.request;
        let server = &route.target.server;
        let (ended, tasks) = self.with_task_ids(serving, route, ended);
        let outcome = match &ended {
            Ended::Answered(response, _) if response.error().is_some() => CallOutcome::RpcError,
            Ended::Answered(response, _) if is_tool_error(request.method(), response) => {
                CallOutcome::ToolError
            }
            Ended::Answered(..) | Ended::Done => CallOutcome::Ok,
            Ended::TimedOut(_) => CallOutcome::Timeout,
            Ended::Failed(_) => CallOutcome::Unavailable,
            Ended::Cancelled => CallOutcome::Cancelled,
        };
        self.metrics.call(&server.name, request.method().label(), outcome, clock.elapsed());
        let callers = serving.session.revision().era();
        if let Ended::Answered(_, era) = &ended
            && *era != callers
        {
            self.metrics.translated(callers, Translated::Request);
        }
        match ended {
            Ended::Answered(response, era) => match self.wants_urls(serving, route, &response, era) {
                Some(asking) => Some(asking.into()),
                None => Some(deliver(serving, route, &response, era, tasks)),
            },
            Ended::Failed(error) | Ended::TimedOut(error) => {
                let (id, layer) = (serving.outlet.request_id(), error.layer.as_str());
                tracing::warn!(request.id = %id, server = %server.name, layer, reason = error.reason, "{}", error.message);
                Some(error.to_message(Some(request.id()), Some(&id)).into())
            }
            Ended::Done => Some(respond(request.id(), b"{}").into()),
            Ended::Cancelled => None,
        }
    }

    /// The same, and what must change in the response for the tasks in it.
    fn with_task_ids(&self, serving: Serving<'_>, route: &Route, ended: Ended) -> (Ended, Vec<Change>) {
        match &ended {
            Ended::Answered(response, _) => match self.task_ids(serving, route, response) {
                Ok(changes) => (ended, changes),
                Err(error) => (Ended::Failed(error), Vec::new()),
            },
            Ended::Failed(_) | Ended::TimedOut(_) | Ended::Done | Ended::Cancelled => (ended, Vec::new()),
        }
    }

    /// Tries once; and once more over a new link, if the first one turned out to be of no use before the request
    /// reached the server (case-H13).
    pub(super) async fn attempt(
        self: &Arc<Self>,
        serving: Serving<'_>,
        route: &Route,
        clock: &Arc<Clock>,
        input: &Input,
    ) -> Ended {
        let Serving { session, request, ticket, .. } = serving;
        let server = &route.target.server;
        let pick = match request.method() {
            Method::ResourcesSubscribe | Method::ResourcesUnsubscribe => Pick::First,
            _ => serving.pick,
        };
        let (mut tries_left, mut mends_left) = (1, 1);
        loop {
            let connected = tokio::select! {
                connected = self.link(session, server, pick) => connected,
                () = ticket.cancelled() => return Ended::Cancelled,
                () = session.ended.cancelled() => return Ended::Failed(session_ended(&server.name)),
                limit = clock.over() => return Ended::TimedOut(timed_out(&server.name, limit)),
            };
            let connected = match connected {
                Ok(connected) => connected,
                Err(failure) if failure.reason == ERA_CHANGED && tries_left > 0 => {
                    tries_left -= 1;
                    continue;
                }
                Err(failure) => return Ended::Failed(failed(failure)),
            };
            let link = connected.link.clone();
            let params = self.params_of(serving, route, &link);
            match self.exchange(serving, route, connected, clock, input, params.clone()).await {
                Ok(ended) => {
                    let Some(refusal) = Refusal::of(&ended, &link) else { return ended };
                    let mend = self.mend(serving, route, &link, refusal, &params);
                    if mends_left == 0 || Box::pin(mend).await == Mended::No {
                        return Ended::Failed(refusal.error(&server.name));
                    }
                    mends_left -= 1;
                }
                Err(failure)
                    if failure.delivery == Delivery::NotDelivered && link.is_down() && tries_left > 0 =>
                {
                    tries_left -= 1;
                }
                Err(failure) => return Ended::Failed(failed(failure)),
            }
        }
    }

    async fn exchange(
        &self,
        serving: Serving<'_>,
        route: &Route,
        connected: Connected,
        clock: &Arc<Clock>,
        input: &Input,
        params: Params,
    ) -> Result<Ended, Failure> {
        let Serving { session, ticket, .. } = serving;
        let server = &route.target.server;
        // What has begun goes on: only a first try is held back.
        if input.members().is_empty() && !self.sessions.may_send(session) {
            return Err(no_lease(&server.name));
        }
        let link = connected.link.clone();
        let id = link.allot();
        let underway = self.begin(serving, route, connected, clock);
        let exchange = &underway.exchange;
        clock.sent();
        let more = self.task_in_call(serving, route, link.era());
        let mut outgoing = compose(serving, route, &link, id, input, more);
        if let Some(mirror) = &mut outgoing.mirror {
            mirror.params = params;
        }
        let listener = exchange.clone();
        let ended = tokio::select! {
            biased;
            response = link.call(id, outgoing, listener) => {
                return response.map(|response| Ended::Answered(response, link.era()));
            }
            () = ticket.cancelled() => Ended::Cancelled,
            () = session.ended.cancelled() => Ended::Failed(session_ended(&server.name)),
            limit = exchange.clock.expired() => Ended::TimedOut(timed_out(&server.name, limit)),
        };
        let why = match &ended {
            Ended::Failed(error) | Ended::TimedOut(error) => error.reason,
            Ended::Answered(..) | Ended::Done | Ended::Cancelled => "cancelled by the client",
        };
        self.tell_server(&link, id, why);
        Ok(ended)
    }

    /// The request is at its server, or its caller is asked on the server's behalf.
    pub(super) fn begin<'a>(
        &self,
        serving: Serving<'a>,
        route: &Route,
        connected: Connected,
        clock: &Arc<Clock>,
    ) -> Underway<'a> {
        let Serving { session, outlet, ticket, .. } = serving;
        ticket.begin(Exchange {
            number: ticket.number(),
            caller_token: route.token.as_ref().map(|(_, token)| token.clone()),
            server: route.target.server.clone(),
            link: connected.link,
            outlet: outlet.clone(),
            clock: clock.clone(),
            session: Arc::downgrade(session),
            origin: connected.origin,
            cursor: std::sync::Mutex::default(),
        })
    }

    /// Tells a server that nobody waits for this request any more; queued behind nothing (case-H09).
    pub(super) fn tell_server(&self, link: &Arc<Link>, id: UpstreamId, why: &'static str) {
        if link.hears_cancellation() {
            let link = link.clone();
            self.tasks.spawn(async move { link.forget(id, why).await });
        }
    }
}

pub(super) fn failed(failure: Failure) -> RpcError {
    let retryable = failure.delivery == Delivery::NotDelivered;
    let error = RpcError::new(Code::Internal, failure.reason, failure.message);
    let error = error.at(&failure.server, failure.layer);
    if retryable { error.retryable() } else { error }
}

pub(super) fn timed_out(server: &str, limit: TimedOut) -> RpcError {
    let message = match limit {
        TimedOut::Idle(limit) => format!(
            "Server `{server}` sent neither result nor progress for {limit:?} (timeouts.idle); the call was cancelled and its outcome is unknown."
        ),
        TimedOut::Total(limit) => format!(
            "The call to server `{server}` took longer than {limit:?} (timeouts.total), its start included; it was cancelled and its outcome is unknown."
        ),
    };
    RpcError::new(Code::Internal, "timed_out", message).at(server, Layer::Call)
}

pub(super) fn session_ended(server: &str) -> RpcError {
    let message = format!("The session ended while a call to server `{server}` ran; its outcome is unknown.");
    RpcError::new(Code::Internal, "session_ended", message).at(server, Layer::Gateway)
}

/// What was about to be sent is not: another replica may own the session by now.
fn no_lease(server: &str) -> Failure {
    let message = format!(
        "This replica may not own the session any more, as it could not extend its lease in time; nothing was sent to server `{server}`; try again."
    );
    let (layer, delivery) = (Layer::Gateway, Delivery::NotDelivered);
    Failure { server: server.to_owned(), layer, reason: "no_lease", message, delivery }
}

/// Whether a tool says itself that it failed. Only for the metric, so a look at both ends of the result, where
/// servers write it, is good enough.
fn is_tool_error(method: &Method, response: &Response) -> bool {
    const LOOK: usize = 128;
    let Outcome::Result(span) = response.outcome() else { return false };
    let Some(result) = response.bytes().get(span.start..span.end) else { return false };
    let says_so = |part: &[u8]| memchr::memmem::find(part, b"\"isError\":true").is_some();
    let first = result.get(..LOOK).unwrap_or(result);
    let last = result.get(result.len().saturating_sub(LOOK)..).unwrap_or_default();
    *method == Method::ToolsCall && (says_so(first) || says_so(last))
}
