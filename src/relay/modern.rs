//! Requests of the modern era (2026-07-28): each stands alone, and closing its stream cancels it (T54).
//!
//! What must be kept between the requests of one caller, above all links to legacy servers, is kept in an implicit
//! session.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::outlet::Outlet;
use super::request::{Busy, Next, no_cursor, no_such_method, unknown};
use super::running::Running;
use super::serving::Serving;
use super::{Caller, Conversation, Form, Relay, Session, extensions};
use crate::catalog::{Endpoint, Kind};
use crate::protocol::capability::CapabilityClass;
use crate::protocol::edit::Text;
use crate::protocol::envelope::Request;
use crate::protocol::error::{Code, RpcError};
use crate::protocol::method::Method;
use crate::protocol::revision::Revision;
use crate::session::implicit::ImplicitKey;
use crate::session::live::Greeting;
use crate::session::{Binding, Reader};
use crate::store::Epoch;
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
}

/// The answer to a modern request.
#[derive(Debug)]
pub enum ModernAnswer {
    /// One JSON text, at HTTP 200.
    Json(Text),
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
    /// [`Busy`]
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
    ) -> Result<ModernAnswer, Busy> {
        let session = self.implicit_session(caller, endpoint, claim);
        let running = session.run(self.in_flight).ok_or(Busy)?;
        let outlet = Outlet::new(self.sessions.plain_streams(), form, request_id);
        let cancelled = CancellationToken::new();
        let guard = cancelled.clone().drop_guard();
        let work: Work = {
            let (relay, endpoint, outlet) = (self.clone(), endpoint.clone(), outlet.clone());
            Box::pin(async move {
                let _running = running;
                let id: Box<str> = request.id().into();
                let serve = relay.serve_modern(&session, &endpoint, request, &outlet, cancelled);
                let served = AssertUnwindSafe(serve).catch_unwind().await;
                served.unwrap_or_else(|_| Some(Served::Refused(panicked(&outlet), id)))
            })
        };
        Ok(self.answer_modern(work, outlet, form, guard).await)
    }

    /// Runs `work` on the caller's task for as long as nothing need be sent ahead of its answer; a stream begins with
    /// the first message, or when a connection that stays silent may be taken for dead (F15).
    async fn answer_modern(
        &self,
        mut work: Work,
        outlet: Arc<Outlet>,
        form: Form,
        guard: DropGuard,
    ) -> ModernAnswer {
        if form == Form::SseOnly {
            outlet.begin();
        } else {
            let silent = tokio::time::sleep(self.keep_alive);
            tokio::select! {
                biased;
                served = &mut work => return answered(served, &outlet, guard),
                () = outlet.begun() => {}
                () = silent, if form == Form::Either => drop(outlet.begin()),
                else => {}
            }
        }
        let Some(reader) = outlet.take_reader() else { return answered(work.await, &outlet, guard) };
        self.tasks.spawn(async move {
            let served = work.await;
            if let Some(response) = served.map(|served| served.into_text(&outlet)) {
                outlet.push_response(response.join());
            }
            outlet.complete();
        });
        ModernAnswer::Stream(reader, guard)
    }

    /// The implicit session of a modern caller.
    fn implicit_session(&self, caller: &Caller, endpoint: &Endpoint, claim: &Claim) -> Arc<Session> {
        let class = CapabilityClass::of(&claim.capabilities);
        let binding = Binding { principal: caller.binding, endpoint: endpoint.path.clone() };
        let key = ImplicitKey { binding, revision: claim.revision, class, alone: None };
        self.sessions.implicit(&key, || {
            let unknown = || r#"{"name":"unknown","version":"0"}"#.into();
            let greeting = Greeting {
                revision: claim.revision,
                params: "{}".into(),
                capabilities: extensions::admitted(endpoint, &claim.capabilities),
                client_info: claim.client_info.clone().unwrap_or_else(unknown),
                class,
            };
            let tenant = caller.principal.tenant.clone();
            (greeting, Conversation::new(tenant, Epoch::FIRST.0, self.tasks.clone()))
        })
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
            // T40: gone with this revision.
            Method::Initialize
            | Method::Ping
            | Method::SetLevel
            | Method::ResourcesSubscribe
            | Method::ResourcesUnsubscribe => Err(no_such_method(request)),
            _ => unknown(endpoint, request).map(Next::Server),
        }
    }

    async fn listed_modern(self: &Arc<Self>, serving: Serving<'_>, kind: Kind) -> Result<Next, RpcError> {
        let Serving { session, endpoint, request, .. } = serving;
        no_cursor(request)?;
        let view = self.list(session, endpoint, kind).await;
        let head = format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{{"resultType":"complete","ttlMs":0,"cacheScope":"private","#,
            request.id()
        );
        // The view's own brace is in the head.
        Ok(Next::Caller(Text { head: head.into(), tail: view.result_and_brace().slice(1..) }))
    }
}

/// The answer of work that ended before anything was sent ahead of it; none if its caller is gone.
fn answered(served: Option<Served>, outlet: &Outlet, guard: DropGuard) -> ModernAnswer {
    // A message may have gone ahead of it at the very end.
    match (outlet.settle(), served) {
        (Some(reader), served) => {
            if let Some(response) = served.map(|served| served.into_text(outlet)) {
                outlet.push_response(response.join());
            }
            outlet.complete();
            ModernAnswer::Stream(reader, guard)
        }
        (None, Some(Served::Response(text))) => ModernAnswer::Json(text),
        (None, Some(Served::Refused(error, _))) => ModernAnswer::Refused(error),
        (None, None) => ModernAnswer::Json(Bytes::new().into()),
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
