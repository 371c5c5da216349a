//! Callers that come back for what they missed.

use std::collections::BTreeSet;
use std::time::Duration;

use http::StatusCode;
use serde_json::{Value, json};

use crate::client::{Stream, request, tool};
use crate::credentials::api_key;
use crate::gateway::{Setup, TestGateway};
use crate::http_server::{Answer, Feed, Gate, HttpServer, message, result, rpc};

fn eager() -> Setup {
    TestGateway::new().with(|s| s.streams.grace = Duration::ZERO)
}

fn note(n: usize) -> crate::http_server::Step {
    message(&json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"n": n}}).to_string())
}

fn numbers(messages: &[Value]) -> Vec<i64> {
    messages.iter().map(|m| m["params"]["n"].as_i64().unwrap_or(-1)).collect()
}

/// Calls a server that answers as the test feeds it; gives the stream after the first event.
async fn fed_call(
    server: &HttpServer,
    client: &crate::client::Client,
    id: i32,
    first: usize,
) -> (Feed, Stream) {
    let (feed, answer) = Answer::fed();
    server.once(rpc("tools/call"), answer);
    let mut stream = client.post(&request(id, "tools/call", tool("mcp_u1_echo", json!({})))).await.stream();
    feed.send(note(first)).await;
    assert_eq!(stream.message().await.expect("an event")["params"]["n"], first);
    (feed, stream)
}

/// case-B05: what is replayed is the rest of that stream, each event once and in order, and nothing of another;
/// then it goes on live.
#[tokio::test]
async fn a_resume_gives_the_rest_of_its_own_stream_only() {
    let server = HttpServer::start().await;
    let gateway = eager().http("u1", server.url()).start().await;
    let client = gateway.client("/mcp").initialize("2025-11-25").await;
    let (feed1, stream1) = fed_call(&server, &client, 1, 10).await;
    let (feed2, stream2) = fed_call(&server, &client, 2, 20).await;
    let cursors = [stream1.last_id.clone().expect("an id"), stream2.last_id.clone().expect("an id")];
    drop((stream1, stream2));
    gateway.until(r#"mcpgate_sse_streams_active{kind="post"}"#, |n| n == 0.0).await;
    feed1.send(note(11)).await;
    feed2.send(note(21)).await;
    feed1.send(note(12)).await;
    feed2.send(result("{}")).await;
    drop(feed2);
    let mut resumed = client.resume(&cursors[0]).await.stream();
    let missed = [resumed.message().await.expect("missed"), resumed.message().await.expect("missed")];
    assert_eq!(numbers(&missed), [11, 12]);
    feed1.send(note(13)).await;
    feed1.send(result("{}")).await;
    drop(feed1);
    let live = resumed.rest().await;
    assert_eq!((numbers(&live), &live[1]["id"]), (vec![13, -1], &json!(1)));
    let rest = client.resume(&cursors[1]).await.stream().rest().await;
    assert_eq!((numbers(&rest), &rest[1]["id"]), (vec![21, -1], &json!(2)));
}

/// case-B05: resuming again from the same place gives the same again; from a later one, less.
#[tokio::test]
async fn a_stream_can_be_resumed_from_any_of_its_events() {
    let server = HttpServer::start().await;
    let gateway = eager().http("u1", server.url()).start().await;
    let client = gateway.client("/mcp").initialize("2025-11-25").await;
    let (feed, mut stream) = fed_call(&server, &client, 1, 1).await;
    feed.send(note(2)).await;
    feed.send(result("{}")).await;
    drop(feed);
    let first = stream.last_id.clone().expect("an id");
    assert_eq!(numbers(&[stream.message().await.expect("an event")]), [2]);
    let second = stream.last_id.clone().expect("an id");
    let whole = stream.rest().await;
    assert_eq!(numbers(&whole), [-1]);
    for _ in 0..2 {
        assert_eq!(numbers(&client.resume(&first).await.stream().rest().await), [2, -1]);
        assert_eq!(numbers(&client.resume(&second).await.stream().rest().await), [-1]);
    }
}

/// case-B05, case-B09: an id that was never given out replays nothing and is 400, never 404 (which would end the
/// session at the caller).
#[tokio::test]
async fn an_unknown_event_id_is_400_and_replays_nothing() {
    let server = HttpServer::start().await;
    let gateway = eager().http("u1", server.url()).start().await;
    let client = gateway.client("/mcp").initialize("2025-11-25").await;
    let (_feed, stream) = fed_call(&server, &client, 1, 1).await;
    let real = stream.last_id.clone().expect("an id");
    drop(stream);
    let (stream_part, place) = real.rsplit_once('-').expect("stream-place");
    let later = format!("{stream_part}-{}", place.parse::<u64>().expect("a number") + 1);
    let other_epoch = format!("9{real}");
    for id in [
        later.as_str(),
        &other_epoch,
        "1.999-0",
        "2.1-0",
        "0",
        "abc",
        "1.1",
        "1.1-",
        "-1",
        "1.1-18446744073709551616",
        "4294967296.1-0",
        " ",
        "\"1.1-0\"",
        "1.1-0, 1.1-0",
    ] {
        let answer = client.resume(id).await;
        let expected = if id.trim().is_empty() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
        assert_eq!(answer.status, expected, "{id:?}");
    }
    let twice = client.clone().header("last-event-id", &real).also("last-event-id", &real);
    assert_eq!(twice.send(http::Method::GET, "").await.status, StatusCode::BAD_REQUEST);
    assert_eq!(client.call(2, "ping", json!({})).await["result"], json!({}), "the session goes on");
}

/// case-B09: no id is given twice over all streams of a session.
#[tokio::test]
async fn event_ids_are_unique_over_the_streams_of_a_session() {
    let server = HttpServer::start().await;
    let gateway = eager().http("u1", server.url()).start().await;
    let client = gateway.client("/mcp").initialize("2025-11-25").await;
    let mut ids = Vec::new();
    let mut get = client.open_get().await;
    ids.extend(get.event().await.and_then(|e| e.id));
    for id in 1..=3 {
        let (feed, answer) = Answer::fed();
        server.once(rpc("tools/call"), answer);
        let mut stream =
            client.post(&request(id, "tools/call", tool("mcp_u1_echo", json!({})))).await.stream();
        feed.send(note(1)).await;
        feed.send(note(2)).await;
        feed.send(result("{}")).await;
        drop(feed);
        while let Some(event) = stream.event().await {
            ids.push(event.id.expect("every event has one"));
        }
    }
    assert_eq!(ids.len(), 1 + 3 * 4);
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{ids:?}");
}

/// T21: streams of 2025-11-25 begin with a priming event; earlier ones never have one.
#[tokio::test]
async fn only_the_newest_revision_is_primed() {
    let gateway = TestGateway::new().with(|s| s.streams.retry = Duration::from_millis(1234)).start().await;
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let client = gateway.client("/mcp").initialize(revision).await.header("accept", "text/event-stream");
        let mut stream = client.post(&request(1, "ping", json!({}))).await.stream();
        let first = stream.event().await.expect("an event");
        let primed = revision == "2025-11-25";
        assert_eq!(first.data.is_empty(), primed, "{revision}");
        assert_eq!(first.retry, primed.then_some(Duration::from_millis(1234)), "{revision}");
        assert!(first.id.is_some(), "{revision}");
        let rest = stream.rest().await;
        assert_eq!(rest.len(), usize::from(primed), "{revision}");
        let mut get = client.open_get().await;
        if primed {
            let first = get.event().await.expect("an event");
            assert!(first.id.is_some() && first.data.is_empty());
        } else {
            assert!(get.is_silent_for(Duration::from_millis(50)).await, "{revision}");
        }
    }
}

/// T24: the caller left, the call went on; its result waits, and once it is read the stream is over: 204.
#[tokio::test]
async fn the_result_waits_for_a_caller_that_left() {
    let (server, gate) = (HttpServer::start().await, Gate::new());
    server
        .on(rpc("tools/call"), Answer::result(r#"{"content":[{"type":"text","text":"done"}]}"#).after(&gate));
    let gateway = eager().http("u1", server.url()).start().await;
    let client = gateway.client("/mcp").initialize("2025-11-25").await;
    let mut stream = client.post(&request("r", "tools/call", tool("mcp_u1_echo", json!({})))).await.stream();
    let primed = stream.event().await.and_then(|e| e.id).expect("a priming event");
    drop(stream);
    gateway.until(r#"mcpgate_sse_streams_active{kind="post"}"#, |n| n == 0.0).await;
    gate.open();
    let mut resumed = client.resume(&primed).await.stream();
    let response = resumed.message().await.expect("the response");
    assert_eq!((&response["id"], &response["result"]["content"][0]["text"]), (&json!("r"), &json!("done")));
    let last = resumed.last_id.clone().expect("an id");
    assert!(resumed.event().await.is_none(), "the stream ends behind its response");
    assert_eq!(server.count(rpc("tools/call")), 1, "case-H13: it ran once");
    for _ in 0..2 {
        let over = client.resume(&last).await;
        assert_eq!(over.status, StatusCode::NO_CONTENT);
        assert_eq!(over.text().await, "");
    }
}

/// Once the retention is over, a stream is unknown: 400.
#[tokio::test]
async fn a_stream_is_forgotten_after_its_retention() {
    let gateway = eager().with(|s| s.streams.retention = Duration::from_millis(80)).start().await;
    let client = gateway.client("/mcp").initialize("2025-11-25").await.header("accept", "text/event-stream");
    let mut stream = client.post(&request(1, "ping", json!({}))).await.stream();
    let primed = stream.event().await.and_then(|e| e.id).expect("a priming event");
    drop(stream.rest().await);
    let forgotten = async {
        while client.resume(&primed).await.status != StatusCode::BAD_REQUEST {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(crate::client::SOON, forgotten).await.expect("it is forgotten");
    assert_eq!(client.call(2, "ping", json!({})).await["result"], json!({}));
}

/// Two connections to one POST stream: the older ends at once and is not told to come back.
#[tokio::test]
async fn an_older_reader_is_ended_without_retry() {
    let server = HttpServer::start().await;
    let gateway = eager().http("u1", server.url()).start().await;
    let client = gateway.client("/mcp").initialize("2025-11-25").await;
    let (feed, mut older) = fed_call(&server, &client, 1, 1).await;
    let cursor = older.last_id.clone().expect("an id");
    let mut newer = client.resume(&cursor).await.stream();
    assert!(older.event().await.is_none(), "no retry, no message, the end");
    feed.send(note(2)).await;
    assert_eq!(numbers(&[newer.message().await.expect("an event")]), [2]);
}

/// The credential that opened a stream ends: so does the connection, with `retry:`; with a fresh one the caller
/// goes on where it was.
#[tokio::test]
async fn a_stream_ends_with_the_credential_that_opened_it() {
    let mut short = api_key("ann", "short-key");
    short.expires = Some(std::time::SystemTime::now() + Duration::from_millis(1500));
    let keys = vec![short, api_key("ann", "long-key")];
    let server = HttpServer::start().await;
    let gateway = eager().http("u1", server.url()).with(|s| s.auth.api_keys = keys).start().await;
    let client = gateway.client("/mcp").header("x-api-key", "short-key").initialize("2025-11-25").await;
    let (feed, mut post) = fed_call(&server, &client, 1, 1).await;
    let mut get = client.open_get().await;
    assert!(get.event().await.is_some(), "primed");
    let cursor = post.last_id.clone().expect("an id");
    for stream in [&mut get, &mut post] {
        let last = stream.event().await.expect("a last event");
        assert_eq!((last.retry, last.data.len()), (Some(Duration::from_millis(50)), 0));
        assert!(stream.event().await.is_none());
    }
    assert_eq!(client.resume(&cursor).await.status, StatusCode::UNAUTHORIZED);
    let fresh = client.clone().header("x-api-key", "long-key");
    feed.send(result("{}")).await;
    assert_eq!(fresh.resume(&cursor).await.response().await["id"], 1);
}
