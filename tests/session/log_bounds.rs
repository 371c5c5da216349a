//! What a full log loses first, and what it never loses in silence.

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{Client, request, tool};
use crate::gateway::{Setup, TestGateway};
use crate::http_server::{Answer, HttpServer, Step, message, result, rpc};

fn eager() -> Setup {
    TestGateway::new().with(|s| s.streams.grace = Duration::ZERO)
}

/// Starts a call, leaves, and waits until the server has said all of `steps`; gives the cursor to come back with.
async fn leave(
    server: &HttpServer,
    gateway: &TestGateway,
    client: &Client,
    id: i32,
    steps: Vec<Step>,
) -> String {
    let (feed, answer) = Answer::fed();
    server.once(rpc("tools/call"), answer);
    let before = server.count(rpc("tools/call"));
    let call = json!({"name": "mcp_u1_echo", "arguments": {}, "_meta": {"progressToken": "p"}});
    let mut stream = client.post(&request(id, "tools/call", call)).await.stream();
    let cursor = stream.event().await.and_then(|e| e.id).expect("a priming event").into_string();
    drop(stream);
    gateway.until(r#"mcpgate_sse_streams_active{kind="post"}"#, |n| n == 0.0).await;
    let seen = server.await_requests(before + 1, rpc("tools/call")).await.pop().expect("the call");
    let token = seen.json()["params"]["_meta"]["progressToken"].to_string();
    for step in steps {
        let step = match step {
            Step::Raw(bytes) => {
                crate::http_server::raw(String::from_utf8_lossy(&bytes).replace("$TOKEN", &token))
            }
            step => step,
        };
        feed.send(step).await;
    }
    drop(feed);
    // The call has ended, so its response is in the log or was lost from it.
    let ended = |count| count == f64::from(u32::try_from(before + 1).expect("few"));
    gateway.until(r#"mcpgate_call_duration_seconds_count{server="u1"}"#, ended).await;
    cursor
}

fn progress(n: usize) -> Step {
    message(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":$TOKEN,"progress":{n}}}}}"#
    ))
}

fn note(n: usize) -> Step {
    message(&json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"n": n}}).to_string())
}

async fn replayed(client: &Client, cursor: &str) -> Vec<Value> {
    let answer = client.resume(cursor).await;
    answer.stream().rest().await
}

/// Superseded progress goes first, then other notifications; the response stays.
#[tokio::test]
async fn superseded_progress_goes_first_then_notifications() {
    let server = HttpServer::start().await;
    let gateway = eager().http("u1", server.url()).with(|s| s.streams.max_events = 10).start().await;
    let client = gateway.client("/mcp").initialize("2025-11-25").await;
    let mut steps = vec![note(1)];
    steps.extend((1..=15).map(progress));
    steps.push(note(2));
    steps.push(result(r#"{"done":true}"#));
    let cursor = leave(&server, &gateway, &client, 1, steps).await;
    let messages = replayed(&client, &cursor).await;
    let notes: Vec<&Value> = messages.iter().filter(|m| m["method"] == "notifications/message").collect();
    assert_eq!(notes.len(), 2, "both notes outlive progress that is superseded");
    let newest = messages.iter().rev().find(|m| m["method"] == "notifications/progress");
    assert_eq!(newest.expect("the newest progress")["params"]["progress"], 15);
    assert_eq!(messages.last().expect("a response")["result"], json!({"done": true}));
    assert!(messages.len() <= 10, "{} events", messages.len());

    let steps = (1..=30).map(note).chain([result("{}")]).collect();
    let cursor = leave(&server, &gateway, &client, 2, steps).await;
    let messages = replayed(&client, &cursor).await;
    assert!(messages.len() <= 10, "{} events", messages.len());
    assert_eq!(messages.last().expect("a response")["id"], 2);
    assert_eq!(messages[messages.len() - 2]["params"]["n"], 30, "the newest notifications stay");
}

/// Promise 2: a response that had to go is an error with the call's id, not silence.
#[tokio::test]
async fn a_response_that_was_lost_is_said_to_be() {
    let server = HttpServer::start().await;
    let gateway = eager().http("u1", server.url()).with(|s| s.streams.max_bytes = 4 << 10).start().await;
    let client = gateway.client("/mcp").initialize("2025-11-25").await;
    let large = format!(r#"{{"text":"{}"}}"#, "x".repeat(20 << 10));
    let cursor = leave(&server, &gateway, &client, 7, vec![note(1), result(&large)]).await;
    let messages = replayed(&client, &cursor).await;
    let last = messages.last().expect("an answer");
    assert_eq!((&last["id"], &last["error"]["code"]), (&json!(7), &json!(-32603)));
    assert_eq!(last["error"]["data"]["mcpgate"]["reason"], "response_lost");
}

/// A caller that is there gets its response however small the log is.
#[tokio::test]
async fn a_small_log_takes_nothing_from_a_caller_that_reads() {
    let server = HttpServer::start().await;
    let large = format!(r#"{{"text":"{}"}}"#, "x".repeat(100 << 10));
    server.on(rpc("tools/call"), Answer::events([result(&large)]));
    let gateway = eager()
        .http("u1", server.url())
        .with(|s| {
            s.streams.max_bytes = 4 << 10;
            s.streams.max_total = 4 << 10;
        })
        .start()
        .await;
    for revision in ["2025-06-18", "2025-11-25"] {
        let client = gateway.client("/mcp").initialize(revision).await;
        for id in 1..=5 {
            let response = client.call(id, "tools/call", tool("mcp_u1_echo", json!({}))).await;
            assert_eq!(response["result"]["text"].as_str().map(str::len), Some(100 << 10), "{response}");
        }
    }
}

/// Promise 1: the process's bound is felt by who fills it, not by who uses little.
#[tokio::test]
async fn a_session_that_fills_the_process_loses_its_own() {
    let server = HttpServer::start().await;
    let gateway = eager()
        .http("u1", server.url())
        .with(|s| {
            s.streams.max_total = 100 << 10;
            s.streams.max_event = 1 << 10;
        })
        .start()
        .await;
    let hog = gateway.client("/mcp").initialize("2025-11-25").await;
    let modest = gateway.client("/mcp").initialize("2025-11-25").await;
    let kept =
        leave(&server, &gateway, &modest, 1, vec![result(&format!(r#"{{"t":"{}"}}"#, "m".repeat(5 << 10)))])
            .await;
    let large = format!(r#"{{"t":"{}"}}"#, "h".repeat(40 << 10));
    let mut cursors = Vec::new();
    for id in 1..=5 {
        cursors.push(leave(&server, &gateway, &hog, id, vec![result(&large)]).await);
    }
    let mut lost = 0;
    for cursor in &cursors {
        let messages = replayed(&hog, cursor).await;
        lost += usize::from(messages.last().expect("an answer").get("error").is_some());
    }
    assert!((1..5).contains(&lost), "some of the hog's are lost, {lost}");
    let messages = replayed(&modest, &kept).await;
    assert!(messages.last().expect("an answer").get("result").is_some(), "nothing of the other's");
}
