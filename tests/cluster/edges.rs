//! The replica where a caller comes in, and which owns nothing of what the caller has: what passes through it ends well
//! when it stops, and when its caller's key is taken back.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use http::StatusCode;
use mcpgate::settings::auth::ApiKey;
use serde_json::json;

use crate::client::{Client, SOON, request, tool};
use crate::gateway::{Setup, TestGateway};
use crate::http_server::{Answer, HttpServer, message, result, rpc};
use crate::replicas::{Cluster, Replica};

fn at(server: &HttpServer) -> Setup {
    TestGateway::new().http("u1", server.url()).with(|s| s.shutdown.drain = Duration::from_secs(5))
}

fn key(name: &str) -> ApiKey {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, name.as_bytes());
    let sha256 = digest.as_ref().try_into().unwrap();
    ApiKey { id: name.to_owned(), sha256, tenant: None, scopes: BTreeSet::new(), expires: None }
}

/// A session at the first of two replicas, whose caller is at the second.
async fn owner_and_edge(
    setup: impl Fn() -> Setup,
    caller: impl Fn(Client) -> Client,
) -> (Replica, Replica, Client) {
    let cluster = Cluster::steady();
    let (owner, edge) = tokio::join!(cluster.replica(setup()), cluster.replica(setup()));
    let client = caller(owner.gateway.client("/mcp")).initialize("2025-11-25").await;
    let there = edge.caller(&client);
    (owner, edge, there)
}

/// case-J01: a caller's streams end at once when the replica that forwards them stops, and go on elsewhere without loss;
/// the stop waits for none of them.
#[tokio::test]
async fn streams_that_pass_through_a_replica_that_stops_go_on_elsewhere() {
    let server = HttpServer::start().await;
    let (owner, edge, there) =
        owner_and_edge(|| at(&server).with(|s| s.streams.grace = Duration::ZERO), |c| c).await;
    let mut standing = there.open_get().await;
    let (feed, answer) = Answer::fed();
    server.once(rpc("tools/call"), answer);
    let call = request(1, "tools/call", tool("mcp_u1_echo", json!({})));
    let note =
        message(&json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}).to_string());
    let ((), answer) = tokio::join!(feed.send(note), there.post(&call));
    let mut stream = answer.stream();
    assert!(stream.message().await.is_some());
    let last = stream.last_id.clone().unwrap();

    let began = Instant::now();
    tokio::join!(edge.gateway.stopped(), async {
        assert_eq!(standing.message().await, None, "it ends");
        assert_eq!(stream.message().await, None, "it ends");
    });
    assert!(began.elapsed() < Duration::from_secs(4), "nothing was waited for: {:?}", began.elapsed());

    let here = owner.caller(&there);
    feed.send(result(r#"{"content":[]}"#)).await;
    let resumed = here.resume(&last).await.response().await;
    assert!(resumed["result"].is_object(), "{resumed}");
    assert_eq!(server.count(rpc("tools/call")), 1, "it ran once");
}

/// A call whose caller has no event id to come back with is waited for by the replica that forwards it.
#[tokio::test]
async fn a_call_that_passes_through_a_replica_that_stops_has_its_answer() {
    let server = HttpServer::start().await;
    let (_owner, edge, there) =
        owner_and_edge(|| at(&server).with(|s| s.streams.grace = Duration::from_secs(30)), |c| c).await;
    let (feed, answer) = Answer::fed();
    server.once(rpc("tools/call"), answer);
    let calling = async { there.call(1, "tools/call", tool("mcp_u1_echo", json!({}))).await };
    let stopping = async {
        server.await_request(rpc("tools/call")).await;
        edge.gateway.begin_to_stop().await;
        feed.send(result(r#"{"content":[]}"#)).await;
    };
    let (answer, ()) = tokio::join!(calling, stopping);
    assert!(answer["result"].is_object(), "{answer}");
    edge.gateway.stopped().await;
}

/// The same call, if it takes longer than the replica may wait: its caller is told so, and never nothing.
#[tokio::test]
async fn a_call_that_outlasts_the_stop_of_the_replica_it_passes_through_has_an_unknown_outcome() {
    let server = HttpServer::start().await;
    let brief = || {
        at(&server).with(|s| {
            s.streams.grace = Duration::from_secs(30);
            s.shutdown.drain = Duration::from_millis(200);
        })
    };
    let (_owner, edge, there) = owner_and_edge(brief, |c| c).await;
    let (_feed, answer) = Answer::fed();
    server.once(rpc("tools/call"), answer);
    let calling = async { there.call(1, "tools/call", tool("mcp_u1_echo", json!({}))).await };
    let stopping = async {
        server.await_request(rpc("tools/call")).await;
        edge.gateway.stopped().await;
    };
    let (answer, ()) = tokio::join!(calling, stopping);
    assert_eq!(answer["error"]["data"]["mcpgate"]["reason"], "outcome_unknown", "{answer}");
}

/// A key that one replica's config has no more ends its caller's streams at all replicas, and opens nothing at any,
/// before their own configs say so; other callers come back and go on.
#[tokio::test]
async fn a_key_that_is_taken_back_at_one_replica_is_refused_at_all() {
    let server = HttpServer::start().await;
    let with = |keys: &[&str]| {
        let keys: Vec<ApiKey> = keys.iter().map(|name| key(name)).collect();
        at(&server).with(|s| s.auth.api_keys = keys)
    };
    let as_ann = |client: Client| client.header("x-api-key", "ann");
    let (owner, edge, ann) = owner_and_edge(|| with(&["ann", "bob"]), as_ann).await;
    let bob = owner.gateway.client("/mcp").header("x-api-key", "bob").initialize("2025-11-25").await;
    let mut passing = ann.open_get().await;

    owner.gateway.reload(with(&["bob"])).await;
    let ended = tokio::time::timeout(SOON, async { while passing.event().await.is_some() {} }).await;
    ended.expect("the stream ends where it passes");
    let refused = async {
        while ann.post(&request(1, "ping", json!({}))).await.status != StatusCode::UNAUTHORIZED {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(SOON, refused).await.expect("the key is refused where the config still has it");
    let bob = edge.caller(&bob);
    assert!(bob.call(1, "ping", json!({})).await["result"].is_object());

    // Its own config counts once it has changed.
    edge.gateway.reload(with(&["ann", "bob", "joe"])).await;
    let answer = edge.gateway.client("/mcp").header("x-api-key", "ann").initialize("2025-11-25").await;
    assert!(answer.call(1, "ping", json!({})).await["result"].is_object());
}

/// During a rollout a replica may not have an endpoint yet, or not any more: that is no 404, which would tell a client that
/// its session has ended. Once all have one config it is.
#[tokio::test]
async fn an_endpoint_that_one_replica_does_not_have_is_no_404_while_configs_differ() {
    let server = HttpServer::start().await;
    let cluster = Cluster::steady();
    let new = || TestGateway::new().http("u1", server.url()).http("u2", server.url());
    let (first, old) = tokio::join!(cluster.replica(new()), cluster.replica_of(at(&server), [1; 32]));
    old.gateway.until("mcpgate_config_mismatch", |others| others == 1.0).await;
    let client = first.gateway.client("/servers/u2/mcp").initialize("2025-11-25").await;
    let answer = old.caller(&client).post(&request(1, "ping", json!({}))).await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(answer.header("retry-after").is_some());
    assert_eq!(answer.json().await["error"]["data"]["mcpgate"]["reason"], "configs_differ");

    first.gateway.stopped().await;
    old.gateway.until("mcpgate_config_mismatch", |others| others == 0.0).await;
    let answer = old.caller(&client).post(&request(2, "ping", json!({}))).await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
}
