//! Which form of answer the caller's `Accept` and `Content-Type` lead to.

use std::time::Duration;

use http::StatusCode;
use serde_json::json;

use crate::client::{request, tool};
use crate::gateway::TestGateway;
use crate::http_server::{Answer, Gate, HttpServer, rpc};

/// case-E01: whatever can be understood is served, in a form that was asked for.
#[tokio::test]
async fn every_way_to_write_accept_is_served_with_what_it_allows() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = gateway.client("/mcp").initialize("2025-06-18").await;
    let list = request(1, "tools/list", json!({}));
    let (json, sse) = ("application/json", "text/event-stream");
    for (lines, form) in [
        (&["application/json, text/event-stream"][..], json),
        (&["text/event-stream, application/json"], json),
        (&["text/event-stream;q=0.9,application/json;q=0.1"], json),
        (&["application/json", "text/event-stream"], json),
        (&["APPLICATION/JSON,TEXT/EVENT-STREAM"], json),
        (&["  application/json ;charset=utf-8 ,\ttext/event-stream "], json),
        (&["*/*"], json),
        (&["*"], json),
        (&["application/*"], json),
        (&["application/json"], json),
        (&["text/html, application/xhtml+xml, */*;q=0.8"], json),
        (&["text/event-stream;q=0, */*"], json),
        (&["text/event-stream"], sse),
        (&["text/*"], sse),
        (&["Text/Event-Stream; q=1.0"], sse),
        (&["application/json;q=0, */*"], sse),
        (&[], json),
    ] {
        let bare = client.clone().without("accept");
        let client = lines.iter().fold(bare, |client, line| client.also("accept", line));
        let answer = client.post(&list).await;
        assert_eq!(answer.status, StatusCode::OK, "{lines:?}");
        assert_eq!(answer.header("content-type"), Some(form), "{lines:?}");
        assert_eq!(answer.response().await["result"]["tools"][0]["name"], "mcp_u1_echo", "{lines:?}");
    }
}

/// case-E01: 406 only if neither form is possible, with the request's id.
#[tokio::test]
async fn an_accept_that_allows_neither_form_is_406() {
    let gateway = TestGateway::new().start().await;
    let client = gateway.client("/mcp").initialize("2025-06-18").await;
    for accept in
        ["text/html", "image/*", "application/json;q=0, text/event-stream;q=0", "", "application/xml"]
    {
        let answer = client.clone().header("accept", accept).post(&request("a", "ping", json!({}))).await;
        assert_eq!(answer.status, StatusCode::NOT_ACCEPTABLE, "{accept}");
        let body = answer.json().await;
        assert_eq!((&body["id"], &body["error"]["code"]), (&json!("a"), &json!(-32600)), "{accept}");
    }
}

/// case-E01: what gets no answer cannot be in the wrong form.
#[tokio::test]
async fn a_notification_or_response_is_never_406() {
    let gateway = TestGateway::new().start().await;
    let client = gateway.client("/mcp").initialize("2025-06-18").await.header("accept", "text/html");
    for message in [
        json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}}),
        json!({"jsonrpc": "2.0", "method": "notifications/nobody/knows"}),
        json!({"jsonrpc": "2.0", "id": 99, "result": {}}),
        json!({"jsonrpc": "2.0", "id": 99, "error": {"code": 1, "message": "no"}}),
    ] {
        let answer = client.post(&message).await;
        assert_eq!(answer.status, StatusCode::ACCEPTED, "{message}");
        assert_eq!(answer.text().await, "", "{message}");
    }
}

/// A caller that takes only JSON waits for its JSON however long the call takes.
#[tokio::test]
async fn only_json_is_json_even_after_the_grace() {
    let (server, gate) = (HttpServer::start().await, Gate::new());
    server.on(rpc("tools/call"), Answer::result(r#"{"content":[]}"#).after(&gate));
    let gateway = TestGateway::new()
        .http("u1", server.url())
        .with(|s| s.streams.grace = Duration::from_millis(5))
        .start()
        .await;
    let client = gateway.client("/mcp").initialize("2025-11-25").await.header("accept", "application/json");
    let call = request(1, "tools/call", tool("mcp_u1_echo", json!({})));
    let (answer, ()) = tokio::join!(client.post(&call), async {
        server.await_request(rpc("tools/call")).await;
        tokio::time::sleep(Duration::from_millis(50)).await; // ten times the grace
        gate.open();
    });
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.json().await["result"], json!({"content": []}));
}

/// A caller that takes only SSE gets `initialize` on a stream too, and its session id with it.
#[tokio::test]
async fn initialize_comes_on_a_stream_if_only_that_is_accepted() {
    let gateway = TestGateway::new().start().await;
    let client = gateway.client("/mcp").header("accept", "text/event-stream");
    let client = client.initialize("2025-11-25").await;
    assert_eq!(client.call(2, "ping", json!({})).await["result"], json!({}));
}

/// A body that is not said to be JSON is 415, before anybody tries to read it.
#[tokio::test]
async fn a_body_that_is_not_json_by_its_own_word_is_415() {
    let gateway = TestGateway::new().start().await;
    let client = gateway.client("/mcp").initialize("2025-06-18").await;
    for media in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "json", ""] {
        let answer = client.clone().header("content-type", media).send(http::Method::POST, "{}").await;
        assert_eq!(answer.status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{media}");
    }
    let answer = client.clone().without("content-type").send(http::Method::POST, "{}").await;
    assert_eq!(answer.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    for media in
        ["application/json", "APPLICATION/JSON", "application/json; charset=utf-8", " application/json;v=1"]
    {
        let client = client.clone().header("content-type", media);
        assert_eq!(client.post(&request(1, "ping", json!({}))).await.status, StatusCode::OK, "{media}");
    }
}
