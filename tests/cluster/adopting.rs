//! Sessions that go on at another replica when their owner is gone.

use std::time::Duration;

use http::StatusCode;
use serde_json::json;

use crate::client::{request, tool};
use crate::gateway::{Setup, TestGateway};
use crate::http_server::HttpServer;
use crate::replicas::{Cluster, LEASE};

fn at(server: &HttpServer) -> Setup {
    TestGateway::new().http("u1", server.url()).with(|s| s.shutdown.drain = Duration::from_millis(500))
}

/// case-A01: a session goes on at another replica when its own is stopped, and its server notices nothing.
#[tokio::test]
async fn a_session_outlives_the_stop_of_its_replica() {
    let server = HttpServer::start().await;
    let cluster = Cluster::new();
    let first = cluster.replica(at(&server)).await;
    let second = cluster.replica(at(&server)).await;
    let client = first.gateway.client("/mcp").initialize("2025-11-25").await;
    let answer = client.call(1, "tools/call", tool("mcp_u1_echo", json!({"text": "a"}))).await;
    assert!(answer["result"].is_object(), "{answer}");
    let upstream = server.sessions();
    first.gateway.stopped().await;

    let client = client.via(second.gateway.address);
    let answer = client.call(2, "tools/call", tool("mcp_u1_echo", json!({"text": "b"}))).await;
    assert!(answer["result"].is_object(), "{answer}");
    assert_eq!(server.sessions(), upstream, "the server goes on in the same session");
    assert_eq!(server.count(|seen| seen.method == http::Method::DELETE), 0, "it was not ended");
    assert_eq!(second.gateway.sample("mcpgate_ownership_transfers_total{outcome=\"adopted\"}"), 1.0);
    assert_eq!(client.delete().await, StatusCode::NO_CONTENT);
    assert_eq!(client.post(&request(3, "ping", json!({}))).await.status, StatusCode::NOT_FOUND);
}

/// case-A01: the same when it is cut off from the store, longer than it may go on without; when it comes back it knows
/// that the session is another's.
#[tokio::test]
async fn a_session_is_adopted_from_an_owner_that_lost_the_store() {
    let server = HttpServer::start().await;
    let cluster = Cluster::new();
    let first = cluster.replica(at(&server)).await;
    let second = cluster.replica(at(&server)).await;
    let client = first.gateway.client("/mcp").initialize("2025-11-25").await;
    first.way.set_cut(true);
    first.gateway.until("mcpgate_lease_held", |held| held == 0.0).await;
    let refused = client.post(&request(1, "ping", json!({}))).await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE, "it may be another's by now");
    assert_eq!(refused.header("retry-after"), Some("1"));

    tokio::time::sleep(LEASE).await;
    let there = second.caller(&client);
    let answer = there.call(2, "ping", json!({})).await;
    assert!(answer["result"].is_object(), "{answer}");
    first.way.set_cut(false);
    first.gateway.until("mcpgate_lease_held", |held| held == 1.0).await;
    first.gateway.until_sessions(0.0).await;
    assert_eq!(first.gateway.sample("mcpgate_ownership_transfers_total{outcome=\"lost\"}"), 1.0);
    assert!(there.call(3, "ping", json!({})).await["result"].is_object(), "the adopter goes on");
}
