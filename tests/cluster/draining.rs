//! Replicas that stop while something runs: nothing that they were given is lost.

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{Client, request, tool};
use crate::gateway::{Setup, TestGateway};
use crate::http_server::{Answer, Feed, HttpServer, Step, message, result, rpc};
use crate::replicas::Cluster;

fn at(server: &HttpServer) -> Setup {
    TestGateway::new().http("u1", server.url()).with(|s| {
        s.streams.grace = Duration::ZERO;
        s.shutdown.drain = Duration::from_secs(5);
    })
}

fn note(n: i32) -> Step {
    message(&json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"n": n}}).to_string())
}

/// A caller that calls, and leaves after the first event; gives how its server goes on, and the id of that event.
async fn left_in_mid_call(server: &HttpServer, client: &Client) -> (Feed, String) {
    let (feed, answer) = Answer::fed();
    server.once(rpc("tools/call"), answer);
    let call = request(1, "tools/call", tool("mcp_u1_echo", json!({})));
    let ((), answer) = tokio::join!(feed.send(note(1)), client.post(&call));
    let mut stream = answer.stream();
    assert_eq!(stream.message().await.unwrap()["params"]["n"], 1);
    (feed, stream.last_id.clone().unwrap())
}

/// What a caller gets that comes back, wherever, until it has the response.
async fn until_answered(client: &Client, mut last: String) -> Vec<Value> {
    let mut seen = Vec::new();
    while !seen.iter().any(|m: &Value| m["id"] == 1) {
        let mut stream = client.resume(&last).await.stream();
        while let Some(message) = stream.message().await {
            seen.push(message);
        }
        last = stream.last_id.clone().unwrap_or(last);
    }
    seen
}

/// case-J01: a call that ends during the drain of its replica has its result, once, for a caller that comes back
/// elsewhere.
#[tokio::test]
async fn the_result_of_a_call_that_ends_during_the_drain_is_found_elsewhere() {
    let server = HttpServer::start().await;
    let cluster = Cluster::new();
    let first = cluster.replica(at(&server)).await;
    let second = cluster.replica(at(&server)).await;
    let client = first.gateway.client("/mcp").initialize("2025-11-25").await;
    let there = second.caller(&client);
    let (feed, last) = left_in_mid_call(&server, &there).await;

    first.gateway.begin_to_stop().await;
    let feeding = async {
        feed.send(note(2)).await;
        feed.send(result(r#"{"content":[]}"#)).await;
    };
    let ((), seen) = tokio::join!(feeding, until_answered(&there, last));
    let told: Vec<&Value> = seen.iter().filter(|m| m["params"]["n"] == 2).collect();
    assert_eq!(told.len(), 1, "{seen:?}");
    let answers: Vec<&Value> = seen.iter().filter(|m| m["id"] == 1).collect();
    assert_eq!(answers.len(), 1, "{seen:?}");
    assert!(answers[0]["result"].is_object(), "{seen:?}");
    assert_eq!(server.count(rpc("tools/call")), 1, "it ran once");
    first.gateway.stopped().await;
    assert!(there.call(2, "ping", json!({})).await["result"].is_object(), "the session goes on");
    assert_eq!(second.gateway.sessions(), 1.0);
}

/// A call that outlasts the drain ends as an unknown outcome, for a caller that comes back elsewhere.
#[tokio::test]
async fn a_call_that_outlasts_the_drain_has_an_unknown_outcome() {
    let server = HttpServer::start().await;
    let cluster = Cluster::new();
    let brief = || at(&server).with(|s| s.shutdown.drain = Duration::from_millis(300));
    let first = cluster.replica(brief()).await;
    let second = cluster.replica(brief()).await;
    let client = first.gateway.client("/mcp").initialize("2025-11-25").await;
    let there = second.caller(&client);
    let (feed, last) = left_in_mid_call(&server, &there).await;
    first.gateway.stopped().await;
    let seen = until_answered(&there, last).await;
    let error = &seen.last().unwrap()["error"];
    assert_eq!(error["code"], -32603, "{seen:?}");
    assert!(error["message"].as_str().unwrap().contains("outcome is unknown"), "{seen:?}");
    assert!(there.call(2, "ping", json!({})).await["result"].is_object(), "the session goes on");
    drop(feed);
}
