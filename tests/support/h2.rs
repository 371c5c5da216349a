//! A client that speaks HTTP/2 without TLS, by prior knowledge.
#![allow(dead_code, reason = "each test area uses a part of it")]

use std::net::SocketAddr;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio_util::task::TaskTracker;

use crate::client::SOON;

/// One connection; its clones share it.
#[derive(Clone)]
pub(crate) struct H2(SendRequest<Full<Bytes>>);

// === impl H2 ===

impl H2 {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).await.expect("a connection");
        let (sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(socket))
                .await
                .expect("a handshake");
        TaskTracker::new().spawn(connection);
        Self(sender)
    }

    /// Sends a request with these headers.
    pub(crate) async fn send(
        &self,
        method: &str,
        headers: &[(&str, &[u8])],
        body: impl Into<Bytes>,
    ) -> Response<Incoming> {
        let mut request = Request::builder().method(method).uri("http://gw/mcp");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body.into())).expect("a request");
        let answer = tokio::time::timeout(SOON, self.0.clone().send_request(request)).await;
        answer.expect("an answer soon").expect("an answer")
    }
}

/// The whole body as text.
pub(crate) async fn text(answer: Response<Incoming>) -> String {
    let body = tokio::time::timeout(SOON, answer.into_body().collect()).await.expect("a body soon");
    String::from_utf8(body.expect("a body").to_bytes().to_vec()).expect("UTF-8")
}
