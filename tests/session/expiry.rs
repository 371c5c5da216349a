//! Sessions that nobody uses end; what counts as use.

use std::time::{Duration, Instant};

use http::StatusCode;
use serde_json::json;

use crate::client::{request, tool};
use crate::gateway::{Setup, TestGateway};
use crate::http_server::{Answer, Gate, HttpServer, rpc};

const IDLE: Duration = Duration::from_millis(200);

fn short_lived() -> Setup {
    TestGateway::new().with(|s| s.sessions.idle = IDLE)
}

/// case-A07: a session without activity is 404 afterwards, and counted no more.
#[tokio::test]
async fn an_idle_session_ends() {
    let gateway = short_lived().start().await;
    let client = gateway.client("/mcp").initialize("2025-06-18").await;
    assert_eq!(gateway.sessions(), 1.0);
    gateway.until_sessions(0.0).await;
    let answer = client.post(&request(7, "ping", json!({}))).await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    assert_eq!(answer.json().await["id"], 7);
    assert_eq!(gateway.sample(r#"mcpgate_sessions_closed_total{reason="idle"}"#), 1.0);
}

/// case-A07: the time runs from the last activity, whatever it was.
#[tokio::test]
async fn every_message_is_activity() {
    let gateway = short_lived().start().await;
    let client = gateway.client("/mcp").initialize("2025-06-18").await;
    let began = Instant::now();
    let messages = [
        request(1, "ping", json!({})),
        json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}}),
        json!({"jsonrpc": "2.0", "id": 5, "result": {}}),
    ];
    for message in messages.iter().cycle() {
        if began.elapsed() > 4 * IDLE {
            break;
        }
        assert!(client.post(message).await.status.is_success(), "{message}");
        tokio::time::sleep(IDLE / 8).await; // a busy machine may make it several times as long
    }
}

/// case-A07: an open stream counts as activity, and its end begins the idle time.
#[tokio::test]
async fn an_open_stream_keeps_its_session() {
    let gateway = short_lived().start().await;
    let client = gateway.client("/mcp").initialize("2025-11-25").await;
    let get = client.open_get().await;
    tokio::time::sleep(4 * IDLE).await; // what is tried is that time passes
    assert_eq!(gateway.sessions(), 1.0);
    drop(get);
    gateway.until_sessions(0.0).await;
}

/// case-A07: so does a running call, also one whose caller waits for plain JSON.
#[tokio::test]
async fn a_running_call_keeps_its_session() {
    for accept in ["application/json", "application/json, text/event-stream"] {
        let (server, gate) = (HttpServer::start().await, Gate::new());
        server.on(rpc("tools/call"), Answer::result(r#"{"content":[]}"#).after(&gate));
        let gateway = short_lived().http("u1", server.url()).start().await;
        let client = gateway.client("/mcp").initialize("2025-06-18").await.header("accept", accept);
        let call = request(1, "tools/call", tool("mcp_u1_echo", json!({})));
        let (answer, ()) = tokio::join!(async { client.post(&call).await.response().await }, async {
            server.await_request(rpc("tools/call")).await;
            tokio::time::sleep(4 * IDLE).await; // what is tried is that time passes
            assert_eq!(gateway.sessions(), 1.0, "{accept}");
            gate.open();
        });
        assert_eq!(answer["result"]["content"], json!([]), "{accept}");
        gateway.until_sessions(0.0).await;
    }
}

/// T24: the caller left, its call goes on, and the session waits for it.
#[tokio::test]
async fn a_call_whose_caller_left_keeps_its_session() {
    let (server, gate) = (HttpServer::start().await, Gate::new());
    server.on(rpc("tools/call"), Answer::result(r#"{"content":[]}"#).after(&gate));
    let gateway =
        short_lived().http("u1", server.url()).with(|s| s.streams.grace = Duration::ZERO).start().await;
    let client = gateway.client("/mcp").initialize("2025-11-25").await;
    let mut stream = client.post(&request(1, "tools/call", tool("mcp_u1_echo", json!({})))).await.stream();
    let cursor = stream.event().await.and_then(|e| e.id).expect("a priming event");
    drop(stream);
    server.await_request(rpc("tools/call")).await;
    tokio::time::sleep(4 * IDLE).await; // what is tried is that time passes
    gate.open();
    assert_eq!(client.resume(&cursor).await.response().await["id"], 1);
}

/// case-A07: the maximum age ends a session whatever happens in it.
#[tokio::test]
async fn a_session_ends_at_its_maximum_age() {
    let gateway = TestGateway::new().with(|s| s.sessions.max_age = 2 * IDLE).start().await;
    let client = gateway.client("/mcp").initialize("2025-11-25").await;
    let mut get = client.open_get().await;
    while get.event().await.is_some() {}
    assert_eq!(client.post(&request(1, "ping", json!({}))).await.status, StatusCode::NOT_FOUND);
    assert_eq!(gateway.sessions(), 0.0);
    assert_eq!(gateway.sample(r#"mcpgate_sessions_closed_total{reason="max_age"}"#), 1.0);
}
