//! Sessions that go on at another replica when their owner is gone.

use std::time::Duration;

use http::StatusCode;
use serde_json::{Value, json};

use crate::client::{Client, Stream, request, tool};
use crate::gateway::{Setup, TestGateway};
use crate::http_server::{Answer, Feed, HttpServer, Seen, event, hold, http as by, primed};
use crate::replicas::{Cluster, LEASE, Replica};

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

fn note(n: i32) -> String {
    json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": n}})
        .to_string()
}

fn comes_back(seen: &Seen) -> bool {
    seen.header("last-event-id").is_some()
}

/// A server whose standalone stream the test feeds, and a session that has heard its first event.
async fn heard_on_stream(first: &Replica, server: &HttpServer) -> (Client, Stream, Feed) {
    let (feed, answer) = Answer::fed_after([primed("e-0")]);
    server.once(by(http::Method::GET), answer);
    let client = first.gateway.client("/mcp").initialize("2025-11-25").await;
    let mut stream = client.open_get().await;
    let answer = client.call(1, "tools/call", tool("mcp_u1_echo", json!({"text": "a"}))).await;
    assert!(answer["result"].is_object(), "{answer}");
    feed.send(event("e-1", &note(1))).await;
    assert_eq!(data(stream.message().await), 1);
    (client, stream, feed)
}

fn data(message: Option<Value>) -> i64 {
    let message = message.expect("a message");
    message["params"]["data"].as_i64().unwrap_or_else(|| panic!("{message}"))
}

/// What a server said on its standalone stream while nobody owned the session comes to whoever adopts it: the stream is
/// taken up behind the last event that was heard.
#[tokio::test]
async fn what_a_server_says_while_nobody_owns_a_session_is_not_lost() {
    let server = HttpServer::start().await;
    let cluster = Cluster::new();
    let first = cluster.replica(at(&server)).await;
    let second = cluster.replica(at(&server)).await;
    let (client, _stream, feed) = heard_on_stream(&first, &server).await;
    server.once(comes_back, Answer::events([event("e-2", &note(2)), hold()]));
    first.gateway.stopped().await;
    drop(feed);
    assert_eq!(server.count(comes_back), 0, "nobody has come back for it");

    let mut stream = client.via(second.gateway.address).open_get().await;
    assert_eq!(data(stream.message().await), 2);
    let back = server.await_request(comes_back).await;
    assert_eq!(back.header("last-event-id"), Some("e-1"));
    assert_eq!(server.sessions().len(), 1, "in the session it knows");
}

/// The same after an owner that could not say goodbye: it has told the store some time before where the stream stood.
#[tokio::test]
async fn the_stream_of_a_lost_owner_is_taken_up_where_it_was_last_said_to_stand() {
    let server = HttpServer::start().await;
    let cluster = Cluster::new();
    let often = || at(&server).with(|s| s.sessions.implicit_idle = Duration::from_millis(200));
    let first = cluster.replica(often()).await;
    let second = cluster.replica(often()).await;
    let (client, _stream, _feed) = heard_on_stream(&first, &server).await;
    first.way.until_cursors(1).await;
    server.once(comes_back, Answer::events([event("e-2", &note(2)), hold()]));
    first.way.set_cut(true);
    first.gateway.until("mcpgate_lease_held", |held| held == 0.0).await;
    tokio::time::sleep(LEASE).await;

    let mut stream = second.caller(&client).open_get().await;
    assert_eq!(data(stream.message().await), 2);
    assert!(
        ["e-0", "e-1"].contains(&server.await_request(comes_back).await.header("last-event-id").unwrap())
    );
}

/// A server that does not know the cursor, as after its own restart, is listened to from now on.
#[tokio::test]
async fn a_cursor_that_a_server_does_not_know_is_given_up() {
    let server = HttpServer::start().await;
    let cluster = Cluster::new();
    let first = cluster.replica(at(&server)).await;
    let second = cluster.replica(at(&server)).await;
    let (client, _stream, _feed) = heard_on_stream(&first, &server).await;
    server.on(comes_back, Answer::status(400));
    first.gateway.stopped().await;
    let (feed, answer) = Answer::fed();
    server.once(|seen| seen.method == http::Method::GET && !comes_back(seen), answer);
    let mut stream = client.via(second.gateway.address).open_get().await;
    feed.send(event("f-1", &note(7))).await;
    assert_eq!(data(stream.message().await), 7);
}
