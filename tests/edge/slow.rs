//! Callers that take their time, and those that lie idle.

use std::time::Duration;

use serde_json::json;

use crate::client::{init, request};
use crate::gateway::{Setup, TestGateway};
use crate::raw::Raw;

const LIMIT: Duration = Duration::from_millis(200);

fn strict() -> Setup {
    TestGateway::new().with(|s| {
        s.limits.header_read = LIMIT;
        s.limits.body_read = LIMIT;
    })
}

/// A head that never ends costs its connection, whatever of it came, and also byte by byte.
#[tokio::test]
async fn a_head_that_takes_too_long_costs_its_connection() {
    let gateway = strict().start().await;
    for begin in [
        "",
        "P",
        "PRI * HTTP/2.0\r\n",
        "POST /mcp HT",
        "POST /mcp HTTP/1.1\r\nHost: gw\r\n",
        "POST /mcp HTTP/1.1\r\nHost: gw\r\nX-A: b",
    ] {
        let mut raw = Raw::connect(gateway.address).await;
        let began = std::time::Instant::now();
        raw.send(begin).await;
        assert_eq!(raw.end().await, "", "{begin:?}");
        assert!(
            began.elapsed() >= LIMIT / 2 && began.elapsed() < 20 * LIMIT,
            "{begin:?}: {:?}",
            began.elapsed()
        );
    }
    let mut raw = Raw::connect(gateway.address).await;
    raw.send("GET /mcp HTTP/1.1\r\n").await;
    let drip = async {
        loop {
            tokio::time::sleep(LIMIT / 20).await;
            if tokio::io::AsyncWriteExt::write_all(&mut raw.socket, b"X-A: b\r\n").await.is_err() {
                return;
            }
        }
    };
    tokio::time::timeout(crate::client::SOON, drip).await.expect("drops do not put it off");
}

/// A caller that closes before it has said which protocol it speaks is let go at once, not when its time is up.
#[tokio::test]
async fn a_preface_that_breaks_off_ends_at_once() {
    let gateway = TestGateway::new().start().await;
    for begin in ["P", "PRI * HTTP/2.0\r\n"] {
        let mut raw = Raw::connect(gateway.address).await;
        raw.send(begin).await;
        tokio::io::AsyncWriteExt::shutdown(&mut raw.socket).await.expect("an end");
        let ended = tokio::time::timeout(Duration::from_secs(5), raw.end()).await;
        assert_eq!(ended.expect("it ends"), "", "{begin:?}");
    }
}

/// The next head of a connection that was used has the same time, from its first byte on.
#[tokio::test]
async fn a_second_head_has_its_time_too() {
    let gateway = strict().start().await;
    let mut raw = Raw::connect(gateway.address).await;
    raw.request(
        "POST /mcp",
        "Content-Type: application/json\r\n",
        &init("2025-06-18", json!({})).to_string(),
    )
    .await;
    assert_eq!(raw.answer().await.status, 200);
    raw.send("POST /mcp HTTP/1.1\r\nHost: gw\r\n").await;
    assert_eq!(raw.end().await, "");
}

/// case-J09: between two requests a connection may lie idle for longer than a head may take.
#[tokio::test]
async fn an_idle_connection_is_kept() {
    let gateway = strict().start().await;
    let client = gateway.client("/mcp").initialize("2025-06-18").await;
    let headers = format!("Content-Type: application/json\r\nMcp-Session-Id: {}\r\n", client.session());
    let mut raw = Raw::connect(gateway.address).await;
    for _ in 0..3 {
        raw.request("POST /mcp", &headers, &request(1, "ping", json!({})).to_string()).await;
        assert_eq!(raw.answer().await.status, 200);
        assert!(raw.is_silent_for(3 * LIMIT).await, "no end");
    }
}

/// A body that does not come is 408 with the reason.
#[tokio::test]
async fn a_body_that_takes_too_long_is_408() {
    let gateway = strict().start().await;
    let client = gateway.client("/mcp").initialize("2025-06-18").await;
    let headers = format!("Content-Type: application/json\r\nMcp-Session-Id: {}\r\n", client.session());
    for begin in ["", "{\"jsonrpc\""] {
        let mut raw = Raw::connect(gateway.address).await;
        raw.send(format!("POST /mcp HTTP/1.1\r\nHost: gw\r\nContent-Length: 100\r\n{headers}\r\n{begin}"))
            .await;
        let answer = raw.answer().await;
        assert_eq!(answer.status, 408, "{begin:?}");
        assert_eq!(answer.json()["error"]["data"]["mcpgate"]["reason"], "body_too_slow");
    }
    assert_eq!(client.call(1, "ping", json!({})).await["result"], json!({}));
}

/// A slow answer is not a slow head: a call may take longer than either limit.
#[tokio::test]
async fn a_slow_answer_is_no_fault_of_the_caller() {
    let gateway = strict().stdio("u1", &[]).start().await;
    let client = gateway.client("/mcp").initialize("2025-06-18").await;
    for accept in ["application/json", "text/event-stream"] {
        let client = client.clone().header("accept", accept);
        let arguments = json!({"name": "mcp_u1_sleep", "arguments": {"ms": 800}});
        assert!(client.call(1, "tools/call", arguments).await.get("result").is_some(), "{accept}");
    }
}

/// Connections over the cap wait, and are served as places become free; none is refused.
#[tokio::test]
async fn connections_over_the_cap_wait_their_turn() {
    let gateway = TestGateway::new().with(|s| s.limits.connections = 2).start().await;
    let body = init("2025-06-18", json!({})).to_string();
    let mut first = Raw::connect(gateway.address).await;
    let mut second = Raw::connect(gateway.address).await;
    for raw in [&mut first, &mut second] {
        raw.request("POST /mcp", "Content-Type: application/json\r\n", &body).await;
        assert_eq!(raw.answer().await.status, 200);
    }
    let mut third = Raw::connect(gateway.address).await;
    third.request("POST /mcp", "Content-Type: application/json\r\n", &body).await;
    assert!(third.is_silent_for(Duration::from_millis(100)).await, "it waits");
    drop(first);
    assert_eq!(third.answer().await.status, 200);
}

/// A stop is heard also while every place is taken.
#[tokio::test]
async fn a_stop_is_heard_at_the_cap() {
    let gateway = TestGateway::new().with(|s| s.limits.connections = 1).start().await;
    let mut raw = Raw::connect(gateway.address).await;
    raw.request("GET /mcp", "", "").await;
    assert_eq!(raw.answer().await.status, 400);
    let _waiting = Raw::connect(gateway.address).await;
    gateway.stopped().await;
}
