//! Where endpoints are, and what is said where none is.

use http::{Method, StatusCode};
use mcpgate::settings::EndpointSettings;
use serde_json::json;

use crate::client::{init, request};
use crate::gateway::TestGateway;
use crate::http_server::HttpServer;

/// A slash at the end makes no difference, and no redirect.
#[tokio::test]
async fn an_endpoint_is_the_same_with_a_slash_at_its_end() {
    let server = HttpServer::start().await;
    let named = EndpointSettings {
        name: "research".into(),
        servers: Vec::new(),
        allow: Vec::new(),
        deny: Vec::new(),
        ..EndpointSettings::default()
    };
    let gateway = TestGateway::new().http("u1", server.url()).with(|s| s.endpoints.push(named)).start().await;
    for path in ["/mcp", "/servers/u1/mcp", "/research/mcp"] {
        let client = gateway.client(path).initialize("2025-06-18").await;
        let slashed = client.clone().at(&format!("{path}/"));
        assert_eq!(slashed.post(&request(1, "ping", json!({}))).await.status, StatusCode::OK, "{path}");
        assert_eq!(slashed.delete().await, StatusCode::NO_CONTENT, "{path}");
        let fresh = gateway.client(&format!("{path}/")).post(&init("2025-06-18", json!({}))).await;
        assert_eq!(fresh.status, StatusCode::OK, "{path}");
    }
}

/// A path without an endpoint is 404 with a small JSON body and a request id, for every method.
#[tokio::test]
async fn an_unknown_path_is_404_in_json() {
    let gateway = TestGateway::new().start().await;
    let long = format!("/{}/mcp", "x".repeat(8000));
    for path in [
        "/",
        "/nope",
        "/mcp/x",
        "/mcp//",
        "//mcp",
        "/servers/none/mcp",
        "/none/mcp",
        "/servers/mcp",
        "/metrics",
        "/readyz",
        "/livez",
        "/healthz",
        "/%2e%2e/mcp",
        "/MCP",
        &long,
    ] {
        for method in [Method::GET, Method::POST, Method::DELETE, Method::PUT] {
            let answer = gateway.client(path).send(method.clone(), "").await;
            assert_eq!(answer.status, StatusCode::NOT_FOUND, "{method} {path}");
            assert_eq!(answer.header("content-type"), Some("application/json"), "{method} {path}");
            let id = answer.header("x-request-id").expect("a request id").to_owned();
            let text = answer.text().await;
            assert!(text.len() < 1024, "{method} {path}: {} bytes", text.len());
            let body: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            assert_eq!(body["error"]["data"]["mcpgate"]["requestId"], id, "{method} {path}");
        }
    }
}

/// case-I11: what operators see is not shown to callers, by any path.
#[tokio::test]
async fn operators_pages_are_not_on_the_public_port() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new().http("inner-name", server.url()).start().await;
    for path in ["/metrics", "/metrics/", "/readyz", "/readyz?verbose", "/admin", "/status", "/api/servers"] {
        let answer = gateway.client(path).send(Method::GET, "").await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}");
        let text = answer.text().await;
        assert!(!text.contains("inner-name") && !text.contains("127.0.0.1"), "{path}: {text}");
    }
}

/// case-E07: a reverse proxy hands on any Host; none is refused.
#[tokio::test]
async fn any_host_is_served() {
    let gateway = TestGateway::new().start().await;
    for host in
        ["mcp.example.com", "mcp.example.com:443", "10.0.0.1", "[::1]:8080", "localhost", "a_b.internal"]
    {
        let mut raw = crate::raw::Raw::connect(gateway.address).await;
        let body = init("2025-06-18", json!({})).to_string();
        let length = body.len();
        raw.send(format!(
            "POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        ))
        .await;
        assert_eq!(raw.answer().await.status, 200, "{host}");
    }
}

/// Promise 10: every answer carries a request id, and each its own.
#[tokio::test]
async fn every_answer_has_a_request_id_of_its_own() {
    let gateway = TestGateway::new().start().await;
    let client = gateway.client("/mcp").initialize("2025-11-25").await;
    let note = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}});
    let get = client.send(Method::GET, "").await;
    let answers = [
        client.post(&request(1, "ping", json!({}))).await,
        client.clone().header("accept", "text/event-stream").post(&request(2, "ping", json!({}))).await,
        client.post(&note).await,
        client.send(Method::POST, "nonsense").await,
        client.send(Method::PUT, "").await,
        client.resume("9.9-9").await,
        client.clone().without("mcp-session-id").post(&note).await,
        get,
        client.send(Method::DELETE, "").await,
        client.send(Method::DELETE, "").await,
    ];
    let mut ids = std::collections::BTreeSet::new();
    for answer in &answers {
        ids.insert(answer.header("x-request-id").expect("an id").to_owned());
    }
    assert_eq!(ids.len(), answers.len());
}
