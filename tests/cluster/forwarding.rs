//! Requests that reach another replica than their session's owner.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::client::{Client, request, tool};
use crate::gateway::{Setup, TestGateway};
use crate::http_server::{Answer, HttpServer, message, result, rpc};
use crate::replicas::{Cluster, Replica};

fn at(server: &HttpServer) -> Setup {
    TestGateway::new().http("u1", server.url())
}

async fn three(cluster: &Cluster, server: &HttpServer) -> [Replica; 3] {
    let replica = || cluster.replica(at(server));
    let (a, b, c) = tokio::join!(replica(), replica(), replica());
    [a, b, c]
}

fn everywhere(replicas: &[Replica; 3], client: &Client) -> [Client; 3] {
    replicas.each_ref().map(|replica| replica.caller(client))
}

async fn echo(client: &Client, id: i32) -> Value {
    client.call(id, "tools/call", tool("mcp_u1_echo", json!({"text": "a"}))).await
}

/// case-A01: a session is served wherever its caller comes; one replica owns it, and its server sees one session.
#[tokio::test]
async fn any_replica_serves_any_session() {
    let server = HttpServer::start().await;
    let cluster = Cluster::new();
    let replicas = three(&cluster, &server).await;
    let client = replicas[0].gateway.client("/mcp").initialize("2025-11-25").await;
    for round in 0..3 {
        for (there, n) in everywhere(&replicas, &client).iter().zip(0..) {
            let answer = echo(there, round * 10 + n).await;
            assert!(answer["result"].is_object(), "{answer}");
        }
    }
    assert_eq!(server.sessions().len(), 1, "one session at the server");
    for (replica, owned) in replicas.iter().zip([1.0, 0.0, 0.0]) {
        assert_eq!(replica.gateway.sessions(), owned);
    }
    assert_eq!(replicas[1].gateway.sample("mcpgate_peer_forwards_total{outcome=\"ok\"}"), 3.0);
}

/// case-A03, case-I01: what is nobody's or another's is 404 everywhere, and a DELETE anywhere ends the session
/// everywhere, at its server too.
#[tokio::test]
async fn a_delete_anywhere_ends_a_session_everywhere() {
    let server = HttpServer::start().await;
    let cluster = Cluster::new();
    let replicas = three(&cluster, &server).await;
    let client = replicas[0].gateway.client("/mcp").initialize("2025-11-25").await;
    echo(&client, 1).await;
    for there in everywhere(&replicas, &client) {
        let unknown = there.clone().header("mcp-session-id", "never-given-out");
        assert_eq!(unknown.post(&request(1, "ping", json!({}))).await.status, StatusCode::NOT_FOUND);
        let elsewhere = there.at("/servers/u1/mcp");
        assert_eq!(elsewhere.post(&request(1, "ping", json!({}))).await.status, StatusCode::NOT_FOUND);
    }
    assert_eq!(replicas[1].caller(&client).delete().await, StatusCode::NO_CONTENT);
    server.await_request(|seen| seen.method == Method::DELETE).await;
    replicas[0].gateway.until_sessions(0.0).await;
    for there in everywhere(&replicas, &client) {
        assert_eq!(there.post(&request(2, "ping", json!({}))).await.status, StatusCode::NOT_FOUND);
    }
    assert_eq!(server.count(|seen| seen.method == Method::DELETE), 1, "its server is told once");
}

/// case-A03: after the answer to a DELETE the session is gone at every replica, also if nothing is heard of it on the bus.
#[tokio::test]
async fn a_session_that_was_deleted_elsewhere_is_gone_at_once() {
    let server = HttpServer::start().await;
    let cluster = Cluster::steady();
    let replicas = three(&cluster, &server).await;
    let client = replicas[0].gateway.client("/mcp").initialize("2025-11-25").await;
    let everywhere = everywhere(&replicas, &client);
    for (there, n) in everywhere.iter().zip(1..) {
        echo(there, n).await;
    }
    replicas[1].way.mute();
    assert_eq!(everywhere[1].delete().await, StatusCode::NO_CONTENT);
    for there in &everywhere {
        assert_eq!(there.post(&request(9, "ping", json!({}))).await.status, StatusCode::NOT_FOUND);
    }
    server.await_request(|seen| seen.method == Method::DELETE).await;
    assert_eq!(server.count(|seen| seen.method == Method::DELETE), 1, "its server is told once");
}

/// case-B05: a stream is read through another replica, and resumed through a third, each event once.
#[tokio::test]
async fn a_stream_is_resumed_through_another_replica() {
    let server = HttpServer::start().await;
    let cluster = Cluster::new();
    let replicas = three(&cluster, &server).await;
    let client = replicas[0].gateway.client("/mcp").initialize("2025-11-25").await;
    let (feed, answer) = Answer::fed();
    server.once(rpc("tools/call"), answer);
    let note = |n: i32| {
        message(&json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"n": n}}).to_string())
    };
    let call = request(1, "tools/call", tool("mcp_u1_echo", json!({})));
    let there = replicas[1].caller(&client);
    let ((), answer) = tokio::join!(feed.send(note(1)), there.post(&call));
    let mut stream = answer.stream();
    assert_eq!(stream.message().await.unwrap()["params"]["n"], 1);
    let last = stream.last_id.clone().unwrap();
    drop(stream);
    feed.send(note(2)).await;
    feed.send(result("{}")).await;
    let rest = replicas[2].caller(&client).resume(&last).await.stream().rest().await;
    assert_eq!(rest.len(), 2, "{rest:?}");
    assert_eq!((&rest[0]["params"]["n"], &rest[1]["id"]), (&json!(2), &json!(1)));
}

/// The standalone stream is one wherever it is opened, and a caller that leaves it is noticed by the owner.
#[tokio::test]
async fn the_standalone_stream_is_served_through_another_replica() {
    let server = HttpServer::start().await;
    let cluster = Cluster::new();
    let replicas = three(&cluster, &server).await;
    let client = replicas[0].gateway.client("/mcp").initialize("2025-11-25").await;
    let stream = replicas[2].caller(&client).open_get().await;
    let open = r#"mcpgate_sse_streams_active{kind="get"}"#;
    replicas[0].gateway.until(open, |n| n == 1.0).await;
    drop(stream);
    replicas[0].gateway.until(open, |n| n == 0.0).await;
}

/// A second `initialize` in a live session is refused wherever it comes, batches pass as they are, and no caller can
/// write what replicas say to each other.
#[tokio::test]
async fn what_is_refused_is_refused_everywhere() {
    let server = HttpServer::start().await;
    let cluster = Cluster::new();
    let replicas = three(&cluster, &server).await;
    let client = replicas[0].gateway.client("/mcp").initialize("2025-03-26").await;
    let there = replicas[1].caller(&client);
    let again = there.post(&crate::client::init("2025-03-26", json!({}))).await;
    assert_eq!(again.status, StatusCode::BAD_REQUEST);
    let batch = json!([request(1, "ping", json!({})), request(2, "ping", json!({}))]);
    let answers = there.post(&batch).await.json().await;
    assert_eq!(answers.as_array().map(Vec::len), Some(2), "{answers}");
    let smuggled = there.clone().header("mcpgate-hop-to", "x").call(3, "ping", json!({})).await;
    assert!(smuggled["result"].is_object(), "{smuggled}");
}

/// A forwarder that believes what was true a moment ago looks again: the owner released the session meanwhile.
#[tokio::test]
async fn a_released_session_is_found_at_its_new_owner() {
    let server = HttpServer::start().await;
    let cluster = Cluster::new();
    let [first, second, third] = three(&cluster, &server).await;
    let client = first.gateway.client("/mcp").initialize("2025-11-25").await;
    echo(&second.caller(&client), 1).await;
    first.gateway.stopped().await;
    echo(&third.caller(&client), 2).await;
    let answer = echo(&second.caller(&client), 3).await;
    assert!(answer["result"].is_object(), "{answer}");
    assert_eq!((third.gateway.sessions(), second.gateway.sessions()), (1.0, 0.0));
    assert_eq!(server.sessions().len(), 1);
}

/// Two replicas that are asked at once for a session that nobody owns: one adopts it, the other forwards to it.
#[tokio::test]
async fn of_two_adopters_one_wins_and_the_other_forwards() {
    let server = HttpServer::start().await;
    let cluster = Cluster::new();
    let [first, second, third] = three(&cluster, &server).await;
    let mut clients = Vec::new();
    for _ in 0..20 {
        clients.push(first.gateway.client("/mcp").initialize("2025-11-25").await);
    }
    first.gateway.stopped().await;
    for client in &clients {
        let (there, elsewhere) = (second.caller(client), third.caller(client));
        let (a, b) = tokio::join!(there.call(1, "ping", json!({})), elsewhere.call(2, "ping", json!({})));
        assert!(a["result"].is_object() && b["result"].is_object(), "{a} {b}");
    }
    assert_eq!(second.gateway.sessions() + third.gateway.sessions(), 20.0, "each has one owner");
}

/// A DELETE at a replica that does not own the session ends its running calls as one at the owner does: with an error,
/// not with the advice to come back.
#[tokio::test]
async fn a_delete_elsewhere_ends_calls_with_an_error() {
    let server = HttpServer::start().await;
    let cluster = Cluster::new();
    let first = cluster.replica(TestGateway::new().http("u1", server.url())).await;
    let second = cluster.replica(TestGateway::new().http("u1", server.url())).await;
    let client = first.gateway.client("/mcp").initialize("2025-11-25").await;
    let (feed, answer) = Answer::fed();
    server.once(rpc("tools/call"), answer);
    let note =
        json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}});
    let call = request(1, "tools/call", tool("mcp_u1_echo", json!({})));
    let ((), answer) = tokio::join!(feed.send(message(&note.to_string())), client.post(&call));
    let mut stream = answer.stream();
    assert_eq!(stream.message().await.unwrap()["params"]["data"], 1);
    assert!(stream.last_id.is_some(), "it could be come back to");
    assert_eq!(second.caller(&client).delete().await, StatusCode::NO_CONTENT);
    let last = stream.rest().await.pop().expect("a response");
    assert_eq!(
        (&last["id"], &last["error"]["data"]["mcpgate"]["reason"]),
        (&json!(1), &json!("session_ended")),
        "{last}"
    );
    assert_eq!(client.post(&request(2, "ping", json!({}))).await.status, StatusCode::NOT_FOUND);
}
