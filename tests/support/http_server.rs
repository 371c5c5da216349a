//! A Streamable HTTP server that lives in the test's process and does what the test says, byte by byte.
//!
//! ```ignore
//! let server = HttpServer::start().await;                       // answers initialize, ping, tools/list, tools/call
//! server.on(rpc("tools/call"), Answer::result(r#"{"content":[]}"#));
//! server.once(rpc("tools/call"), Answer::status(404));          // once-rules go first, in their order
//! let gate = Gate::new();
//! server.on(rpc("slow"), Answer::events([primed("1"), hold_until(&gate), result("{}")]));
//! let (feed, answer) = Answer::fed();                           // events sent when the test sends them
//! server.on(http(Method::GET), answer);
//! feed.send(message(r#"{"jsonrpc":"2.0","method":"x"}"#)).await;
//! let seen = server.await_request(rpc("tools/call")).await;     // seen.header("authorization"), seen.text(), ...
//! ```
//! [`HttpServer::modern`] is one of 2026-07-28. Sessions are kept strictly unless [`HttpServer::sessionless`] is asked for: 400 without an id, 404 with one that is
//! not known; [`HttpServer::forget_sessions`] makes all of them unknown.
#![allow(dead_code, unused_imports, reason = "each test area uses a part of it")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail where it stands"
)]

#[path = "http_server/answer.rs"]
mod answer;
#[path = "http_server/modern.rs"]
mod modern;
#[path = "http_server/seen.rs"]
mod seen;
#[path = "http_server/wire.rs"]
mod wire;

use std::collections::HashSet;
use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

pub(crate) use answer::{
    Answer, Feed, Gate, Step, break_off, event, hold, hold_until, members, message, pause, primed, raw,
    reset, result, retry,
};
use answer::{Body, respond};
pub(crate) use modern::discovered;
use seen::Log;
pub(crate) use seen::{Seen, http, rpc};
use wire::Wire;

/// A scripted server; it ends when dropped.
pub(crate) struct HttpServer {
    state: Arc<State>,
    address: std::net::SocketAddr,
    _end: DropGuard,
}

/// What the connections of one server share.
struct State {
    script: Mutex<Script>,
    log: Log,
    sessions: Mutex<HashSet<String>>,
    keeping: Mutex<Keeping>,
    tasks: TaskTracker,
    end: CancellationToken,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Keeping {
    Strictly,
    None,
    /// The modern era: no session, and every request checked for what that era demands.
    Modern,
}

type Matcher = Box<dyn Fn(&Seen) -> bool + Send>;
type Reaction = Box<dyn Fn(&Seen) -> Answer + Send>;

#[derive(Default)]
struct Script {
    once: Vec<(Matcher, Reaction)>,
    always: Vec<(Matcher, Reaction)>,
}

// === impl HttpServer ===

impl HttpServer {
    /// A well-behaved server with sessions.
    pub(crate) async fn start() -> Self {
        Self::begin(Keeping::Strictly).await
    }

    /// One that gives no session ids and asks for none.
    pub(crate) async fn sessionless() -> Self {
        Self::begin(Keeping::None).await
    }

    /// One of 2026-07-28, which knows no `initialize`.
    pub(crate) async fn modern() -> Self {
        Self::begin(Keeping::Modern).await
    }

    async fn begin(keeping: Keeping) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let end = CancellationToken::new();
        let state = Arc::new(State {
            script: Mutex::default(),
            log: Log::default(),
            sessions: Mutex::default(),
            keeping: Mutex::new(keeping),
            tasks: TaskTracker::new(),
            end: end.clone(),
        });
        state.tasks.spawn(end.clone().run_until_cancelled_owned(accept(listener, Arc::clone(&state))));
        Self { state, address, _end: end.drop_guard() }
    }

    /// Its endpoint.
    pub(crate) fn url(&self) -> url::Url {
        format!("http://{}/mcp", self.address).parse().unwrap()
    }

    /// Answers all requests that match; a later rule goes before an earlier one.
    pub(crate) fn on(&self, matches: impl Fn(&Seen) -> bool + Send + 'static, answer: Answer) {
        self.on_each(matches, move |_| answer.clone());
    }

    /// The same with an answer made for each request.
    pub(crate) fn on_each(
        &self,
        matches: impl Fn(&Seen) -> bool + Send + 'static,
        answer: impl Fn(&Seen) -> Answer + Send + 'static,
    ) {
        self.state.script.lock().unwrap().always.insert(0, (Box::new(matches), Box::new(answer)));
    }

    /// Answers one request that matches, before any other rule; those added earlier are used up earlier.
    pub(crate) fn once(&self, matches: impl Fn(&Seen) -> bool + Send + 'static, answer: Answer) {
        let rule: (Matcher, Reaction) = (Box::new(matches), Box::new(move |_| answer.clone()));
        self.state.script.lock().unwrap().once.push(rule);
    }

    /// Everything it was sent so far.
    pub(crate) fn requests(&self) -> Vec<Seen> {
        self.state.log.all()
    }

    /// How many requests so far match.
    pub(crate) fn count(&self, matches: impl Fn(&Seen) -> bool) -> usize {
        self.requests().iter().filter(|seen| matches(seen)).count()
    }

    /// Waits for a request that matches, past ones included.
    pub(crate) async fn await_request(&self, matches: impl Fn(&Seen) -> bool) -> Seen {
        self.await_requests(1, matches).await.remove(0)
    }

    /// Waits until `count` requests match, past ones included.
    pub(crate) async fn await_requests(&self, count: usize, matches: impl Fn(&Seen) -> bool) -> Vec<Seen> {
        self.state.log.wait(count, "requests", matches).await
    }

    /// Waits until the client closed the stream that answers a request that matches.
    pub(crate) async fn await_hang_up(&self, matches: impl Fn(&Seen) -> bool) -> Seen {
        self.state
            .log
            .wait(1, "streams closed by the client", |seen| seen.hung_up && matches(seen))
            .await
            .remove(0)
    }

    /// The ids of the sessions it knows.
    pub(crate) fn sessions(&self) -> Vec<String> {
        self.state.sessions.lock().unwrap().iter().cloned().collect()
    }

    /// Is one of 2026-07-28 from now on, as if another had been started at its address.
    pub(crate) fn turn_modern(&self) {
        self.turn(Keeping::Modern);
    }

    /// Is one with sessions from now on, and knows none yet.
    pub(crate) fn turn_legacy(&self) {
        self.turn(Keeping::Strictly);
    }

    fn turn(&self, keeping: Keeping) {
        self.forget_sessions();
        *self.state.keeping.lock().unwrap() = keeping;
    }

    /// Forgets all sessions, as a restart would.
    pub(crate) fn forget_sessions(&self) {
        self.state.sessions.lock().unwrap().clear();
    }
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    for connection in 0.. {
        let Ok((socket, _)) = listener.accept().await else { continue };
        let (io, wire) = wire::wrap(socket);
        let (served, end) = (Arc::clone(&state), state.end.clone());
        state.tasks.spawn(end.run_until_cancelled_owned(async move {
            let service =
                service_fn(move |request| serve(Arc::clone(&served), Arc::clone(&wire), connection, request));
            let _ =
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(io), service).await;
        }));
    }
}

async fn serve(
    state: Arc<State>,
    wire: Arc<Wire>,
    connection: usize,
    request: Request<Incoming>,
) -> io::Result<Response<Body>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let mut seen = Seen::new(head, body, connection);
    seen.number = state.log.add(&seen);
    let answer = state.answer(&seen);
    respond(answer, seen, state, wire).await
}

// === impl State ===

impl State {
    fn answer(&self, seen: &Seen) -> Answer {
        let mut script = self.script.lock().unwrap();
        if let Some(at) = script.once.iter().position(|(matches, _)| matches(seen)) {
            let (_, reaction) = script.once.remove(at);
            return reaction(seen);
        }
        if let Some((_, reaction)) = script.always.iter().find(|(matches, _)| matches(seen)) {
            let answer = reaction(seen);
            // What the test says of initialize still begins a session.
            return if seen.is("initialize") { self.with_session(answer) } else { answer };
        }
        drop(script);
        self.well_behaved(seen)
    }

    fn keeping(&self) -> Keeping {
        *self.keeping.lock().unwrap()
    }

    fn with_session(&self, answer: Answer) -> Answer {
        if self.keeping() != Keeping::Strictly {
            return answer;
        }
        let id = format!("up-{}", uuid::Uuid::new_v4());
        self.sessions.lock().unwrap().insert(id.clone());
        answer.header("mcp-session-id", &id)
    }

    fn well_behaved(&self, seen: &Seen) -> Answer {
        if self.keeping() == Keeping::Modern {
            return modern::answer(seen);
        }
        if seen.is("initialize") {
            let version = seen.param("protocolVersion").unwrap_or_else(|| "\"2025-11-25\"".to_owned());
            let result = format!(
                r#"{{"protocolVersion":{version},"capabilities":{{"tools":{{"listChanged":true}}}},"serverInfo":{{"name":"scripted","version":"1"}}}}"#
            );
            return self.with_session(Answer::result(&result));
        }
        if self.keeping() == Keeping::Strictly {
            match seen.header("mcp-session-id") {
                None => return Answer::status(400),
                Some(id) if !self.sessions.lock().unwrap().contains(id) => return Answer::status(404),
                Some(id) if seen.method == Method::DELETE => {
                    self.sessions.lock().unwrap().remove(id);
                }
                Some(_) => {}
            }
        }
        match (&seen.method, seen.rpc.as_deref(), &seen.id) {
            (&Method::DELETE, ..) => Answer::status(204),
            (&Method::GET, ..) => Answer::status(405),
            (_, Some(_) | None, None) => Answer::status(202),
            (_, None, Some(_)) => Answer::status(202),
            (_, Some("ping"), _) => Answer::result("{}"),
            (_, Some("tools/list"), _) => {
                Answer::result(r#"{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}"#)
            }
            (_, Some("tools/call"), _) => Answer::result(r#"{"content":[{"type":"text","text":"ok"}]}"#),
            (_, Some(_), Some(_)) => Answer::error(-32601, "no such method"),
        }
    }
}
