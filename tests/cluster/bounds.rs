//! What holds over all replicas: the cap on sessions, time limits, ends.

use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::json;

use crate::client::{init, request, tool};
use crate::gateway::{Setup, TestGateway};
use crate::http_server::{Answer, HttpServer, rpc};
use crate::replicas::Cluster;

fn at(server: &HttpServer) -> Setup {
    TestGateway::new().http("u1", server.url())
}

/// The cap on sessions holds over all replicas, as their leases last told.
#[tokio::test]
async fn the_cap_on_sessions_holds_over_all_replicas() {
    let server = HttpServer::start().await;
    let cluster = Cluster::new();
    let few = || at(&server).with(|s| s.sessions.max = 3);
    let first = cluster.replica(few()).await;
    let second = cluster.replica(few()).await;
    let a = first.gateway.client("/mcp").initialize("2025-11-25").await;
    let _b = first.gateway.client("/mcp").initialize("2025-11-25").await;
    first.tells(&[&second]).await;
    let _c = second.gateway.client("/mcp").initialize("2025-11-25").await;
    let refused = second.gateway.client("/mcp").post(&init("2025-11-25", json!({}))).await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(a.delete().await, StatusCode::NO_CONTENT);
    first.tells(&[&second]).await;
    second.gateway.client("/mcp").initialize("2025-11-25").await;
}

/// case-A07: a session whose owner is gone ends by itself when its time is over, at its server too, and once.
#[tokio::test]
async fn a_session_that_nobody_owns_ends_when_its_time_is_over() {
    let server = HttpServer::start().await;
    let cluster = Cluster::new();
    let brief = || at(&server).with(|s| s.sessions.idle = Duration::from_millis(1500));
    let first = cluster.replica(brief()).await;
    let second = cluster.replica(brief()).await;
    let _third = cluster.replica(brief()).await;
    let client = first.gateway.client("/mcp").initialize("2025-11-25").await;
    client.call(1, "tools/call", tool("mcp_u1_echo", json!({}))).await;
    first.gateway.stopped().await;
    assert_eq!(server.count(|seen| seen.method == Method::DELETE), 0, "it goes on");
    server.await_request(|seen| seen.method == Method::DELETE).await;
    let there = second.caller(&client);
    assert_eq!(there.post(&request(2, "ping", json!({}))).await.status, StatusCode::NOT_FOUND);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(server.count(|seen| seen.method == Method::DELETE), 1, "once");
}

/// case-A07: a stream that is open keeps its session, though no request comes for longer than it may be idle.
#[tokio::test]
async fn an_open_stream_keeps_a_session_in_the_store() {
    let server = HttpServer::start().await;
    let cluster = Cluster::new();
    let brief = || at(&server).with(|s| s.sessions.idle = Duration::from_millis(800));
    let first = cluster.replica(brief()).await;
    let second = cluster.replica(brief()).await;
    let client = first.gateway.client("/mcp").initialize("2025-11-25").await;
    let stream = second.caller(&client).open_get().await;
    tokio::time::sleep(Duration::from_millis(2500)).await;
    assert!(second.caller(&client).call(1, "ping", json!({})).await["result"].is_object(), "it lives");
    drop(stream);
    first.gateway.until_sessions(0.0).await;
}

/// A session keeps what it was told: log level, `initialized`, subscriptions.
#[tokio::test]
async fn an_adopted_session_has_its_subscriptions_again() {
    let server = HttpServer::start().await;
    let cluster = Cluster::new();
    let first = cluster.replica(at(&server)).await;
    let second = cluster.replica(at(&server)).await;
    server.on(rpc("resources/subscribe"), Answer::result("{}"));
    let client = first.gateway.client("/servers/u1/mcp").initialize("2025-11-25").await;
    let subscribed = client.call(1, "resources/subscribe", json!({"uri": "test://one"})).await;
    assert!(subscribed["result"].is_object(), "{subscribed}");
    let before = server.count(|seen| seen.is("resources/subscribe"));
    first.gateway.stopped().await;
    let there = second.caller(&client);
    assert!(there.call(2, "ping", json!({})).await["result"].is_object());
    server.await_requests(before + 1, |seen| seen.is("resources/subscribe")).await;
}
