//! Requests of the modern era (2026-07-28): each stands alone, and closing its stream cancels it (T54).
//!
//! What must be kept between the requests of one caller, above all links to legacy servers, is kept in an implicit
//! session.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};

use futures_util::FutureExt as _;
use http::{HeaderName, HeaderValue};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::elsewhere::Settled;
use super::lanes::Taken;
use super::outlet::Outlet;
use super::parked::{
    Carried, ForModern, Questions, Retried, Served, Wanted, Work, can_be_asked, mentions_state,
};
use super::request::{Next, no_such_method, unknown};
use super::route::Route;
use super::running::Running;
use super::seat::{Known, NoSeat};
use super::serving::Serving;
use super::shared::Pick;
use super::{Came, Elsewhere, Post, Relay, Session, Unplaced};
use crate::catalog::{Endpoint, Kind};
use crate::protocol::capability::CapabilityClass;
use crate::protocol::edit::Text;
use crate::protocol::envelope::Request;
use crate::protocol::error::{Code, RpcError};
use crate::protocol::method::Method;
use crate::protocol::revision::Revision;
use crate::session::{Owner, Reader};
use crate::telemetry::metrics::CallOutcome;

/// What a modern request says of its caller, as the edge found it in `_meta`.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The revision it is written in.
    pub revision: Revision,
    /// The client capabilities, as a raw JSON object (M2).
    pub capabilities: Box<str>,
    /// What they amount to.
    pub class: CapabilityClass,
    /// The client's name and version, as a raw JSON object, if it gave them (M3).
    pub client_info: Option<Box<str>>,
    /// The least severe log messages wanted with the response, if any are (M4).
    pub log_level: Option<Box<str>>,
    /// The `Mcp-Param-*` headers of a tool call, each sent once (T48).
    pub params: Vec<(HeaderName, HeaderValue)>,
}

/// The answer to a modern request.
#[derive(Debug)]
pub enum ModernAnswer {
    /// One JSON text, at HTTP 200.
    Json(Text),
    /// A server's own error whose code has an HTTP status of its own, whoever says it (T40, T42).
    Failed(Code, Text),
    /// An error of the gateway's own from before the request was relayed: its code decides the HTTP status.
    Refused(RpcError),
    /// A stream; dropping the guard cancels the request.
    Stream(Reader, DropGuard),
    /// None here: another replica is to serve it.
    Elsewhere(Box<Elsewhere>),
    /// None here, and nothing ran: a peer takes this replica for an owner that it is not.
    NotOwner,
}

/// A modern request and what it is served with.
struct Asked {
    session: Arc<Session>,
    endpoint: Arc<Endpoint>,
    request: Request,
    brings: Brings,
    /// The log messages it wants.
    level: Option<Box<str>>,
    outlet: Arc<Outlet>,
    /// Takes it back.
    cancelled: CancellationToken,
}

/// What a request brings beside its own params.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Brings {
    Nothing,
    /// A state or answers that are not ours.
    State,
}

// === impl Relay ===

impl Relay {
    /// Serves one modern request that is no listen ([`Relay::listen`]).
    ///
    /// # Errors
    /// [`NoSeat`]
    ///
    /// # Cancellation
    /// Dropping the future, or the guard of the stream it gave, cancels the request.
    pub async fn modern(
        self: &Arc<Self>,
        post: Post<'_>,
        claim: &Claim,
        request: Request,
        came: Came<'_>,
    ) -> Result<ModernAnswer, NoSeat> {
        let Post { caller, endpoint, form, .. } = post;
        let (mut request, mut brings, mut seat) = (request, Brings::Nothing, None);
        if mentions_state(&request) {
            let retried = self.retried(&post, claim, request, came);
            match Box::pin(retried).await {
                Ok(Retried::First(first)) => request = first,
                Ok(Retried::Again(first, kept)) => (request, seat) = (first, kept),
                Ok(Retried::Foreign(foreign)) => (request, brings) = (foreign, Brings::State),
                Ok(Retried::Asked(again)) => return Ok(ModernAnswer::Json(again.into())),
                Ok(Retried::Resumed(carried)) => return Ok(self.answer_modern(carried, form).await),
                Ok(Retried::Elsewhere(request, peer)) => {
                    let elsewhere = Elsewhere { peer, epoch: None, request, names: Vec::new() };
                    return Ok(ModernAnswer::Elsewhere(elsewhere.into()));
                }
                Ok(Retried::Unplaced(unlocated)) => return Err(Unplaced::from(unlocated).into()),
                Err(refused) => return Ok(ModernAnswer::Refused(refused)),
            }
        }
        let seat = match seat {
            Some(kept) => kept,
            None => self.seat(caller, endpoint, &Known::of(claim))?,
        };
        if !self.is_settled(&seat, came) {
            match Box::pin(self.settle(&seat, endpoint, &request, came)).await? {
                Settled::Here => {}
                Settled::At(Owner { peer, epoch }) => {
                    let names = self.sessions.implicit_names(&seat.session);
                    let elsewhere = Elsewhere { peer, epoch: Some(epoch), request, names };
                    return Ok(ModernAnswer::Elsewhere(elsewhere.into()));
                }
                Settled::NotOwner => return Ok(ModernAnswer::NotOwner),
                Settled::Refused(error) => {
                    self.metrics.request(request.method().label(), CallOutcome::RpcError);
                    return Ok(ModernAnswer::Refused(of_this_era(error)));
                }
            }
        }
        if let Err(error) = self.check_param_headers(&seat.session, endpoint, &request, &claim.params) {
            self.metrics.request(request.method().label(), CallOutcome::RpcError);
            return Ok(ModernAnswer::Refused(error));
        }
        let modern = ForModern {
            wanted: Wanted::new(claim.log_level.as_deref()),
            // By what this request declares: a kept seat may be in the session of one that declared more (R4).
            questions: can_be_asked(request.method()).then(|| Questions::new(claim.class)),
            lane: OnceLock::new(),
            again: OnceLock::new(),
        };
        let asked = Asked {
            session: seat.session.clone(),
            endpoint: endpoint.clone(),
            request: request.clone(),
            brings,
            level: claim.log_level.clone(),
            outlet: Outlet::modern(self.sessions.plain(), form, post.request_id, modern),
            cancelled: CancellationToken::new(),
        };
        let (outlet, cancelled) = (asked.outlet.clone(), asked.cancelled.clone());
        let work: Work = Box::pin(work(self.clone(), asked));
        let carried = Carried::new(work, outlet, request, seat, cancelled, self.tasks.clone());
        Ok(self.answer_modern(carried, form).await)
    }

    async fn serve_modern(self: &Arc<Self>, asked: &Asked) -> Option<Served> {
        let Asked { session, endpoint, request, outlet, cancelled, .. } = asked;
        let ticket = Running::enter(session, request.id(), cancelled.clone());
        let serving = Serving { session, endpoint, request, outlet, ticket: &ticket, pick: Pick::Any };
        let next = tokio::select! {
            biased;
            next = self.next_modern(serving) => next.map_err(of_this_era),
            () = ticket.cancelled() => return None,
        };
        let (outcome, served) = match next {
            Ok(Next::Server(route)) => {
                let ready = tokio::select! {
                    biased;
                    ready = self.ready(serving, &route, asked) => ready,
                    () = ticket.cancelled() => return None,
                };
                match ready {
                    Ok(lane) => {
                        let pick = lane.as_ref().map_or(Pick::Any, |taken| taken.0.pick());
                        if let (Some(taken), Some(modern)) = (&lane, outlet.for_modern()) {
                            let _ = modern.lane.set(taken.0.clone());
                        }
                        let served = self.relayed(Serving { pick, ..serving }, &route).await;
                        return served.map(Served::Response);
                    }
                    Err(error) => (CallOutcome::Unavailable, Served::Refused(error, request.id().into())),
                }
            }
            Ok(Next::Caller(response)) => (CallOutcome::Ok, Served::Response(response)),
            Err(error) => (CallOutcome::RpcError, Served::Refused(error, request.id().into())),
        };
        self.metrics.request(request.method().label(), outcome);
        Some(served)
    }

    /// What must be so before a request may go to its server; gives the lane that it must take, if any.
    async fn ready(
        self: &Arc<Self>,
        serving: Serving<'_>,
        route: &Route,
        asked: &Asked,
    ) -> Result<Option<Taken>, RpcError> {
        if asked.brings == Brings::State {
            Box::pin(self.only_for_modern(serving.session, route)).await?;
        }
        if let Some(level) = &asked.level {
            Box::pin(self.raise_level(serving.session, serving.endpoint, level)).await;
        }
        match self.lanes(serving, &route.target.server) {
            Some(lanes) => Box::pin(lanes.turn()).await.map(Some),
            None => Ok(None),
        }
    }

    /// What becomes of a modern request: its response, or the way to its server.
    async fn next_modern(self: &Arc<Self>, serving: Serving<'_>) -> Result<Next, RpcError> {
        let Serving { session, endpoint, request, .. } = serving;
        let list = |kind| self.listed_modern(serving, kind);
        match request.method() {
            Method::ToolsList => list(Kind::Tools).await,
            Method::PromptsList => list(Kind::Prompts).await,
            Method::ResourcesList => list(Kind::Resources).await,
            Method::ResourceTemplatesList => list(Kind::Templates).await,
            Method::ToolsCall | Method::PromptsGet | Method::ResourcesRead | Method::Complete => {
                self.route(session, endpoint, request).await.map(Next::Server)
            }
            Method::TasksGet | Method::TasksUpdate | Method::TasksCancel => {
                self.task_route(serving).map(Next::Server)
            }
            Method::Discover => Ok(Next::Caller(self.discover(session, endpoint, request).await)),
            // T40, J5: gone with this revision.
            Method::TasksList
            | Method::TasksResult
            | Method::Initialize
            | Method::Ping
            | Method::SetLevel
            | Method::ResourcesSubscribe
            | Method::ResourcesUnsubscribe => Err(no_such_method(request)),
            // Never a caller's to send.
            Method::SamplingCreate | Method::ElicitationCreate | Method::RootsList => {
                Err(no_such_method(request))
            }
            _ => unknown(endpoint, request).map(Next::Server),
        }
    }
}

/// The whole work of a modern request. It borrows nothing, so that it can be parked.
async fn work(relay: Arc<Relay>, asked: Asked) -> Option<Served> {
    let served = AssertUnwindSafe(relay.serve_modern(&asked)).catch_unwind().await;
    served.unwrap_or_else(|_| Some(Served::Refused(panicked(&asked.outlet), asked.request.id().into())))
}

/// An error of ours in the words of this era, which has no -32002 (X44).
fn of_this_era(error: RpcError) -> RpcError {
    match error.code {
        Code::ResourceNotFound => RpcError { code: Code::InvalidParams, ..error },
        _ => error,
    }
}

fn panicked(outlet: &Outlet) -> RpcError {
    tracing::error!(request.id = %outlet.request_id(), "a request panicked");
    let message = "The gateway failed while it served this request; its outcome is unknown. The log says more under \
                   the request id.";
    RpcError::new(Code::Internal, "panicked", message)
}

#[cfg(test)]
mod tests;
