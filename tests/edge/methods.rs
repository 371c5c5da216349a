//! What each HTTP method gets, also from those who only look.

use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use serde_json::json;

use crate::client::request;
use crate::gateway::TestGateway;
use crate::raw::{Raw, RawAnswer};

/// The best of three, since the machine may be busy.
async fn quickest(gateway: &TestGateway, method: &str, headers: &str) -> (RawAnswer, Duration) {
    let mut best = None;
    for _ in 0..3 {
        let began = Instant::now();
        let mut raw = Raw::connect(gateway.address).await;
        raw.send(format!("{method} /mcp HTTP/1.1\r\nHost: gw\r\nConnection: close\r\n{headers}\r\n")).await;
        let mut answer = raw.head().await;
        answer.body = raw.end().await;
        let took = began.elapsed();
        if best.as_ref().is_none_or(|(_, t)| took < *t) {
            best = Some((answer, took));
        }
    }
    best.expect("three tries")
}

/// case-E09: a look without a session is answered at once, says what is allowed, and never waits.
#[tokio::test]
async fn a_naive_request_is_refused_at_once_with_what_is_allowed() {
    let gateway = TestGateway::new().start().await;
    for (method, headers, status) in [
        ("GET", "", 400),
        ("GET", "Accept: */*\r\n", 400),
        ("GET", "Accept: text/event-stream\r\n", 400),
        ("GET", "Accept: text/html,application/xhtml+xml\r\n", 406),
        ("GET", "Accept: application/json\r\n", 406),
        ("DELETE", "", 400),
        ("HEAD", "", 405),
        ("HEAD", "Accept: text/event-stream\r\n", 405),
        ("PUT", "", 405),
        ("PATCH", "", 405),
        ("OPTIONS", "", 405),
        ("TRACE", "", 405),
        ("PROPFIND", "", 405),
    ] {
        let (answer, took) = quickest(&gateway, method, headers).await;
        assert_eq!(answer.status, status, "{method} {headers}");
        assert_eq!(answer.header("allow"), Some("GET, POST, DELETE"), "{method} {headers}");
        assert!(answer.header("x-request-id").is_some(), "{method} {headers}");
        assert!(answer.body.len() < 1024, "{method} {headers}: {}", answer.body.len());
        assert_eq!(answer.body.is_empty(), method == "HEAD", "{method} {headers}");
        assert!(took <= Duration::from_millis(200), "{method} {headers}: {took:?}");
    }
}

/// case-E09: HEAD on a session's endpoint opens no stream, whatever it accepts.
#[tokio::test]
async fn head_never_opens_a_stream() {
    let gateway = TestGateway::new().start().await;
    let client = gateway.client("/mcp").initialize("2025-11-25").await;
    for accept in ["text/event-stream", "*/*", "application/json, text/event-stream"] {
        let answer = client.clone().header("accept", accept).send(Method::HEAD, "").await;
        assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED);
    }
    for kind in ["get", "post"] {
        assert_eq!(gateway.sample(&format!(r#"mcpgate_sse_streams_active{{kind="{kind}"}}"#)), 0.0);
    }
}

/// Methods that no endpoint takes are 405 with a session too; it goes on.
#[tokio::test]
async fn a_session_does_not_make_other_methods_legal() {
    let gateway = TestGateway::new().start().await;
    let client = gateway.client("/mcp").initialize("2025-11-25").await;
    for method in [Method::PUT, Method::PATCH, Method::OPTIONS, Method::TRACE] {
        assert_eq!(client.send(method, "{}").await.status, StatusCode::METHOD_NOT_ALLOWED);
    }
    assert_eq!(client.post(&request(1, "ping", json!({}))).await.status, StatusCode::OK);
}
