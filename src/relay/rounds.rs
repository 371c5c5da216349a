//! Rounds of input: a modern server answers a legacy caller's request with what it wants to know first; the caller
//! is asked on the stream of its request, and the request goes to the server again with the answers (X13 to X17).
//!
//! A question belongs to the one call that it came of, so it reaches nobody but the caller of that call.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use tokio::sync::oneshot;

use super::Relay;
use super::ask::{self, Belonging};
use super::call::{Ended, failed, session_ended, timed_out};
use super::clock::Clock;
use super::exchange::Exchange;
use super::presented::presented;
use super::route::Route;
use super::serving::Serving;
use super::shared::Pick;
use crate::protocol::capability::CapabilityClass;
use crate::protocol::envelope::{Message, Request, Response};
use crate::protocol::error::{Code, Layer, RpcError};
use crate::protocol::method::Method;
use crate::protocol::object::{Object, quoted, text};
use crate::protocol::revision::{Era, Revision};
use crate::protocol::translate::wanted::{self, InputRequest, InputRequired, ModernResult};
use crate::telemetry::metrics::Translated;
use crate::upstream::{Backoff, Pace, Refused, Reply};

/// How many rounds one call may take; a server that wants more gets none.
const MOST_ROUNDS: usize = 32;
/// How soon a server is tried again that wants nothing but that (X17).
const PACE: Pace = Pace { first: Duration::from_millis(100), most: Duration::from_secs(5) };
/// How much of an error of a caller's is shown, characters.
const SHOWN: usize = 256;

/// What a retry brings beside the request itself (R3); nothing in a first try.
#[derive(Default)]
pub(super) struct Input(String);

/// Whether a call that `ended` so goes on, since its legacy caller is to be asked something first.
pub(super) fn are_wanted(serving: Serving<'_>, ended: &Ended) -> bool {
    let Ended::Answered(response, Era::Modern) = ended else { return false };
    serving.session.revision().era() == Era::Legacy
        && !matches!(wanted::read(serving.request.method(), response), ModernResult::Complete)
}

/// R4: a server may ask for nothing that its client did not declare.
///
/// # Errors
/// `undeclared_input_request`
pub(super) fn declares_all(
    server: &str,
    declared: CapabilityClass,
    requests: &[InputRequest<'_>],
) -> Result<(), RpcError> {
    let is_undeclared = |request: &&InputRequest<'_>| {
        let params = request.params.and_then(|raw| Object::parse(raw).ok());
        !ask::capability_for(&request.method, params.as_ref()).is_some_and(|needed| declared.has(needed))
    };
    requests.iter().find(is_undeclared).map_or(Ok(()), |request| Err(undeclared(server, &request.method)))
}

// === impl Input ===

impl Input {
    /// Answers by their keys, and the state that goes back.
    fn new(answers: &[(String, String)], state: Option<&str>) -> Self {
        let answers: Vec<String> =
            answers.iter().map(|(key, raw)| format!("{}:{raw}", quoted(key))).collect();
        let answers = (!answers.is_empty()).then(|| format!(r#""inputResponses":{{{}}}"#, answers.join(",")));
        let state = state.map(|raw| format!(r#""requestState":{raw}"#));
        Self(answers.into_iter().chain(state).collect::<Vec<_>>().join(","))
    }

    /// As members of `params`, raw.
    pub(super) fn members(&self) -> &str {
        &self.0
    }
}

// === impl Relay ===

impl Relay {
    /// Goes on with a call that `ended` so: while its server wants input first, its caller is asked.
    pub(super) async fn rounds(
        self: &Arc<Self>,
        serving: Serving<'_>,
        route: &Route,
        clock: &Arc<Clock>,
        mut ended: Ended,
    ) -> Ended {
        let server = &route.target.server.name;
        let (mut rounds, mut backoff) = (0, Backoff::new(PACE));
        loop {
            let Ended::Answered(response, Era::Modern) = &ended else { return ended };
            let input = match wanted::read(serving.request.method(), response) {
                ModernResult::Complete => return ended,
                ModernResult::Malformed(why) => return Ended::Failed(bad_answer(server, why)),
                ModernResult::Wanting(_) if rounds == MOST_ROUNDS => return Ended::Failed(too_many(server)),
                ModernResult::Wanting(wanted) if wanted.requests.is_empty() => {
                    let pause = tokio::time::sleep(backoff.wait());
                    match self.unless_over(serving, route, clock, pause).await {
                        Ok(()) => Input::new(&[], wanted.state),
                        Err(over) => return over,
                    }
                }
                ModernResult::Wanting(wanted) => {
                    backoff.reset();
                    self.metrics.translated(Era::Modern, Translated::Round);
                    match Box::pin(self.answered(serving, route, clock, &wanted)).await {
                        Ok(answers) => Input::new(&answers, wanted.state),
                        Err(over) => return over,
                    }
                }
            };
            ended = self.attempt(serving, route, clock, &input).await;
            rounds += 1;
        }
    }

    /// Asks the caller everything that `wanted` has, at once; gives the answers by their keys.
    async fn answered(
        self: &Arc<Self>,
        serving: Serving<'_>,
        route: &Route,
        clock: &Arc<Clock>,
        wanted: &InputRequired<'_>,
    ) -> Result<Vec<(String, String)>, Ended> {
        let Serving { session, .. } = serving;
        let server = &route.target.server;
        let declared = presented(session, server).class;
        declares_all(&server.name, declared, &wanted.requests).map_err(Ended::Failed)?;
        let questions =
            wanted.requests.iter().map(|request| question(&server.name, session.revision(), request));
        let questions = questions.collect::<Result<Vec<_>, _>>().map_err(Ended::Failed)?;
        let link = self.link(session, server, Pick::Any);
        let connected = self.unless_over(serving, route, clock, link).await?;
        let connected = connected.map_err(|failure| Ended::Failed(failed(failure)))?;
        // While this lives the questions are open; when it goes, the caller is told of those without an answer.
        let underway = self.begin(serving, route, connected, clock);
        let all = wanted.requests.iter().zip(&questions);
        let asked = all.map(|(request, question)| asked(serving, &underway.exchange, request, question));
        let asked: Vec<_> = asked.collect();
        self.unless_over(serving, route, clock, try_join_all(asked)).await?.map_err(Ended::Failed)
    }

    /// What `work` gives, unless the call is over before.
    pub(super) async fn unless_over<T>(
        &self,
        serving: Serving<'_>,
        route: &Route,
        clock: &Clock,
        work: impl Future<Output = T>,
    ) -> Result<T, Ended> {
        let Serving { session, ticket, .. } = serving;
        let server = &route.target.server.name;
        tokio::select! {
            // The end of a session drops its questions: that it ended says more.
            biased;
            () = ticket.cancelled() => Err(Ended::Cancelled),
            () = session.ended.cancelled() => Err(Ended::Failed(session_ended(server))),
            // Nothing is at the server meanwhile, so its own limit in time does not count.
            limit = clock.over() => Err(Ended::TimedOut(timed_out(server, limit))),
            done = work => Ok(done),
        }
    }
}

/// What a server wants to know, as a legacy caller of `revision` is asked it.
fn question(server: &str, revision: Revision, request: &InputRequest<'_>) -> Result<Request, RpcError> {
    let message = request.message(revision, || uuid::Uuid::new_v4().to_string());
    match Message::parse(message.into()) {
        Ok(Message::Request(question)) => Ok(question),
        _ => Err(bad_answer(server, "one of its inputRequests cannot be written for this client")),
    }
}

/// Asks one question, at once; the future gives its key and its answer.
fn asked<'a>(
    serving: Serving<'a>,
    exchange: &Arc<Exchange>,
    request: &'a InputRequest<'_>,
    question: &Request,
) -> impl Future<Output = Result<(String, String), RpcError>> + 'a {
    let Serving { session, .. } = serving;
    let server = &exchange.server;
    let (sender, answer) = oneshot::channel();
    let reply = Reply::told(question.id(), move |said| drop(sender.send(said)));
    ask::ask(session, server, &Belonging::Call(exchange.clone()), question, reply);
    let server = server.name.clone();
    async move {
        let said = answer.await.unwrap_or_else(|_| Err(Refused::gone()));
        let said = said.map_err(|refused| no_answer(&server, &request.method, &refused.message))?;
        let Ok(Message::Response(answer)) = Message::parse(said) else {
            return Err(no_answer(&server, &request.method, "the answer cannot be read"));
        };
        Ok((request.key.to_string(), result_of(&server, request, &answer)?))
    }
}

/// The bare result in a caller's answer. An error has no place among answers (R9): a person who was asked has so
/// declined to answer, and for the rest there is no way to go on without (X14).
fn result_of(server: &str, request: &InputRequest<'_>, answer: &Response) -> Result<String, RpcError> {
    match (answer.result(), answer.error()) {
        (Some(result), _) => Ok(result.to_owned()),
        (None, _) if request.method == Method::ElicitationCreate => Ok(r#"{"action":"cancel"}"#.to_owned()),
        (None, error) => {
            let error = error.and_then(|raw| Object::parse(raw).ok()).unwrap_or_default();
            let said = error.get("message").and_then(text).unwrap_or_default();
            let said: String = said.chars().take(SHOWN).collect();
            let code = error.get("code").unwrap_or("none");
            let why = format!("the client answered with an error, code {code}: {said}");
            Err(no_answer(server, &request.method, &why))
        }
    }
}

fn no_answer(server: &str, method: &Method, why: &str) -> RpcError {
    let message = format!("Server `{server}` cannot go on with this call: it asked for {method}, and {why}.");
    RpcError::new(Code::Internal, "no_input", message).at(server, Layer::Call)
}

fn undeclared(server: &str, method: &Method) -> RpcError {
    let message = format!(
        "Server `{server}` asked for {method} in a form that this client did not declare; the client was not asked."
    );
    RpcError::new(Code::Internal, "undeclared_input_request", message).at(server, Layer::Call)
}

pub(super) fn bad_answer(server: &str, why: &str) -> RpcError {
    let message = format!("Server `{server}` answered with what its protocol does not allow: {why}.");
    RpcError::new(Code::Internal, "bad_result", message).at(server, Layer::Call)
}

fn too_many(server: &str) -> RpcError {
    let message = format!("Server `{server}` wanted input {MOST_ROUNDS} times in one call, and then again.");
    RpcError::new(Code::Internal, "too_many_rounds", message).at(server, Layer::Call)
}

#[cfg(test)]
mod tests;
