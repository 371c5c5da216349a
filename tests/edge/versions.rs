//! `MCP-Protocol-Version` on requests of a session.

use http::{Method, StatusCode};
use serde_json::json;

use crate::client::request;
use crate::gateway::TestGateway;

/// Versions a session of 2025-06-18 may name.
const SERVED: [&str; 5] = ["2025-06-18", "2025-11-25", "2025-03-26", "2024-11-05", " 2025-06-18 "];
/// Versions it may not: unknown ones, and what is no version at all. Modern ones are in `tests/eras/edge.rs`.
const REFUSED: [&str; 8] =
    ["foobar", "2025/11/25", "2025-6-18", "1999-01-01", "", "2025-06-18,2025-06-18", "2.0", "\"2025-06-18\""];

/// case-E03: a version served here is accepted, also if another was negotiated; anything else is 400, never a
/// code of the modern era.
#[tokio::test]
async fn a_version_that_is_served_is_accepted_and_any_other_is_400() {
    let gateway = TestGateway::new().start().await;
    let client = gateway.client("/mcp").initialize("2025-06-18").await;
    let ping = request(7, "ping", json!({}));
    for version in SERVED {
        let answer = client.clone().header("mcp-protocol-version", version).post(&ping).await;
        assert_eq!(answer.status, StatusCode::OK, "{version:?}");
    }
    let answer = client.clone().without("mcp-protocol-version").post(&ping).await;
    assert_eq!(answer.status, StatusCode::OK, "none");
    for version in REFUSED {
        let answer = client.clone().header("mcp-protocol-version", version).post(&ping).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{version:?}");
        let body = answer.json().await;
        assert_eq!(body["error"]["code"], -32600, "{version:?}");
        assert_eq!(body["id"], 7, "{version:?}");
        assert_eq!(body["error"]["data"]["mcpgate"]["reason"], "unsupported_version", "{version:?}");
    }
    let twice = client.clone().also("mcp-protocol-version", "2025-06-18");
    assert_eq!(twice.post(&ping).await.status, StatusCode::BAD_REQUEST, "two lines");
}

/// case-E03: the same for GET and DELETE, and for notifications; the session outlives it.
#[tokio::test]
async fn an_unsupported_version_is_400_for_every_method() {
    let gateway = TestGateway::new().start().await;
    let client = gateway.client("/mcp").initialize("2025-06-18").await;
    let wrong = client.clone().header("mcp-protocol-version", "foobar");
    for method in [Method::GET, Method::DELETE] {
        let answer = wrong.send(method.clone(), "").await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{method}");
    }
    let note = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}});
    assert_eq!(wrong.post(&note).await.status, StatusCode::BAD_REQUEST);
    assert_eq!(client.post(&request(1, "ping", json!({}))).await.status, StatusCode::OK);
}

/// The revision asked for is answered if it is served, else the newest legacy one (L2).
#[tokio::test]
async fn initialize_is_answered_with_the_version_asked_for_or_the_newest() {
    let gateway = TestGateway::new().start().await;
    for (asked, answered) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1.0", "2025-11-25"),
    ] {
        let answer = gateway.client("/mcp").post(&crate::client::init(asked, json!({}))).await;
        assert_eq!(answer.json().await["result"]["protocolVersion"], answered, "{asked}");
    }
}
