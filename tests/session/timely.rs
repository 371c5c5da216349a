//! Bytes leave when they come: heads at once, events as they are written, comments when there is nothing else.

use std::time::{Duration, Instant};

use http::StatusCode;
use serde_json::json;

use crate::client::{request, tool};
use crate::gateway::TestGateway;
use crate::http_server::{Answer, Feed, HttpServer, Seen, http, message, result, rpc};
use crate::raw::Raw;

/// case-B01: each event is at the caller when the server wrote it, while the call goes on.
#[tokio::test]
async fn events_are_flushed_as_they_come() {
    let server = HttpServer::start().await;
    let (feed, answer) = Answer::fed();
    server.on(rpc("tools/call"), answer);
    let gateway = TestGateway::new()
        .http("u1", server.url())
        .with(|s| s.streams.grace = Duration::from_secs(3600))
        .start()
        .await;
    let client = gateway.client("/mcp").initialize("2025-06-18").await;
    let call = request(1, "tools/call", tool("mcp_u1_echo", json!({})));
    let (answer, ()) = tokio::join!(client.post(&call), async {
        server.await_request(rpc("tools/call")).await;
        feed.send(message(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"n":0}}"#)).await;
    });
    let mut stream = answer.stream();
    assert_eq!(stream.message().await.expect("an event")["params"]["n"], 0);
    for n in 1..20 {
        let text = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"n": n}});
        let began = Instant::now();
        feed.send(message(&text.to_string())).await;
        assert_eq!(stream.message().await.expect("an event")["params"]["n"], n);
        assert!(began.elapsed() < Duration::from_millis(300), "{:?}", began.elapsed());
    }
    feed.send(result(r#"{"content":[]}"#)).await;
    drop(feed);
    let rest = stream.rest().await;
    assert_eq!((rest.len(), &rest[0]["id"]), (1, &json!(1)));
}

/// case-B01: progress that a server puts on its standalone stream, or on the stream of another call, is at the caller
/// at once, too.
#[tokio::test]
async fn progress_on_another_stream_is_flushed_as_it_comes() {
    let server = HttpServer::start().await;
    let (get, standalone) = Answer::fed();
    let (_own, silent) = Answer::fed();
    let (other, another) = Answer::fed();
    let mine = |seen: &Seen| seen.is("tools/call") && !seen.text().contains("other");
    let others = |seen: &Seen| seen.is("tools/call") && seen.text().contains("other");
    server.on(http(http::Method::GET), standalone);
    server.on(mine, silent);
    server.on(others, another);
    let gateway = TestGateway::new()
        .http("u1", server.url())
        .with(|s| {
            s.streams.grace = Duration::from_secs(3600);
            s.streams.keep_alive = Duration::from_secs(3600);
        })
        .start()
        .await;
    let client = gateway.client("/mcp").initialize("2025-06-18").await;
    let mut arguments = tool("mcp_u1_echo", json!({}));
    arguments["_meta"] = json!({"progressToken": "mine"});
    let call = request(1, "tools/call", arguments);
    let beside = request(2, "tools/call", tool("mcp_u1_echo", json!({"other": true})));
    let progress = async |feed: &Feed, n: i32| {
        let called = server.await_request(mine).await;
        let token = &called.json()["params"]["_meta"]["progressToken"];
        let params = json!({"progressToken": token, "progress": n});
        let text = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
        feed.send(message(&text.to_string())).await;
    };
    let (answer, ()) = tokio::join!(client.post(&call), progress(&get, 0));
    let mut stream = answer.stream();
    assert_eq!(stream.message().await.expect("progress")["params"]["progress"], 0);
    let fed = async {
        server.await_request(others).await;
        for n in 1..10 {
            progress(if n % 2 == 0 { &get } else { &other }, n).await;
            assert_eq!(stream.message().await.expect("progress")["params"]["progress"], n);
        }
    };
    tokio::select! {
        answer = client.post(&beside) => panic!("the other call is answered: {}", answer.status),
        () = fed => {}
    }
}

/// case-B02: a GET has its head at once and stays open, whether or not a server ever hears of it.
#[tokio::test]
async fn a_get_is_answered_at_once_and_stays_open_on_comments() {
    let server = HttpServer::start().await;
    let keep_alive = Duration::from_millis(25);
    let gateway = TestGateway::new()
        .http("u1", server.url())
        .with(|s| {
            s.streams.keep_alive = keep_alive;
            s.limits.header_read = Duration::from_millis(100);
            s.limits.body_read = Duration::from_millis(100);
        })
        .start()
        .await;
    for revision in ["2025-03-26", "2025-11-25"] {
        let client = gateway.client("/mcp").initialize(revision).await;
        let mut raw = Raw::connect(gateway.address).await;
        let began = Instant::now();
        raw.send(format!(
            "GET /mcp HTTP/1.1\r\nHost: gw\r\nAccept: text/event-stream\r\nMcp-Session-Id: {}\r\n\r\n",
            client.session()
        ))
        .await;
        let head = raw.head().await;
        assert!(began.elapsed() < Duration::from_millis(500), "{:?}", began.elapsed());
        assert_eq!(head.status, 200);
        assert_eq!(head.header("content-type"), Some("text/event-stream"));
        assert_eq!(head.header("cache-control"), Some("no-cache, no-transform"));
        assert_eq!(head.header("x-accel-buffering"), Some("no"));
        assert_eq!(head.header("content-encoding"), None);
        let mut comments = 0;
        while comments < 20 {
            let chunk = raw.chunk().await;
            assert!(!chunk.is_empty(), "it ended after {comments} comments");
            comments += chunk.matches(": keep-alive").count();
        }
        assert!(began.elapsed() >= 15 * keep_alive, "comments come as often as they should");
    }
    assert_eq!(server.count(|_| true), 0, "opening a GET opens no link");
}

/// case-B02: the same for the stream of a call that takes its time.
#[tokio::test]
async fn a_silent_call_stays_open_on_comments() {
    let server = HttpServer::start().await;
    let (feed, answer) = Answer::fed();
    server.on(rpc("tools/call"), answer);
    let gateway = TestGateway::new()
        .http("u1", server.url())
        .with(|s| {
            s.streams.keep_alive = Duration::from_millis(20);
            s.streams.grace = Duration::from_millis(10);
        })
        .start()
        .await;
    let client = gateway.client("/mcp").initialize("2025-06-18").await;
    let mut raw = Raw::connect(gateway.address).await;
    let headers = format!("Content-Type: application/json\r\nMcp-Session-Id: {}\r\n", client.session());
    let call = request(1, "tools/call", tool("mcp_u1_echo", json!({}))).to_string();
    raw.request("POST /mcp", &headers, &call).await;
    assert_eq!(raw.head().await.status, 200);
    for _ in 0..10 {
        assert_eq!(raw.chunk().await, ": keep-alive\n\n");
    }
    feed.send(result("{}")).await;
    drop(feed);
    let mut rest = String::new();
    loop {
        let chunk = raw.chunk().await;
        if chunk.is_empty() {
            break;
        }
        rest.push_str(&chunk);
    }
    assert!(rest.contains(r#""result":{}"#), "{rest}");
}

/// A result within the grace is plain JSON; one that comes later, on a stream.
#[tokio::test]
async fn the_grace_decides_between_json_and_a_stream() {
    let gateway = TestGateway::new()
        .stdio("u1", &[])
        .with(|s| s.streams.grace = Duration::from_millis(400))
        .start()
        .await;
    let client = gateway.client("/mcp").initialize("2025-06-18").await;
    let call = |ms: u64| request(1, "tools/call", tool("mcp_u1_sleep", json!({"ms": ms})));
    client.post(&call(0)).await.response().await; // the child has started
    let quick = client.post(&call(1)).await;
    assert_eq!((quick.status, quick.is_stream()), (StatusCode::OK, false));
    let slow = client.post(&call(600)).await;
    assert!(slow.is_stream());
    let messages = slow.stream().rest().await;
    assert_eq!((messages.len(), &messages[0]["id"]), (1, &json!(1)));
}

/// What comes before the result turns the answer into a stream at once, however long the grace is; so does a
/// question of the server.
#[tokio::test]
async fn a_question_turns_the_answer_into_a_stream() {
    let gateway = TestGateway::new()
        .stdio("u1", &[])
        .with(|s| s.streams.grace = Duration::from_secs(3600))
        .start()
        .await;
    let client = gateway.client("/mcp").initialize_with("2025-06-18", json!({"roots": {}})).await;
    let call = tool("mcp_u1_ask", json!({"method": "roots/list", "params": {}}));
    let mut stream = client.post(&request(1, "tools/call", call)).await.stream();
    let question = stream.message().await.expect("a question");
    assert_eq!(question["method"], "roots/list");
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}});
    assert_eq!(client.post(&answer).await.status, StatusCode::ACCEPTED);
    let rest = stream.rest().await;
    assert_eq!((rest.len(), &rest[0]["id"]), (1, &json!(1)));
    assert!(rest[0]["result"].to_string().contains("roots"), "{}", rest[0]);
}

/// The head of a GET waits for nothing even if the server never answers its own.
#[tokio::test]
async fn a_server_that_hangs_holds_no_get_up() {
    let server = HttpServer::start().await;
    let gate = crate::http_server::Gate::new();
    server.on(http(http::Method::GET), Answer::status(405).after(&gate));
    server.on(rpc("tools/list"), Answer::result(r#"{"tools":[]}"#).after(&gate));
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = gateway.client("/mcp").initialize("2025-11-25").await;
    let began = Instant::now();
    let mut get = client.open_get().await;
    assert!(get.event().await.is_some());
    assert!(began.elapsed() < Duration::from_millis(500), "{:?}", began.elapsed());
}
