//! Who knows another's session id can do nothing with it.

use http::{Method, StatusCode};
use mcpgate::settings::EndpointSettings;
use serde_json::json;

use crate::client::{Client, init, request};
use crate::credentials::api_key;
use crate::gateway::TestGateway;
use crate::http_server::HttpServer;

/// Every way to use a session is 404 with the same words as for an id that never was.
async fn sees_no_session(stranger: &Client, cursor: &str) {
    let reason = |body: serde_json::Value| body["error"]["data"]["mcpgate"]["reason"].clone();
    for client in [stranger.clone(), stranger.clone().header("mcp-session-id", "never-was")] {
        let post = client.post(&request(7, "ping", json!({}))).await;
        assert_eq!(post.status, StatusCode::NOT_FOUND);
        let body = post.json().await;
        assert_eq!(body["id"], 7);
        assert_eq!(reason(body), "unknown_session");
        let note = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
        assert_eq!(client.post(&note).await.status, StatusCode::NOT_FOUND);
        let answer = json!({"jsonrpc": "2.0", "id": 4294967297u64, "result": {}});
        assert_eq!(client.post(&answer).await.status, StatusCode::NOT_FOUND);
        for get in [client.send(Method::GET, "").await, client.resume(cursor).await] {
            assert_eq!(get.status, StatusCode::NOT_FOUND);
            assert_eq!(reason(get.json().await), "unknown_session");
        }
        let delete = client.send(Method::DELETE, "").await;
        assert_eq!(delete.status, StatusCode::NOT_FOUND);
        assert_eq!(reason(delete.json().await), "unknown_session");
    }
}

/// case-I01: another principal gets exactly what an unknown id gets, by every method; the owner notices nothing.
#[tokio::test]
async fn another_principal_sees_no_session() {
    let mut other_tenant = api_key("ann", "ann-of-umbrella");
    other_tenant.tenant = Some("umbrella".into());
    let keys = vec![api_key("ann", "ann-key"), api_key("bob", "bob-key"), other_tenant];
    let gateway = TestGateway::new().with(|s| s.auth.api_keys = keys).start().await;
    let owner = gateway.client("/mcp").header("x-api-key", "ann-key").initialize("2025-11-25").await;
    let mut get = owner.open_get().await;
    let cursor = get.event().await.and_then(|e| e.id).expect("a priming event");
    for key in ["bob-key", "ann-of-umbrella"] {
        sees_no_session(&owner.clone().header("x-api-key", key), &cursor).await;
    }
    let bare = owner.clone().without("x-api-key");
    assert_eq!(bare.post(&request(1, "ping", json!({}))).await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(owner.call(1, "ping", json!({})).await["result"], json!({}));
    assert!(
        get.is_silent_for(std::time::Duration::from_millis(50)).await,
        "the owner's stream is still open"
    );
    assert_eq!(gateway.sessions(), 1.0);
    let again = owner.clone().header("x-api-key", "bob-key").post(&init("2025-11-25", json!({}))).await;
    assert_eq!(again.status, StatusCode::OK, "initialize with a stranger's id begins a session of one's own");
    assert_ne!(again.header("mcp-session-id"), Some(owner.session().as_str()));
}

/// case-F09: what a session is bound to is who comes, not with which key.
#[tokio::test]
async fn another_key_of_the_same_principal_goes_on() {
    let keys = vec![api_key("ann", "old-key"), api_key("ann", "new-key")];
    let gateway = TestGateway::new().with(|s| s.auth.api_keys = keys).start().await;
    let owner = gateway.client("/mcp").header("x-api-key", "old-key").initialize("2025-11-25").await;
    let fresh = owner.clone().header("x-api-key", "new-key");
    assert_eq!(fresh.call(1, "ping", json!({})).await["result"], json!({}));
}

/// case-I03: a session belongs to its endpoint; another one does not know it, whoever asks.
#[tokio::test]
async fn another_endpoint_sees_no_session() {
    let server = HttpServer::start().await;
    let named = |name: &str| EndpointSettings {
        name: name.into(),
        servers: Vec::new(),
        allow: Vec::new(),
        deny: Vec::new(),
        ..EndpointSettings::default()
    };
    let gateway = TestGateway::new()
        .http("u1", server.url())
        .with(|s| s.endpoints = vec![named("t1"), named("t2")])
        .start()
        .await;
    let paths = ["/mcp", "/servers/u1/mcp", "/t1/mcp", "/t2/mcp"];
    for own in paths {
        let owner = gateway.client(own).initialize("2025-11-25").await;
        let cursor = owner.open_get().await.event().await.and_then(|e| e.id).expect("a priming event");
        for other in paths.into_iter().filter(|p| *p != own) {
            sees_no_session(&owner.clone().at(other), &cursor).await;
        }
        assert_eq!(owner.call(1, "ping", json!({})).await["result"], json!({}), "{own}");
        assert_eq!(owner.delete().await, StatusCode::NO_CONTENT, "{own}");
    }
}
