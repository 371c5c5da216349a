//! A caller that keeps its connection, for tests that call thousands of times.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use crate::client::{SOON, init, request};

/// A caller with one connection.
pub(crate) struct KeptAlive {
    sender: SendRequest<Full<Bytes>>,
    path: String,
}

/// The id of a session.
pub(crate) struct Session(HeaderValue);

// === impl KeptAlive ===

impl KeptAlive {
    /// Connects; the connection ends when this is dropped.
    pub(crate) async fn connect(address: SocketAddr, path: &str) -> Self {
        let socket = TcpStream::connect(address).await.unwrap();
        socket.set_nodelay(true).unwrap();
        let (sender, connection) = handshake(TokioIo::new(socket)).await.unwrap();
        TaskTracker::new().spawn(connection);
        Self { sender, path: path.to_owned() }
    }

    /// Begins a session.
    pub(crate) async fn initialize(&mut self) -> Session {
        let (status, session, _) = self.send(Method::POST, None, Some(&init("2025-06-18", json!({})))).await;
        assert_eq!(status, StatusCode::OK);
        let session = Session(session.unwrap());
        let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let (status, ..) = self.send(Method::POST, Some(&session), Some(&note)).await;
        assert_eq!(status, StatusCode::ACCEPTED);
        session
    }

    /// Calls a tool; the answer as text, whichever form it has.
    pub(crate) async fn call(&mut self, session: &Session, params: Value) -> String {
        let call = request(1, "tools/call", params);
        let (status, _, answer) = self.send(Method::POST, Some(session), Some(&call)).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        answer
    }

    /// Ends a session.
    pub(crate) async fn delete(&mut self, session: &Session) {
        let (status, ..) = self.send(Method::DELETE, Some(session), None).await;
        assert_eq!(status, StatusCode::NO_CONTENT);
    }

    async fn send(
        &mut self,
        method: Method,
        session: Option<&Session>,
        body: Option<&Value>,
    ) -> (StatusCode, Option<HeaderValue>, String) {
        let body = body.map(Value::to_string).unwrap_or_default();
        let mut request = Request::builder().method(method).uri(&self.path).header("host", "gateway.test");
        request = request.header("content-type", "application/json");
        request = request.header("accept", "application/json, text/event-stream");
        if let Some(Session(id)) = session {
            request = request.header("mcp-session-id", id);
        }
        let exchange = async {
            self.sender.ready().await.unwrap();
            let response = self.sender.send_request(request.body(Full::from(body)).unwrap()).await.unwrap();
            let (head, body) = response.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let id = head.headers.get("mcp-session-id").cloned();
            (head.status, id, String::from_utf8(body.to_vec()).unwrap())
        };
        timeout(SOON, exchange).await.expect("an answer soon")
    }
}
