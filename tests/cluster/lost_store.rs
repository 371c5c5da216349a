//! Processes whose Redis is not there for a while, or comes back empty, or whose peers are strangers.

use std::time::{Duration, Instant};

use http::StatusCode;
use serde_json::json;

use crate::client::{request, tool};
use crate::fleet::{Berth, Fleet, LEASE, OTHER_KEY};
use crate::http_server::HttpServer;
use crate::kit::ModernClient;
use crate::processes::{begin, echo, fleet_before};

/// Redis is away for a while: what needs it gets 503 soon, everything else goes on, and nobody has to mend it.
#[tokio::test]
async fn redis_may_be_away_for_a_while() {
    let server = HttpServer::start().await;
    let mut fleet = Fleet::start(format!(
        "mcpServers: {{ u1: {{ url: '{url}' }}, kept: {{ url: '{url}', isolation: shared }} }}",
        url = server.url()
    ))
    .await;
    let [a, b, _c] = fleet.three().await;
    let stateless = ModernClient { client: b.client("/mcp"), capabilities: json!({}) };
    let client = a.client("/mcp").initialize("2025-11-25").await;
    let listed = client.call(1, "tools/list", json!({})).await;
    assert!(stateless.call(1, "tools/list", json!({})).await["result"].is_object());
    let stopped = Instant::now();
    fleet.redis.stop().await;

    let answer = echo(&client, 2).await;
    assert!(answer["result"].is_object() || stopped.elapsed() > LEASE / 2, "owned sessions go on: {answer}");
    let asked = Instant::now();
    let refused = client.clone().via(b.address).post(&request(3, "ping", json!({}))).await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(refused.header("retry-after").is_some());
    let refused = b.client("/mcp").post(&crate::client::init("2025-11-25", json!({}))).await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(
        asked.elapsed() < Duration::from_secs(2),
        "each is told in under a second: {:?}",
        asked.elapsed()
    );

    a.await_metric("mcpgate_lease_held", 0.0).await;
    let refused = client.post(&request(4, "ping", json!({}))).await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE, "it may be another's by now");
    let (status, said) = a.says("/readyz?verbose").await;
    assert_eq!(status, StatusCode::OK, "{said}");
    assert!(said.contains("[-]session store unreachable") && said.contains("[-]lease not held"), "{said}");
    let again = stateless.call(1, "tools/list", json!({})).await;
    assert_eq!(again["result"]["tools"], listed["result"]["tools"], "lists go on: {again}");
    let called = stateless.call(1, "tools/call", tool("mcp_kept_echo", json!({"n": 5}))).await;
    assert!(called["result"].is_object(), "stateless calls go on: {called}");
    let refused = stateless.call(1, "tools/call", tool("mcp_u1_echo", json!({"n": 6}))).await;
    assert_eq!(
        refused["error"]["data"]["mcpgate"]["reason"], "no_lease",
        "that server keeps state: {refused}"
    );

    fleet.redis.begin().await;
    for replica in [&a, &b] {
        replica
            .await_readyz(|_, said| said.contains("[+]session store") && said.contains("[+]lease held"))
            .await;
    }
    let answer = echo(&client, 7).await;
    assert!(answer["result"].is_object(), "{answer}");
    let through = |n| {
        server.await_request(move |seen| {
            seen.is("tools/call") && seen.param("arguments") == Some(format!("{{\"n\":{n}}}"))
        })
    };
    let (before, after) = (through(2).await, through(7).await);
    assert_eq!(before.header("mcp-session-id"), after.header("mcp-session-id"), "the session goes on");
}

/// Redis comes back empty: sessions that live are written to it again, and who comes with an unknown id is told so only
/// when every owner has had the time for that.
#[tokio::test]
async fn redis_may_lose_all_it_holds() {
    let server = HttpServer::start().await;
    let mut fleet = fleet_before(&server).await;
    let [a, b, _c] = fleet.three().await;
    let client = a.client("/mcp").initialize("2025-11-25").await;
    let (feed, stream) = begin(&server, &client, 1).await;
    fleet.redis.stop().await;
    fleet.redis.begin().await;
    let begun = Instant::now();
    let back = |said: &str| said.contains("[+]session store") && said.contains("[+]lease held");
    for replica in [&a, &b] {
        replica.await_readyz(|_, said| back(said)).await;
    }
    let unknown = b.client("/mcp").header("mcp-session-id", "never-given-out");
    let first = unknown.post(&request(1, "ping", json!({}))).await.status;
    assert!(first == StatusCode::SERVICE_UNAVAILABLE || begun.elapsed() > LEASE, "{first}");
    let found = async {
        // Until its owner has written it again, it is not there for now.
        while !echo(&client.clone().via(b.address), 2).await["result"].is_object() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(LEASE * 2, found).await.expect("it is written again");
    feed.send(crate::http_server::result("{}")).await;
    assert_eq!(stream.rest().await.last().unwrap()["id"], 1, "what ran goes on");
    let forgotten = async {
        while unknown.post(&request(1, "ping", json!({}))).await.status != StatusCode::NOT_FOUND {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(LEASE * 4, forgotten).await.expect("404 two lease times later");
    assert!(begun.elapsed() > LEASE, "not at once");
    assert_eq!(server.sessions().len(), 1);
}

/// Replicas with different cluster keys are strangers: neither takes the other's word or finds its sessions, and both
/// say that something is wrong.
#[tokio::test]
async fn replicas_with_other_keys_are_strangers() {
    let server = HttpServer::start().await;
    let fleet = fleet_before(&server).await;
    let a = fleet.replica().await;
    let stranger = fleet.replica_at(&Berth { key: OTHER_KEY, ..fleet.berth() }).await;
    let client = a.client("/mcp").initialize("2025-11-25").await;
    assert!(echo(&client, 1).await["result"].is_object());
    let there = client.clone().via(stranger.address);
    let answer = there.post(&request(2, "ping", json!({}))).await;
    assert!(matches!(answer.status.as_u16(), 404 | 503), "{}", answer.status);
    assert!(echo(&client, 3).await["result"].is_object(), "it is not harmed");
    for replica in [&a, &stranger] {
        replica.await_readyz(|_, said| said.contains("[-]") && said.contains("cluster key")).await;
        assert_eq!(replica.metric("mcpgate_peer_forwards_total").await, 0.0);
    }
}
