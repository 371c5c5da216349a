//! A client that speaks raw HTTP, so that tests see what is on the wire.
//!
//! One connection per request: a request that must wait never holds up another one.
#![allow(dead_code, reason = "each test area uses a part of it")]
#![allow(clippy::needless_pass_by_value, reason = "a message is written where it is sent")]

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use mcpgate::protocol::sse::{ByteLimit, Decoder, Event};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_util::task::TaskTracker;

/// No test waits longer for anything.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// A client of one endpoint, perhaps with a session.
#[derive(Clone)]
pub(crate) struct Client {
    address: SocketAddr,
    path: String,
    headers: HeaderMap,
}

/// An answer whose body is not read yet.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    body: Incoming,
}

/// An answer as an event stream.
pub(crate) struct Stream {
    body: Incoming,
    decoder: Decoder,
    chunk: Bytes,
    pub(crate) last_id: Option<String>,
}

// === impl Client ===

impl Client {
    pub(crate) fn new(address: SocketAddr, path: &str) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        headers.insert("accept", HeaderValue::from_static("application/json, text/event-stream"));
        Self { address, path: path.into(), headers }
    }

    /// The same client with one header set.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        let name = HeaderName::try_from(name).expect("a name");
        self.headers.insert(name, HeaderValue::from_str(value).expect("a value"));
        self
    }

    /// The same client with one header more.
    pub(crate) fn also(mut self, name: &str, value: &str) -> Self {
        let name = HeaderName::try_from(name).expect("a name");
        self.headers.append(name, HeaderValue::from_str(value).expect("a value"));
        self
    }

    /// The same client without one header.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.remove(name);
        self
    }

    /// The same client, which reaches another gateway.
    pub(crate) fn via(mut self, address: SocketAddr) -> Self {
        self.address = address;
        self
    }

    /// The same client at another path.
    pub(crate) fn at(mut self, path: &str) -> Self {
        self.path = path.into();
        self
    }

    /// A session of this revision, initialized, without client capabilities.
    pub(crate) async fn initialize(self, revision: &str) -> Self {
        self.initialize_with(revision, json!({})).await
    }

    /// The same with client capabilities.
    pub(crate) async fn initialize_with(self, revision: &str, capabilities: Value) -> Self {
        let answer = self.post(&init(revision, capabilities)).await;
        assert_eq!(answer.status, StatusCode::OK, "initialize is answered");
        let session = answer.headers["mcp-session-id"].to_str().expect("ASCII").to_owned();
        let client = self.header("mcp-session-id", &session).header("mcp-protocol-version", revision);
        let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(client.post(&note).await.status, StatusCode::ACCEPTED);
        client
    }

    /// The session id.
    pub(crate) fn session(&self) -> String {
        self.headers["mcp-session-id"].to_str().expect("ASCII").to_owned()
    }

    /// Posts one JSON text.
    pub(crate) async fn post(&self, body: &Value) -> Answer {
        self.send(Method::POST, body.to_string()).await
    }

    /// Posts a request and gives its whole response, whether it came as JSON or as a stream.
    pub(crate) async fn call(&self, id: impl Into<Value>, method: &str, params: Value) -> Value {
        self.post(&request(id, method, params)).await.response().await
    }

    /// Opens the standalone stream.
    pub(crate) async fn open_get(&self) -> Stream {
        let answer = self.send(Method::GET, String::new()).await;
        assert_eq!(answer.status, StatusCode::OK, "the GET is answered");
        answer.stream()
    }

    /// Resumes the stream of an event.
    pub(crate) async fn resume(&self, last: &str) -> Answer {
        self.clone().header("last-event-id", last).send(Method::GET, String::new()).await
    }

    /// Ends the session.
    pub(crate) async fn delete(&self) -> StatusCode {
        self.send(Method::DELETE, String::new()).await.status
    }

    /// Sends any request.
    pub(crate) async fn send(&self, method: Method, body: impl Into<Bytes>) -> Answer {
        tokio::time::timeout(SOON, self.exchange(method, body.into())).await.expect("an answer soon")
    }

    async fn exchange(&self, method: Method, body: Bytes) -> Answer {
        let socket = TcpStream::connect(self.address).await.expect("a connection");
        socket.set_nodelay(true).expect("no delay");
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(socket)).await.expect("a handshake");
        TaskTracker::new().spawn(connection);
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = self.path.parse().expect("a path");
        *request.headers_mut() = self.headers.clone();
        request.headers_mut().entry("host").or_insert(HeaderValue::from_static("gateway.test"));
        let response = sender.send_request(request).await.expect("an answer");
        let (head, body) = response.into_parts();
        Answer { status: head.status, headers: head.headers, body }
    }
}

// === impl Answer ===

impl Answer {
    /// A header, as text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|v| v.to_str().expect("ASCII"))
    }

    /// Whether it is an event stream.
    pub(crate) fn is_stream(&self) -> bool {
        self.header("content-type") == Some("text/event-stream")
    }

    /// The whole body.
    pub(crate) async fn bytes(self) -> Bytes {
        let read = tokio::time::timeout(SOON, self.body.collect()).await.expect("a body soon");
        read.expect("a whole body").to_bytes()
    }

    /// The whole body as text.
    pub(crate) async fn text(self) -> String {
        String::from_utf8(self.bytes().await.to_vec()).expect("UTF-8")
    }

    /// The whole body as JSON.
    pub(crate) async fn json(self) -> Value {
        let text = self.text().await;
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
    }

    /// The response in it, also if it is a stream: the last message.
    pub(crate) async fn response(self) -> Value {
        if !self.is_stream() {
            return self.json().await;
        }
        let messages = self.stream().rest().await;
        messages.into_iter().next_back().expect("a response on the stream")
    }

    /// The answer as a stream.
    pub(crate) fn stream(self) -> Stream {
        assert!(self.is_stream(), "an event stream, not {:?}", self.headers.get("content-type"));
        Stream {
            body: self.body,
            decoder: Decoder::new(ByteLimit(64 << 20)),
            chunk: Bytes::new(),
            last_id: None,
        }
    }
}

// === impl Stream ===

impl Stream {
    /// The next event, priming and retry ones included; `None` at the end.
    pub(crate) async fn event(&mut self) -> Option<Event> {
        tokio::time::timeout(SOON, self.next()).await.expect("an event soon")
    }

    /// The next message; `None` at the end.
    pub(crate) async fn message(&mut self) -> Option<Value> {
        loop {
            let event = self.event().await?;
            if !event.data.is_empty() {
                return Some(serde_json::from_slice(&event.data).expect("JSON"));
            }
        }
    }

    /// All messages up to the end.
    pub(crate) async fn rest(mut self) -> Vec<Value> {
        let mut messages = Vec::new();
        while let Some(message) = self.message().await {
            messages.push(message);
        }
        messages
    }

    /// Whether nothing comes for so long.
    pub(crate) async fn is_silent_for(&mut self, time: Duration) -> bool {
        tokio::time::timeout(time, self.next()).await.is_err()
    }

    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.decoder.decode(&mut self.chunk).expect("an event within limits") {
                if let Some(id) = &event.id {
                    self.last_id = Some(id.to_string());
                }
                return Some(event);
            }
            let frame = self.body.frame().await?;
            let Ok(frame) = frame else { return None };
            if let Ok(data) = frame.into_data() {
                self.chunk = data;
            }
        }
    }
}

/// A request message.
pub(crate) fn request(id: impl Into<Value>, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

/// An `initialize` request.
pub(crate) fn init(revision: &str, capabilities: Value) -> Value {
    request(
        0,
        "initialize",
        json!({"protocolVersion": revision, "capabilities": capabilities, "clientInfo": {"name": "test", "version": "1"}}),
    )
}

/// The params of a call.
pub(crate) fn tool(name: &str, arguments: Value) -> Value {
    json!({"name": name, "arguments": arguments})
}
