//! Servers that want to be polled, and callers that are asked to poll (T22).

use std::time::Duration;

use serde_json::json;

use crate::client::{request, tool};
use crate::gateway::TestGateway;
use crate::http_server::{Answer, Gate, HttpServer, Seen, hold_until, message, primed, retry, rpc};

fn resumes(seen: &Seen) -> bool {
    seen.header("last-event-id").is_some()
}

/// The server closed its stream to be polled: so is the caller's, with `retry:`; the result comes to who came back.
#[tokio::test]
async fn a_server_that_asks_to_be_polled_has_its_caller_poll() {
    let (server, gate) = (HttpServer::start().await, Gate::new());
    server.on(rpc("tools/call"), Answer::events([primed("s1"), retry(10)]));
    let held = gate.clone();
    let id = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let known = id.clone();
    server.on_each(resumes, move |_| {
        let response =
            format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"done":true}}}}"#, known.lock().unwrap());
        Answer::events([hold_until(&held), message(&response)])
    });
    let gateway =
        TestGateway::new().http("u1", server.url()).with(|s| s.streams.grace = Duration::ZERO).start().await;
    let client = gateway.client("/mcp").initialize("2025-11-25").await;
    let mut stream = client.post(&request(1, "tools/call", tool("mcp_u1_echo", json!({})))).await.stream();
    *id.lock().unwrap() = server.await_request(rpc("tools/call")).await.id.expect("an id");
    let first = stream.event().await.expect("a priming event");
    let last = stream.event().await.expect("a last event");
    assert_eq!((last.retry, last.data.len()), (Some(Duration::from_millis(50)), 0));
    assert!(stream.event().await.is_none(), "the connection ends");
    server.await_request(resumes).await;
    let mut again = client.resume(&first.id.expect("an id")).await.stream();
    gate.open();
    let response = again.message().await.expect("the response");
    assert_eq!((&response["id"], &response["result"]), (&json!(1), &json!({"done": true})));
}

/// A caller of an earlier revision knows no polling: its stream stays open to the response.
#[tokio::test]
async fn a_caller_that_cannot_poll_is_not_asked_to() {
    let server = HttpServer::start().await;
    server.on(rpc("tools/call"), Answer::events([primed("s1"), retry(10)]));
    let id = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let known = id.clone();
    server.on_each(rpc("tools/call"), move |seen| {
        *known.lock().unwrap() = seen.id.clone().expect("an id");
        Answer::events([primed("s1"), retry(10)])
    });
    server.on_each(resumes, move |_| {
        Answer::events([message(&format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#,
            id.lock().unwrap()
        ))])
    });
    let gateway =
        TestGateway::new().http("u1", server.url()).with(|s| s.streams.grace = Duration::ZERO).start().await;
    let client = gateway.client("/mcp").initialize("2025-06-18").await;
    let mut stream = client.post(&request(1, "tools/call", tool("mcp_u1_echo", json!({})))).await.stream();
    let only = stream.event().await.expect("the response");
    assert!(only.retry.is_none() && !only.data.is_empty());
    assert!(stream.event().await.is_none());
}
