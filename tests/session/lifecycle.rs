//! From initialize to 404.

use http::StatusCode;
use serde_json::json;

use crate::client::{init, request};
use crate::gateway::TestGateway;
use crate::http_server::HttpServer;

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
