//! The standalone GET: the newest connection has the messages, older ones stand by.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use crate::client::{Client, tool};
use crate::gateway::TestGateway;
use crate::http_server::{Answer, Feed, HttpServer, http, message};
use crate::raw::Raw;

/// A server with a standalone stream that the test feeds, and a session with a link to it.
async fn talkative(revision: &str) -> (HttpServer, TestGateway, Client, Feed) {
    let server = HttpServer::start().await;
    let (feed, answer) = Answer::fed();
    server.on(http(Method::GET), answer);
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = gateway.client("/mcp").initialize(revision).await;
    client.call(1, "tools/call", tool("mcp_u1_echo", json!({}))).await;
    server.await_request(http(Method::GET)).await;
    (server, gateway, client, feed)
}

async fn say(feed: &Feed, n: i32) {
    let text =
        json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": n}});
    feed.send(message(&text.to_string())).await;
}

fn data(message: &Value) -> i64 {
    message["params"]["data"].as_i64().expect("a number")
}

/// case-B07: a connection that is dead without saying so holds no new one up; each message comes once, there.
#[tokio::test]
async fn a_dead_get_does_not_hold_up_a_new_one() {
    for revision in ["2025-06-18", "2025-11-25"] {
        let (_server, gateway, client, feed) = talkative(revision).await;
        let mut paused = Raw::connect(gateway.address).await;
        paused
            .send(format!(
                "GET /mcp HTTP/1.1\r\nHost: gw\r\nAccept: text/event-stream\r\nMcp-Session-Id: {}\r\n\r\n",
                client.session()
            ))
            .await;
        assert_eq!(paused.head().await.status, 200);
        if revision == "2025-11-25" {
            paused.chunk().await; // the priming event
        }
        // From here on it reads nothing, and closes nothing.
        let began = std::time::Instant::now();
        let mut new = client.open_get().await;
        assert!(began.elapsed() < Duration::from_millis(500), "{:?}", began.elapsed());
        for n in 1..=3 {
            say(&feed, n).await;
            assert_eq!(data(&new.message().await.expect("a message")), i64::from(n));
        }
        assert!(new.is_silent_for(Duration::from_millis(50)).await, "nothing twice");
        assert!(paused.is_silent_for(Duration::from_millis(50)).await, "nothing elsewhere (T26)");
    }
}

/// An older connection takes over where the newest left off; nothing comes twice, nothing is lost.
#[tokio::test]
async fn an_older_get_takes_over_when_the_newest_goes() {
    let (_server, gateway, client, feed) = talkative("2025-11-25").await;
    let mut older = client.open_get().await;
    older.event().await.expect("primed");
    let mut newer = client.open_get().await;
    newer.event().await.expect("primed");
    say(&feed, 1).await;
    assert_eq!(data(&newer.message().await.expect("a message")), 1);
    drop(newer);
    gateway.until(r#"mcpgate_sse_streams_active{kind="get"}"#, |n| n == 1.0).await;
    say(&feed, 2).await;
    assert_eq!(data(&older.message().await.expect("a message")), 2);
}

/// What comes while no connection is open waits for the next one, by cursor or without.
#[tokio::test]
async fn messages_wait_while_no_get_is_open() {
    let (_server, gateway, client, feed) = talkative("2025-11-25").await;
    let mut get = client.open_get().await;
    get.event().await.expect("primed");
    say(&feed, 1).await;
    assert_eq!(data(&get.message().await.expect("a message")), 1);
    let cursor = get.last_id.clone().expect("an id");
    drop(get);
    gateway.until(r#"mcpgate_sse_streams_active{kind="get"}"#, |n| n == 0.0).await;
    say(&feed, 2).await;
    let mut plain = client.open_get().await;
    assert_eq!(data(&plain.message().await.expect("a message")), 2);
    let mut resumed = client.resume(&cursor).await.stream();
    assert_eq!(data(&resumed.message().await.expect("replayed")), 2);
    say(&feed, 3).await;
    assert_eq!(data(&resumed.message().await.expect("live")), 3);
    assert!(plain.is_silent_for(Duration::from_millis(50)).await, "the older one stands by");
}

/// At most three older connections stay open beside the newest; the one that is one too many ends.
#[tokio::test]
async fn at_most_three_stand_by() {
    let gateway = TestGateway::new().start().await;
    let client = gateway.client("/mcp").initialize("2025-11-25").await;
    let mut gets = Vec::new();
    for _ in 0..4 {
        let mut get = client.open_get().await;
        get.event().await.expect("primed");
        gets.push(get);
    }
    for get in &mut gets {
        assert!(get.is_silent_for(Duration::from_millis(20)).await);
    }
    let mut newest = client.open_get().await;
    newest.event().await.expect("primed");
    assert!(gets.remove(0).event().await.is_none(), "the oldest ends");
    for get in &mut gets {
        assert!(get.is_silent_for(Duration::from_millis(20)).await);
    }
}

/// A change is told once, on the newest connection, however often it was noted.
#[tokio::test]
async fn a_resource_update_is_told_on_one_connection() {
    let (_server, _gateway, client, feed) = talkative("2025-11-25").await;
    let mut older = client.open_get().await;
    older.event().await.expect("primed");
    let mut newer = client.open_get().await;
    newer.event().await.expect("primed");
    let text =
        json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "a:1"}});
    feed.send(message(&text.to_string())).await;
    let told = newer.message().await.expect("a notice");
    assert_eq!((&told["method"], &told["params"]["uri"]), (&text["method"], &json!("a:1")));
    assert!(older.is_silent_for(Duration::from_millis(50)).await);
}
