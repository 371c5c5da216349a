//! Requests of the modern era (2026-07-28): each stands alone, and closing its stream cancels it (T54).
//!
//! What must be kept between the requests of one caller, above all links to legacy servers, is kept in an implicit
//! session.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{HeaderName, HeaderValue};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::outlet::Outlet;
use super::request::{Next, no_such_method, unknown};
use super::running::Running;
use super::seat::{Known, NoSeat};
use super::serving::Serving;
use super::{Caller, Form, Relay, Session};
use crate::catalog::{Endpoint, Kind};
use crate::protocol::edit::Text;
use crate::protocol::envelope::{Message, Request};
use crate::protocol::error::{Code, RpcError};
use crate::protocol::method::Method;
use crate::protocol::object::Object;
use crate::protocol::revision::Revision;
use crate::session::Reader;
use crate::telemetry::metrics::CallOutcome;

/// What a modern request says of its caller, as the edge found it in `_meta`.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The revision it is written in.
    pub revision: Revision,
    /// The client capabilities, as a raw JSON object (M2).
    pub capabilities: Box<str>,
    /// The client's name and version, as a raw JSON object, if it gave them (M3).
    pub client_info: Option<Box<str>>,
    /// The `Mcp-Param-*` headers of a tool call, each sent once (T48).
    pub params: Vec<(HeaderName, HeaderValue)>,
}

/// The answer to a modern request.
#[derive(Debug)]
pub enum ModernAnswer {
    /// One JSON text, at HTTP 200.
    Json(Text),
    /// A server's own error, one JSON text too: the caller did not declare a capability that it needs (T42).
    Unable(Text),
    /// An error of the gateway's own from before the request was relayed: its code decides the HTTP status.
    Refused(RpcError),
    /// A stream; dropping the guard cancels the request.
    Stream(Reader, DropGuard),
}

/// What a modern request led to.
enum Served {
    Response(Text),
    /// An error of ours, to the request of this raw id.
    Refused(RpcError, Box<str>),
}

type Work = Pin<Box<dyn Future<Output = Option<Served>> + Send>>;

// === impl Relay ===

impl Relay {
    /// Serves one modern request.
    ///
    /// # Errors
    /// [`NoSeat`]
    ///
    /// # Cancellation
    /// Dropping the future, or the guard of the stream it gave, cancels the request.
    pub async fn modern(
        self: &Arc<Self>,
        caller: &Caller,
        endpoint: &Arc<Endpoint>,
        claim: &Claim,
        request: Request,
        form: Form,
        request_id: Arc<str>,
    ) -> Result<ModernAnswer, NoSeat> {
        if *request.method() == Method::Listen {
            return self.listen(caller, endpoint, claim, &request, form).await;
        }
        let seat = self.seat(caller, endpoint, &Known::of(claim))?;
        if let Err(error) = self.check_param_headers(&seat.session, endpoint, &request, &claim.params) {
            self.metrics.request(request.method().label(), CallOutcome::RpcError);
            return Ok(ModernAnswer::Refused(error));
        }
        let outlet = Outlet::new(self.sessions.plain_streams(), form, request_id);
        let cancelled = CancellationToken::new();
        let guard = cancelled.clone().drop_guard();
        let work: Work = {
            let (relay, endpoint, outlet) = (self.clone(), endpoint.clone(), outlet.clone());
            Box::pin(async move {
                let id: Box<str> = request.id().into();
                let serve = relay.serve_modern(&seat.session, &endpoint, request, &outlet, cancelled);
                let served = AssertUnwindSafe(serve).catch_unwind().await;
                served.unwrap_or_else(|_| Some(Served::Refused(panicked(&outlet), id)))
            })
        };
        Ok(self.answer_modern(work, outlet, form, guard).await)
    }

    /// Runs `work` on the caller's task for as long as nothing need be sent ahead of its answer; a stream begins with
    /// the first message, or when a connection that stays silent may be taken for dead (F15). So what fails early
    /// has its HTTP status, also for a caller that takes streams only.
    async fn answer_modern(
        &self,
        work: Work,
        outlet: Arc<Outlet>,
        form: Form,
        open: DropGuard,
    ) -> ModernAnswer {
        let mut carried = Carried { work: Some(work), open: Some(open), outlet, tasks: self.tasks.clone() };
        let Some(work) = carried.work.as_mut() else { return ModernAnswer::Json(Bytes::new().into()) };
        let silent = tokio::time::sleep(self.keep_alive);
        let reader = tokio::select! {
            biased;
            served = work => return carried.answered(served, form),
            () = carried.outlet.begun() => carried.outlet.take_reader(),
            () = silent, if form != Form::JsonOnly => {
                carried.outlet.begin();
                carried.outlet.take_reader()
            }
        };
        carried.stream(reader)
    }

    async fn serve_modern(
        self: &Arc<Self>,
        session: &Arc<Session>,
        endpoint: &Arc<Endpoint>,
        request: Request,
        outlet: &Arc<Outlet>,
        cancelled: CancellationToken,
    ) -> Option<Served> {
        let ticket = Running::enter(session, request.id(), cancelled);
        let serving = Serving { session, endpoint, request: &request, outlet, ticket: &ticket };
        let next = tokio::select! {
            biased;
            next = self.next_modern(serving) => next,
            () = ticket.cancelled() => return None,
        };
        let (outcome, served) = match next {
            Ok(Next::Server(route)) => return self.relayed(serving, &route).await.map(Served::Response),
            Ok(Next::Caller(response)) => (CallOutcome::Ok, Served::Response(response)),
            Err(error) => (CallOutcome::RpcError, Served::Refused(error, request.id().into())),
        };
        self.metrics.request(request.method().label(), outcome);
        Some(served)
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

/// Work whose caller still waits for the answer to begin; one that leaves instead has cancelled it (T54). The work is
/// let come to its own end all the same, in which it takes its leave of the server.
struct Carried {
    work: Option<Work>,
    open: Option<DropGuard>,
    outlet: Arc<Outlet>,
    tasks: TaskTracker,
}

impl Carried {
    /// The answer of work that ended before anything was sent ahead of it; none if its caller is gone.
    fn answered(mut self, served: Option<Served>, form: Form) -> ModernAnswer {
        self.work = None;
        // A message may have gone ahead of it at the very end.
        let begun = match &served {
            Some(Served::Response(text)) if form == Form::SseOnly && !says_unable(text) => {
                self.outlet.begin();
                self.outlet.take_reader()
            }
            _ => self.outlet.settle(),
        };
        match (begun, served) {
            (Some(reader), served) => {
                finish(&self.outlet, served);
                self.stream(Some(reader))
            }
            (None, Some(Served::Response(text))) if says_unable(&text) => ModernAnswer::Unable(text),
            (None, Some(Served::Response(text))) => ModernAnswer::Json(text),
            (None, Some(Served::Refused(error, _))) => ModernAnswer::Refused(error),
            (None, None) => ModernAnswer::Json(Bytes::new().into()),
        }
    }

    /// Lets the work go on by itself and gives its stream to the connection.
    fn stream(mut self, reader: Option<Reader>) -> ModernAnswer {
        self.go_on();
        match (reader, self.open.take()) {
            (Some(reader), Some(open)) => ModernAnswer::Stream(reader, open),
            _ => ModernAnswer::Json(Bytes::new().into()),
        }
    }

    fn go_on(&mut self) {
        if let Some(work) = self.work.take() {
            let outlet = self.outlet.clone();
            self.tasks.spawn(async move { finish(&outlet, work.await) });
        }
    }
}

impl Drop for Carried {
    fn drop(&mut self) {
        if self.work.is_some() {
            self.outlet.abandon();
            drop(self.open.take());
            self.go_on();
        }
    }
}

fn finish(outlet: &Outlet, served: Option<Served>) {
    if let Some(response) = served.map(|served| served.into_text(outlet)) {
        outlet.push_response(response.join());
    }
    outlet.complete();
}

/// Whether a response is the error -32021: the caller lacks a capability, which is 400 whoever says so (T42).
fn says_unable(text: &Text) -> bool {
    let number = Code::MissingCapability.number();
    let mentioned = |part: &[u8]| memchr::memmem::find(part, b"-32021").is_some();
    if !mentioned(&text.head) && !mentioned(&text.tail) {
        return false;
    }
    match Message::parse(text.clone().join()) {
        Ok(Message::Response(response)) => {
            let code = response.error().and_then(|raw| Object::parse(raw).ok()?.get("code")?.parse().ok());
            code == Some(number)
        }
        _ => false,
    }
}

fn panicked(outlet: &Outlet) -> RpcError {
    tracing::error!(request.id = outlet.request_id(), "a request panicked");
    let message = "The gateway failed while it served this request; its outcome is unknown. The log says more under \
                   the request id.";
    RpcError::new(Code::Internal, "panicked", message)
}

// === impl Served ===

impl Served {
    fn into_text(self, outlet: &Outlet) -> Text {
        match self {
            Self::Response(text) => text,
            Self::Refused(error, id) => error.to_message(Some(&id), Some(outlet.request_id())).into(),
        }
    }
}
