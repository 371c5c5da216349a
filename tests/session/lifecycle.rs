//! From initialize to 404.

use http::StatusCode;
use serde_json::json;

use crate::client::{init, request, tool};
use crate::gateway::TestGateway;
use crate::http_server::{Answer, Gate, HttpServer, hold_until, rpc};

/// case-A03: an unknown id is 404 with the request's id, a missing one 400.
#[tokio::test]
async fn an_unknown_session_is_404_and_a_missing_one_400() {
    let gateway = TestGateway::new().start().await;
    let unknown = gateway.client("/mcp").header("mcp-session-id", "00000000-0000-4000-8000-000000000000");
    let answer = unknown.post(&request(7, "tools/list", json!({}))).await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    assert_eq!(answer.json().await["id"], 7);
    let answer = gateway.client("/mcp").post(&request("a", "tools/list", json!({}))).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    assert_eq!(answer.json().await["id"], "a");
}

/// case-A05: the caller never sees a server's session id.
#[tokio::test]
async fn the_servers_session_id_stays_inside() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let answer = gateway.client("/mcp").post(&init("2025-11-25", json!({}))).await;
    let id = answer.header("mcp-session-id").expect("an id").to_owned();
    let client = gateway.client("/mcp").header("mcp-session-id", &id);
    let call = request(1, "tools/call", json!({"name": "mcp_u1_echo", "arguments": {}}));
    let answer = client.post(&call).await;
    let upstream = server.sessions();
    assert_eq!(upstream.len(), 1);
    let shown = format!("{:?}", answer.headers);
    assert!(!shown.contains(&upstream[0]) && !answer.text().await.contains(&upstream[0]));
    assert_ne!(id, upstream[0]);
}

/// After DELETE every request with the id is 404 (T31).
#[tokio::test]
async fn a_deleted_session_is_gone_for_every_method() {
    let gateway = TestGateway::new().start().await;
    let client = gateway.client("/mcp").initialize("2025-06-18").await;
    assert_eq!(client.delete().await, StatusCode::NO_CONTENT);
    assert_eq!(client.delete().await, StatusCode::NOT_FOUND);
    assert_eq!(client.send(http::Method::GET, "").await.status, StatusCode::NOT_FOUND);
    assert_eq!(client.post(&request(1, "ping", json!({}))).await.status, StatusCode::NOT_FOUND);
}

/// case-A09: ids are minted here only; what a caller proposes is not taken, and is unknown afterwards.
#[tokio::test]
async fn a_session_id_is_never_chosen_by_the_caller() {
    let gateway = TestGateway::new().start().await;
    for proposed in ["attacker-chosen", "00000000-0000-4000-8000-000000000000", "~"] {
        let fixed = gateway.client("/mcp").header("mcp-session-id", proposed);
        let answer = fixed.post(&init("2025-11-25", json!({}))).await;
        assert_eq!(answer.status, StatusCode::OK);
        let minted = answer.header("mcp-session-id").expect("an id");
        assert_ne!(minted, proposed);
        assert_eq!(fixed.post(&request(1, "ping", json!({}))).await.status, StatusCode::NOT_FOUND);
    }
    assert_eq!(gateway.sessions(), 3.0, "one session each, none of the proposed ones");
}

/// case-A09, case-A05: other requests never make a session, and minted ids are random.
#[tokio::test]
async fn only_initialize_makes_a_session_and_every_id_is_a_new_one() {
    let gateway = TestGateway::new().start().await;
    let unknown = gateway.client("/mcp").header("mcp-session-id", "never-given");
    for method in ["ping", "tools/list", "resources/list", "server/discover", "nobody/knows"] {
        assert_eq!(
            unknown.post(&request(1, method, json!({}))).await.status,
            StatusCode::NOT_FOUND,
            "{method}"
        );
    }
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(unknown.post(&note).await.status, StatusCode::NOT_FOUND);
    assert_eq!(unknown.send(http::Method::GET, "").await.status, StatusCode::NOT_FOUND);
    assert_eq!(gateway.sessions(), 0.0);
    let mut ids = std::collections::BTreeSet::new();
    for _ in 0..50 {
        let id = gateway.client("/mcp").initialize("2025-11-25").await.session();
        let uuid = uuid::Uuid::parse_str(&id).expect("a uuid");
        assert_eq!(uuid.get_version_num(), 4, "122 random bits");
        ids.insert(id);
    }
    assert_eq!(ids.len(), 50);
}

/// case-A03: a notification or response with an unknown id is 404 too, with no id to echo.
#[tokio::test]
async fn every_kind_of_message_to_an_unknown_session_is_404() {
    let gateway = TestGateway::new().start().await;
    let unknown = gateway.client("/mcp").header("mcp-session-id", "00000000-0000-4000-8000-000000000000");
    for (message, id) in [
        (
            json!({"jsonrpc": "2.0", "id": "seven", "method": "tools/call", "params": {"name": "x"}}),
            json!("seven"),
        ),
        (
            json!({"jsonrpc": "2.0", "id": 12345678901234567890u64, "method": "ping"}),
            json!(12345678901234567890u64),
        ),
        (json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {}}), json!(null)),
        (json!({"jsonrpc": "2.0", "id": 1, "result": {}}), json!(null)),
    ] {
        let answer = unknown.post(&message).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{message}");
        let body = answer.json().await;
        assert_eq!(body["id"], id, "{message}");
        assert_eq!(body["error"]["data"]["mcpgate"]["reason"], "unknown_session", "{message}");
    }
}

/// A second `initialize` on a live session is 400, and the session goes on.
#[tokio::test]
async fn a_second_initialize_changes_nothing() {
    let gateway = TestGateway::new().start().await;
    let client = gateway.client("/mcp").initialize("2025-06-18").await;
    let answer = client.post(&init("2025-11-25", json!({}))).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    assert_eq!(client.call(1, "ping", json!({})).await["result"], json!({}));
    assert_eq!(gateway.sessions(), 1.0);
}

/// DELETE ends it everywhere: running calls say so on their streams, streams end, servers are left.
#[tokio::test]
async fn delete_ends_running_calls_streams_and_links() {
    let (server, gate) = (HttpServer::start().await, Gate::new());
    server.on(rpc("tools/call"), Answer::events([hold_until(&gate)]));
    let gateway = TestGateway::new()
        .http("u1", server.url())
        .stdio("u2", &[])
        .with(|s| s.streams.grace = std::time::Duration::ZERO)
        .start()
        .await;
    let client = gateway.client("/mcp").initialize("2025-11-25").await;
    client.call(1, "tools/call", tool("mcp_u2_echo", json!({}))).await;
    assert_eq!(gateway.sample(r#"mcpgate_upstream_processes{server="u2"}"#), 1.0);
    let mut get = client.open_get().await;
    let running = client.post(&request(2, "tools/call", tool("mcp_u1_echo", json!({})))).await.stream();
    server.await_request(rpc("tools/call")).await;
    assert_eq!(client.delete().await, StatusCode::NO_CONTENT);
    let messages = running.rest().await;
    assert_eq!((messages.len(), &messages[0]["id"]), (1, &json!(2)));
    assert_eq!(messages[0]["error"]["data"]["mcpgate"]["reason"], "session_ended");
    while get.event().await.is_some() {}
    server.await_request(crate::http_server::http(http::Method::DELETE)).await;
    gateway.until(r#"mcpgate_upstream_processes{server="u2"}"#, |n| n == 0.0).await;
    assert_eq!(gateway.sessions(), 0.0);
}

/// A session keeps what its caller said of itself, so that is bounded.
#[tokio::test]
async fn a_greeting_of_any_size_is_not_kept() {
    let gateway = TestGateway::new().start().await;
    let capabilities = json!({"experimental": {"x": "y".repeat(100_000)}});
    let answer = gateway.client("/mcp").post(&init("2025-11-25", capabilities)).await;
    assert!(answer.header("mcp-session-id").is_none());
    assert_eq!(answer.json().await["error"]["code"], -32602);
}
