//! Callers that call steadily through a load balancer, whatever happens behind it, and the account of every call.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use mcpgate::protocol::sse::{ByteLimit, Decoder};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::client::{init, request, tool};
use crate::http_server::{Answer, HttpServer, pause, result, rpc};

/// The load, and what came of it.
pub(crate) struct Load {
    address: SocketAddr,
    every: Duration,
    stop: CancellationToken,
    tasks: TaskTracker,
    /// The number of the next call.
    next: AtomicU64,
    account: Mutex<BTreeMap<u64, Outcome>>,
    /// What went wrong with standalone streams.
    streams: Mutex<Vec<String>>,
    /// How often something was come back to.
    returns: AtomicU64,
    /// How long the slowest refusal took.
    refused_in: Mutex<Duration>,
}

/// What its caller knows of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Its result.
    Result,
    /// That nobody knows whether it ran.
    Unknown,
    /// That it was refused and did not run.
    Refused(String),
    /// Nothing: the connection broke, or the load balancer gave up.
    Broken(String),
    /// What must never be.
    Wrong(String),
}

/// One session of a caller.
#[derive(Clone)]
struct Steady {
    load: Arc<Load>,
    session: String,
}

/// How long a caller waits for anything at all; more is silence.
const SILENCE: Duration = Duration::from_secs(20);
/// How long a caller waits before it comes back.
const BACK: Duration = Duration::from_millis(200);
/// Every so many calls one is slow.
const SLOW: u64 = 7;

/// A server that answers calls with their number, some of them late.
pub(crate) async fn counting_server() -> HttpServer {
    let server = HttpServer::start().await;
    server.on_each(rpc("tools/call"), |seen| {
        let n: u64 = seen.json()["params"]["arguments"]["n"].as_u64().unwrap();
        let found = format!(r#"{{"content":[],"n":{n}}}"#);
        match n % SLOW {
            0 => Answer::events([pause(Duration::from_millis(300 + n % 11 * 100)), result(&found)]),
            _ => Answer::result(&found),
        }
    });
    server
}

// === impl Load ===

impl Load {
    /// Begins: so many sessions, each with a standalone stream and a call `every` so often.
    pub(crate) async fn begin(address: SocketAddr, sessions: usize, every: Duration) -> Arc<Self> {
        let load = Arc::new(Self {
            address,
            every,
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
            next: AtomicU64::new(1),
            account: Mutex::default(),
            streams: Mutex::default(),
            returns: AtomicU64::new(0),
            refused_in: Mutex::default(),
        });
        for _ in 0..sessions {
            let steady = Steady::open(&load).await.expect("a session");
            load.tasks.spawn(steady.clone().listen());
            load.tasks.spawn(steady.call_steadily());
        }
        load
    }

    /// Stops calling, and waits for what runs.
    pub(crate) async fn end(&self) {
        self.stop.cancel();
        self.tasks.close();
        let ended = tokio::time::timeout(SILENCE * 3, self.tasks.wait()).await;
        assert!(ended.is_ok(), "some callers wait for ever");
    }

    /// How long the slowest refusal took.
    pub(crate) fn refused_in(&self) -> Duration {
        *self.refused_in.lock().unwrap()
    }

    /// How many were refused.
    pub(crate) fn refused(&self) -> usize {
        self.account.lock().unwrap().values().filter(|o| matches!(o, Outcome::Refused(_))).count()
    }

    /// How many calls have an end.
    pub(crate) fn calls(&self) -> usize {
        self.account.lock().unwrap().len()
    }

    /// What came of the last `most` calls.
    pub(crate) fn last(&self, most: usize) -> Vec<Outcome> {
        self.account.lock().unwrap().values().rev().take(most).cloned().collect()
    }

    /// Compares the callers' account with the server's; a line for each thing that may not be. `fair` says which
    /// outcomes may be.
    pub(crate) fn audit(&self, server: &HttpServer, fair: impl Fn(&Outcome) -> bool) -> String {
        let mut sent: HashMap<u64, usize> = HashMap::new();
        for seen in server.requests().iter().filter(|seen| seen.is("tools/call")) {
            *sent.entry(seen.json()["params"]["arguments"]["n"].as_u64().unwrap()).or_default() += 1;
        }
        let account = self.account.lock().unwrap();
        let (mut wrong, mut kinds) = (String::new(), BTreeMap::<&str, usize>::new());
        for (n, outcome) in account.iter() {
            let times = sent.get(n).copied().unwrap_or(0);
            *kinds.entry(outcome.kind()).or_default() += 1;
            let ran = match outcome {
                Outcome::Result => times == 1,
                Outcome::Refused(_) => times == 0,
                Outcome::Unknown | Outcome::Broken(_) | Outcome::Wrong(_) => times <= 1,
            };
            if !ran {
                writeln!(wrong, "call {n}: {outcome:?}, and the server was sent it {times} times").unwrap();
            }
            if !fair(outcome) {
                writeln!(wrong, "call {n}: {outcome:?} (sent {times} times)").unwrap();
            }
        }
        for stream in self.streams.lock().unwrap().iter() {
            writeln!(wrong, "a standalone stream: {stream}").unwrap();
        }
        println!("{} calls: {kinds:?}, {} returns", account.len(), self.returns.load(Relaxed));
        wrong
    }
}

// === impl Outcome ===

impl Outcome {
    const fn kind(&self) -> &'static str {
        match self {
            Self::Result => "result",
            Self::Unknown => "unknown",
            Self::Refused(_) => "refused",
            Self::Broken(_) => "broken",
            Self::Wrong(_) => "wrong",
        }
    }
}

// === impl Steady ===

impl Steady {
    async fn open(load: &Arc<Load>) -> Result<Self, String> {
        let mut steady = Self { load: load.clone(), session: String::new() };
        let (status, session, body) = steady.send(Method::POST, None, &init("2025-11-25", json!({}))).await?;
        let body = body.collect().await.map_err(|error| error.to_string())?.to_bytes();
        steady.session = session.ok_or(format!("{status}: {body:?}"))?;
        let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let (status, ..) = steady.send(Method::POST, None, &note).await?;
        if status == StatusCode::ACCEPTED { Ok(steady) } else { Err(status.to_string()) }
    }

    async fn call_steadily(self) {
        let mut tick = tokio::time::interval(self.load.every);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        while self.load.stop.run_until_cancelled(tick.tick()).await.is_some() {
            let n = self.load.next.fetch_add(1, Relaxed);
            let began = Instant::now();
            let outcome = self.call(n).await;
            if matches!(outcome, Outcome::Refused(_)) {
                let mut slowest = self.load.refused_in.lock().unwrap();
                *slowest = began.elapsed().max(*slowest);
            }
            self.load.account.lock().unwrap().insert(n, outcome);
        }
    }

    async fn call(&self, n: u64) -> Outcome {
        let call = request(n, "tools/call", tool("mcp_u1_echo", json!({"n": n})));
        let (status, body) = match self.send(Method::POST, None, &call).await {
            Ok((status, _, body)) => (status, body),
            Err(error) => return Outcome::Broken(error),
        };
        let mut read = Read::default();
        let Ok(end) = tokio::time::timeout(SILENCE, read.all(body, n)).await else {
            return silence("a call");
        };
        match (status, read.response.take()) {
            (StatusCode::OK, Some(response)) => return judge(n, &response),
            (StatusCode::OK, None) if read.last.is_some() => {}
            (StatusCode::OK, None) => return Outcome::Broken(format!("{end}: {}", read.text())),
            (StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS, _)
                if read.text().contains("mcpgate") =>
            {
                return Outcome::Refused(read.text());
            }
            (StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT, _) => {
                return Outcome::Broken(format!("{status} {}", read.text()));
            }
            (status, _) => return Outcome::Wrong(format!("{status} {}", read.text())),
        }
        self.come_back(n, read).await
    }

    /// Resumes the stream of a call until its response is there. Who is told to come back later is not met by silence.
    async fn come_back(&self, n: u64, mut read: Read) -> Outcome {
        let mut told = Instant::now();
        loop {
            self.load.returns.fetch_add(1, Relaxed);
            tokio::time::sleep(BACK).await;
            if told.elapsed() > SILENCE {
                return silence("a resume");
            }
            let resumed = self.send(Method::GET, read.last.as_deref(), &Value::Null).await;
            let Ok((status, _, body)) = resumed else { continue };
            read.whole.clear();
            if tokio::time::timeout(SILENCE, read.all(body, n)).await.is_err() {
                return silence("a resumed stream");
            }
            match (status, read.response.take()) {
                (StatusCode::OK, Some(response)) => return judge(n, &response),
                (StatusCode::OK, None) => {}
                (
                    StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT,
                    _,
                ) => told = Instant::now(),
                (status, _) => {
                    let last = &read.last;
                    return Outcome::Wrong(format!("resumed after {last:?}: {status} {}", read.text()));
                }
            }
        }
    }

    /// Keeps the standalone stream open.
    async fn listen(self) {
        let mut read = Read::default();
        while !self.load.stop.is_cancelled() {
            let opened = self.send(Method::GET, read.last.as_deref(), &Value::Null);
            match self.load.stop.run_until_cancelled(opened).await {
                None => return,
                Some(Ok((StatusCode::OK, _, body))) => {
                    let _ = self.load.stop.run_until_cancelled(read.all(body, 0)).await;
                }
                Some(Ok((status, _, body))) if !is_for_now(status) => {
                    read.whole.clear();
                    read.all(body, 0).await;
                    self.load.streams.lock().unwrap().push(format!("{status} {}", read.text()));
                    return;
                }
                Some(_) => {}
            }
            self.load.returns.fetch_add(1, Relaxed);
            tokio::time::sleep(BACK).await;
        }
    }

    async fn send(
        &self,
        method: Method,
        last: Option<&str>,
        body: &Value,
    ) -> Result<(StatusCode, Option<String>, Incoming), String> {
        let exchange = async {
            let socket = TcpStream::connect(self.load.address).await.map_err(|error| error.to_string())?;
            let _ = socket.set_nodelay(true);
            let made = hyper::client::conn::http1::handshake(TokioIo::new(socket)).await;
            let (mut sender, connection) = made.map_err(|error| error.to_string())?;
            TaskTracker::new().spawn(connection);
            let mut request = Request::builder().method(method).uri("/mcp").header("host", "gateway.test");
            request = request.header("accept", "application/json, text/event-stream");
            if !self.session.is_empty() {
                request = request.header("mcp-session-id", &self.session);
            }
            if let Some(last) = last {
                request = request.header("last-event-id", last);
            }
            let text = if body.is_null() { String::new() } else { body.to_string() };
            request = request.header("content-type", "application/json");
            let request = request.body(Full::new(Bytes::from(text))).map_err(|error| error.to_string())?;
            let (head, body) =
                sender.send_request(request).await.map_err(|error| error.to_string())?.into_parts();
            let session =
                head.headers.get("mcp-session-id").and_then(|id| Some(id.to_str().ok()?.to_owned()));
            Ok((head.status, session, body))
        };
        tokio::time::timeout(SILENCE, exchange).await.unwrap_or_else(|_| Err("silence".to_owned()))
    }
}

/// Whether a caller may come back after this.
fn is_for_now(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
            | StatusCode::NO_CONTENT
    )
}

fn silence(what: &str) -> Outcome {
    Outcome::Wrong(format!("silence of {what} for {SILENCE:?}"))
}

fn judge(n: u64, response: &Value) -> Outcome {
    let reason = response["error"]["data"]["mcpgate"]["reason"].as_str();
    match reason {
        _ if response["result"]["n"] == n => Outcome::Result,
        Some("outcome_unknown" | "session_ended" | "link_closed") => Outcome::Unknown,
        _ => Outcome::Wrong(response.to_string()),
    }
}

/// What was read of an answer.
#[derive(Default)]
struct Read {
    whole: Vec<u8>,
    last: Option<String>,
    response: Option<Value>,
}

// === impl Read ===

impl Read {
    /// Reads to the end, however it comes, or to the response with this id.
    async fn all(&mut self, mut body: Incoming, n: u64) -> &'static str {
        let mut decoder = Decoder::new(ByteLimit(1 << 20));
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { return "broken" };
            let Ok(mut data) = frame.into_data() else { continue };
            self.whole.extend_from_slice(&data);
            while let Ok(Some(event)) = decoder.decode(&mut data) {
                if let Some(id) = &event.id {
                    self.last = Some(id.to_string());
                }
                self.take(&event.data, n);
            }
        }
        let whole = std::mem::take(&mut self.whole);
        self.take(&whole, n);
        self.whole = whole;
        "ended"
    }

    fn take(&mut self, text: &[u8], n: u64) {
        if let Ok(message) = serde_json::from_slice::<Value>(text)
            && message["id"] == n
            && message["method"].is_null()
        {
            self.response = Some(message);
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.whole).into_owned()
    }
}
