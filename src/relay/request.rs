//! What each request of a caller leads to: answered here, merged from lists, or carried to one server.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use tokio_util::sync::CancellationToken;

use super::answer::{Answer, Form, Work, answer};
use super::outlet::{Among, Outlet};
use super::route::{Route, meta_of};
use super::running::Running;
use super::serving::Serving;
use super::shared::Pick;
use super::{Relay, Session};
use crate::catalog::{Endpoint, Kind, Naming, Target};
use crate::protocol::edit::{Text, one_line};
use crate::protocol::envelope::Request;
use crate::protocol::error::{Code, RpcError};
use crate::protocol::method::Method;
use crate::protocol::object::Object;
use crate::session::journal::About;
use crate::session::log::EventKind;
use crate::session::{Reader, TooManyStreams};
use crate::telemetry::metrics::CallOutcome;

/// Why a request is not taken now: its caller runs as much as it may (429), or the gateway cannot (503).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Busy {
    /// `limits.inFlightPerSession` is reached.
    #[error("this session runs as many requests as limits.inFlightPerSession allows; wait for some to end")]
    Requests,
    /// The session is being given up at this moment.
    #[error("this session is on its way from one replica to another; try again in a moment")]
    Moving,
    /// `limits.listensPerPrincipal` is reached.
    #[error("this caller has as many listens open as limits.listensPerPrincipal allows; close some")]
    Listens,
    /// `streams.max` is reached.
    #[error(transparent)]
    Streams(#[from] TooManyStreams),
}

// === impl Busy ===

impl Busy {
    /// The word in errors.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Requests => "session_busy",
            Self::Moving => "session_moving",
            Self::Listens => "too_many_listens",
            Self::Streams(_) => "too_many_streams",
        }
    }
}

/// Whether a POST held one message or an array of them (T19).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batching {
    /// One message.
    Single,
    /// An array, whose responses go back as one.
    Array,
}

// === impl Relay ===

impl Relay {
    /// Serves the requests of one POST and answers by the grace rule.
    ///
    /// # Errors
    /// [`Busy`]
    pub async fn requests(
        self: &Arc<Self>,
        session: &Arc<Session>,
        endpoint: &Arc<Endpoint>,
        requests: Vec<Request>,
        form: Form,
        batching: Batching,
        request_id: Arc<str>,
    ) -> Result<Answer, Busy> {
        let mut running = Vec::with_capacity(requests.len());
        for _ in &requests {
            let why = || if session.is_retired() { Busy::Moving } else { Busy::Requests };
            running.push(session.run(self.in_flight).ok_or_else(why)?);
        }
        let outlet = Outlet::new(Among::Session(session.streams.clone()), form, request_id);
        if session.streams.journal().is_some() {
            outlet.is_about(About::of(&requests));
        }
        Ok(self.serve_all(session, endpoint, requests, outlet, batching, running).await)
    }

    /// Serves requests and answers by the grace rule; `held` is dropped when all are served.
    pub(super) async fn serve_all(
        self: &Arc<Self>,
        session: &Arc<Session>,
        endpoint: &Arc<Endpoint>,
        requests: Vec<Request>,
        outlet: Arc<Outlet>,
        batching: Batching,
        held: impl Send + 'static,
    ) -> Answer {
        let work: Work = {
            let (relay, session, endpoint, outlet) =
                (self.clone(), session.clone(), endpoint.clone(), outlet.clone());
            Box::pin(async move {
                let _held = held;
                let serve = |request: Request| relay.serve_safely(&session, &endpoint, request, &outlet);
                match <[Request; 1]>::try_from(requests) {
                    Ok([request]) => serve(request).await.into_iter().collect(),
                    Err(requests) => {
                        let all = futures_util::future::join_all(requests.into_iter().map(serve)).await;
                        all.into_iter().flatten().collect()
                    }
                }
            })
        };
        let join = match batching {
            Batching::Single => |responses: Vec<Text>| responses.into_iter().next(),
            Batching::Array => array,
        };
        answer(work, outlet, self.grace, &self.tasks, join).await
    }

    /// A stream that holds one response and ends, for a caller that takes no JSON.
    pub fn single(&self, session: &Session, response: Bytes) -> Reader {
        let reader = session.streams.begin_post(About::answered_by(&response));
        session.streams.push(reader.stream(), EventKind::Response, one_line(response));
        session.streams.complete(reader.stream());
        reader
    }

    /// Serves one request; a panic of ours is its error, also when the answer has long been a stream (case-I13).
    async fn serve_safely(
        self: &Arc<Self>,
        session: &Arc<Session>,
        endpoint: &Arc<Endpoint>,
        request: Request,
        outlet: &Arc<Outlet>,
    ) -> Option<Text> {
        let id: Box<str> = request.id().into();
        let served = AssertUnwindSafe(self.serve(session, endpoint, request, outlet)).catch_unwind().await;
        served.unwrap_or_else(|_| {
            tracing::error!(request.id = %outlet.request_id(), "a request panicked");
            let message = "The gateway failed while it served this request; its outcome is unknown. The log says \
                           more under the request id.";
            let error = RpcError::new(Code::Internal, "panicked", message);
            Some(error.to_message(Some(&id), Some(&outlet.request_id())).into())
        })
    }

    /// Serves one request; gives its response, or none if it was cancelled.
    async fn serve(
        self: &Arc<Self>,
        session: &Arc<Session>,
        endpoint: &Arc<Endpoint>,
        request: Request,
        outlet: &Arc<Outlet>,
    ) -> Option<Text> {
        let ticket = Running::enter(session, request.id(), CancellationToken::new());
        let serving =
            Serving { session, endpoint, request: &request, outlet, ticket: &ticket, pick: Pick::Any };
        // What is at a server notices both by itself; this is for what is not there yet, and mostly never waits.
        let next = tokio::select! {
            biased;
            next = self.next(serving) => next,
            () = ticket.cancelled() => return None,
            () = session.ended.cancelled() => {
                let message = "The session ended while this request waited for servers; it did not run.";
                Err(RpcError::new(Code::Internal, "session_ended", message))
            }
        };
        let (outcome, response) = match next {
            Ok(Next::Server(route)) => return self.relayed(serving, &route).await,
            Ok(Next::Caller(response)) => (CallOutcome::Ok, response),
            Err(error) => {
                let error = error.to_message(Some(request.id()), Some(&outlet.request_id()));
                (CallOutcome::RpcError, error.into())
            }
        };
        self.metrics.request(request.method().label(), outcome);
        Some(response)
    }

    /// What becomes of a request: its response, or the way to its server.
    async fn next(self: &Arc<Self>, serving: Serving<'_>) -> Result<Next, RpcError> {
        let Serving { session, endpoint, request, .. } = serving;
        let list = |kind| self.listed(serving, kind);
        match request.method() {
            Method::Ping => Ok(Next::Caller(respond(request.id(), b"{}").into())),
            Method::Initialize => Err(RpcError::new(
                Code::InvalidRequest,
                "already_initialized",
                "The session is initialized already; to start anew, send initialize without Mcp-Session-Id.",
            )),
            Method::ToolsList => list(Kind::Tools).await,
            Method::PromptsList => list(Kind::Prompts).await,
            Method::ResourcesList => list(Kind::Resources).await,
            Method::ResourceTemplatesList => list(Kind::Templates).await,
            Method::SetLevel => Ok(Next::Caller(self.set_level(session, endpoint, request).await?.into())),
            Method::ToolsCall
            | Method::PromptsGet
            | Method::ResourcesRead
            | Method::ResourcesSubscribe
            | Method::ResourcesUnsubscribe
            | Method::Complete => self.route(session, endpoint, request).await.map(Next::Server),
            Method::TasksGet | Method::TasksResult | Method::TasksCancel | Method::TasksUpdate => {
                self.task_route(serving).map(Next::Server)
            }
            Method::TasksList => self.list_tasks(serving).await,
            _ => unknown(endpoint, request).map(Next::Server),
        }
    }

    pub(super) async fn relayed(self: &Arc<Self>, serving: Serving<'_>, route: &Route) -> Option<Text> {
        if serving.session.streams.journal().is_some() {
            serving.outlet.goes_to(&route.target.server.name);
        }
        match serving.request.method() {
            Method::ResourcesSubscribe => self.subscribe(serving, route).await,
            Method::ResourcesUnsubscribe => self.unsubscribe(serving, route).await,
            _ => self.call(serving, route).await,
        }
    }

    async fn listed(self: &Arc<Self>, serving: Serving<'_>, kind: Kind) -> Result<Next, RpcError> {
        let Serving { session, endpoint, request, .. } = serving;
        no_cursor(request)?;
        let view = self.list(session, endpoint, kind).await;
        let head = format!(r#"{{"jsonrpc":"2.0","id":{},"result":"#, request.id());
        Ok(Next::Caller(Text { head: head.into(), tail: view.result_and_brace().clone() }))
    }
}

/// Everything comes in one page, so no cursor of ours exists (case-G11).
pub(super) fn no_cursor(request: &Request) -> Result<(), RpcError> {
    if let Some(raw) = request.params() {
        let params = Object::parse(raw).map_err(|e| {
            RpcError::new(Code::InvalidParams, "invalid_params", format!("params cannot be read: {e}"))
        })?;
        if params.get("cursor").is_some_and(|c| c != "null") {
            let message = "unknown cursor; lists come in one page here, so none was given out";
            return Err(RpcError::new(Code::InvalidParams, "unknown_cursor", message));
        }
    }
    Ok(())
}

/// What becomes of a request.
pub(super) enum Next {
    /// It is answered here.
    Caller(Text),
    /// It goes to a server.
    Server(Route),
}

/// A whole response with this raw result.
pub(super) fn respond(id: &str, result: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(40 + id.len() + result.len());
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id.as_bytes());
    out.extend_from_slice(br#","result":"#);
    out.extend_from_slice(result);
    out.push(b'}');
    out.into()
}

/// The way of a method no revision here knows: a single server may know it.
pub(super) fn unknown(endpoint: &Endpoint, request: &Request) -> Result<Route, RpcError> {
    let [only] = endpoint.servers.as_slice() else { return Err(no_such_method(request)) };
    if endpoint.naming != Naming::Bare || *request.method() == Method::Discover {
        return Err(no_such_method(request));
    }
    let params = request.params().map_or_else(|| Ok(Object::default()), Object::parse);
    let params = params.map_err(|e| {
        RpcError::new(Code::InvalidParams, "invalid_params", format!("params cannot be read: {e}"))
    })?;
    let (meta, token) = meta_of(&params, request)?;
    Ok(Route { target: Target { server: only.clone(), own: "".into() }, rename: None, meta, token })
}

pub(super) fn no_such_method(request: &Request) -> RpcError {
    let shown: String = request.method().as_str().chars().take(128).collect();
    RpcError::new(Code::MethodNotFound, "unknown_method", format!("unknown method `{shown}`"))
}

fn array(responses: Vec<Text>) -> Option<Text> {
    if responses.is_empty() {
        return None;
    }
    let responses: Vec<Bytes> = responses.into_iter().map(Text::join).collect();
    let mut out = vec![b'['];
    out.extend_from_slice(&responses.join(&b","[..]));
    out.push(b']');
    Some(Bytes::from(out).into())
}
