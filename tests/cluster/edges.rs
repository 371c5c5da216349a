//! The replica where a caller comes in, and which owns nothing of what the caller has: what passes through it ends well
//! when it stops, and when its caller's key is taken back.

use std::time::Duration;

use http::StatusCode;
use mcpgate::settings::auth::ApiKey;
use serde_json::json;

use crate::client::{Client, SOON, Stream, request, tool};
use crate::credentials::api_key;
use crate::gateway::{Setup, TestGateway};
use crate::http_server::{Answer, Feed, HttpServer, message, result, rpc};
use crate::replicas::{Cluster, Replica};

fn at(server: &HttpServer) -> Setup {
    TestGateway::new().http("u1", server.url()).with(|s| s.shutdown.drain = Duration::from_secs(5))
}

/// A call that runs, and its stream behind a first event.
async fn call_with_an_event(server: &HttpServer, client: &Client) -> (Feed, Stream) {
    let (feed, answer) = Answer::fed();
    server.once(rpc("tools/call"), answer);
    let call = request(1, "tools/call", tool("mcp_u1_echo", json!({})));
    let note = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {}});
    let ((), answer) = tokio::join!(feed.send(message(&note.to_string())), client.post(&call));
    let mut stream = answer.stream();
    assert!(stream.message().await.is_some());
    (feed, stream)
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

/// case-J01: when the replica that forwards stops, GET streams end at once and go on elsewhere, and a call has its answer
/// where it was asked.
#[tokio::test]
async fn what_passes_through_a_replica_that_stops_ends_well() {
    let server = HttpServer::start().await;
    let (owner, edge, there) =
        owner_and_edge(|| at(&server).with(|s| s.streams.grace = Duration::ZERO), |c| c).await;
    let mut standing = there.open_get().await;
    let (feed, mut stream) = call_with_an_event(&server, &there).await;
    edge.gateway.begin_to_stop().await;
    assert_eq!(standing.message().await, None, "it ends");
    feed.send(result(r#"{"content":[]}"#)).await;
    let answer = stream.message().await.unwrap();
    assert!(answer["result"].is_object(), "{answer}");
    edge.gateway.stopped().await;
    owner.caller(&there).open_get().await;
}

/// The same, if the call takes longer than the replica may wait: its caller comes back elsewhere, and nothing is lost.
#[tokio::test]
async fn a_call_that_outlasts_the_stop_goes_on_elsewhere() {
    let server = HttpServer::start().await;
    let brief = || {
        at(&server).with(|s| {
            s.streams.grace = Duration::ZERO;
            s.shutdown.drain = Duration::from_millis(200);
        })
    };
    let (owner, edge, there) = owner_and_edge(brief, |c| c).await;
    let (feed, mut stream) = call_with_an_event(&server, &there).await;
    let last = stream.last_id.clone().unwrap();
    tokio::join!(edge.gateway.stopped(), async { assert_eq!(stream.message().await, None, "it ends") });
    feed.send(result(r#"{"content":[]}"#)).await;
    let resumed = owner.caller(&there).resume(&last).await.response().await;
    assert!(resumed["result"].is_object(), "{resumed}");
    assert_eq!(server.count(rpc("tools/call")), 1, "it ran once");
}

/// A call that begins after the stop did, while something else is waited for: it has an end that says what is known.
#[tokio::test]
async fn a_call_that_comes_during_the_stop_has_an_end() {
    let server = HttpServer::start().await;
    let setup = || {
        at(&server).with(|s| {
            s.streams.grace = Duration::from_secs(30);
            s.shutdown.drain = Duration::from_secs(1);
        })
    };
    let (_owner, edge, there) = owner_and_edge(setup, |c| c).await;
    // What the replica waits for meanwhile: a call of a session of its own.
    let own = edge.gateway.client("/mcp").initialize("2025-11-25").await;
    let (_feed, answer) = Answer::fed();
    server.once(rpc("tools/call"), answer);
    let (_other_feed, answer) = Answer::fed();
    let waited_for = async { own.call(1, "tools/call", tool("mcp_u1_echo", json!({}))).await };
    let late = async {
        server.await_request(rpc("tools/call")).await;
        server.once(rpc("tools/call"), answer);
        edge.gateway.begin_to_stop().await;
        there.call(1, "tools/call", tool("mcp_u1_echo", json!({}))).await
    };
    let (_, late) = tokio::join!(waited_for, late);
    assert_eq!(late["error"]["data"]["mcpgate"]["reason"], "outcome_unknown", "{late}");
    edge.gateway.stopped().await;
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
        let keys: Vec<ApiKey> = keys.iter().map(|name| api_key(name, name)).collect();
        at(&server).with(|s| s.auth.api_keys = keys)
    };
    let as_ann = |client: Client| client.header("x-api-key", "ann");
    let (owner, edge, ann) = owner_and_edge(|| with(&["ann", "bob"]), as_ann).await;
    let at_owner = owner.caller(&ann);
    let bob = owner.gateway.client("/mcp").header("x-api-key", "bob").initialize("2025-11-25").await;
    let (mut passing, mut others) = (ann.open_get().await, bob.open_get().await);

    others.event().await.expect("a first event id");

    // The owner's config has the key still.
    edge.gateway.reload(with(&["bob"])).await;
    assert_eq!(passing.message().await, None, "the stream ends at its owner");
    until_status(&at_owner, StatusCode::UNAUTHORIZED).await;
    assert!(edge.caller(&bob).call(1, "ping", json!({})).await["result"].is_object());
    assert!(others.is_silent_for(Duration::from_millis(100)).await, "no other stream ends");

    // And it is let in again where it never was gone, once the first replica has it back.
    edge.gateway.reload(with(&["ann", "bob"])).await;
    until_status(&at_owner, StatusCode::OK).await;
}

/// Waits until a ping is answered so.
async fn until_status(client: &Client, status: StatusCode) {
    let asked = async {
        while client.post(&request(1, "ping", json!({}))).await.status != status {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(SOON, asked).await.unwrap_or_else(|_| panic!("a ping is not answered {status}"));
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
