//! How large a request may be.

use http::StatusCode;
use serde_json::json;

use crate::client::request;
use crate::gateway::{Setup, TestGateway};
use crate::raw::Raw;

const BODY: usize = 64 << 10;

fn small() -> Setup {
    TestGateway::new().with(|s| {
        s.limits.body = BODY;
        s.limits.headers = 4 << 10;
    })
}

/// A ping of exactly so many bytes.
fn ping_of(bytes: usize) -> String {
    let empty = request(1, "ping", json!({"x": ""})).to_string().len();
    request(1, "ping", json!({"x": "x".repeat(bytes - empty)})).to_string()
}

/// A body of exactly the limit is read, one byte more is 413, however its length is told.
#[tokio::test]
async fn a_body_over_the_limit_is_413_and_one_at_it_is_served() {
    let gateway = small().start().await;
    let client = gateway.client("/mcp").initialize("2025-06-18").await;
    let headers = format!("Content-Type: application/json\r\nMcp-Session-Id: {}\r\n", client.session());
    for (bytes, status) in [(BODY, 200), (BODY + 1, 413), (10 * BODY, 413)] {
        let body = ping_of(bytes);
        let mut raw = Raw::connect(gateway.address).await;
        raw.request("POST /mcp", &headers, &body).await;
        let answer = raw.answer().await;
        assert_eq!(answer.status, status, "content-length: {bytes}");
        if status == 413 {
            assert_eq!(answer.json()["error"]["data"]["mcpgate"]["reason"], "body_too_large");
        }
        let mut raw = Raw::connect(gateway.address).await;
        raw.send(format!("POST /mcp HTTP/1.1\r\nHost: gw\r\nTransfer-Encoding: chunked\r\n{headers}\r\n"))
            .await;
        for piece in body.as_bytes().chunks(8 << 10) {
            raw.send([format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat()).await;
        }
        raw.send("0\r\n\r\n").await;
        assert_eq!(raw.answer().await.status, status, "chunked: {bytes}");
    }
    assert_eq!(client.post(&request(2, "ping", json!({}))).await.status, StatusCode::OK);
}

/// The refusal does not wait for the body: not for one that is announced, nor for the end of one that comes.
#[tokio::test]
async fn a_body_over_the_limit_is_refused_before_it_is_whole() {
    let gateway = small().start().await;
    let client = gateway.client("/mcp").initialize("2025-06-18").await;
    let headers = format!("Content-Type: application/json\r\nMcp-Session-Id: {}\r\n", client.session());
    for length in ["100000", "99999999999", "9223372036854775807"] {
        let mut raw = Raw::connect(gateway.address).await;
        raw.send(format!("POST /mcp HTTP/1.1\r\nHost: gw\r\nContent-Length: {length}\r\n{headers}\r\n"))
            .await;
        assert_eq!(raw.answer().await.status, 413, "{length}");
    }
    let mut raw = Raw::connect(gateway.address).await;
    raw.send(format!("POST /mcp HTTP/1.1\r\nHost: gw\r\nTransfer-Encoding: chunked\r\n{headers}\r\n")).await;
    let piece = "x".repeat(BODY + 1);
    raw.send(format!("{:x}\r\n{piece}\r\n", piece.len())).await;
    assert_eq!(raw.answer().await.status, 413, "chunked, and not at its end");
}

/// A client that asks first is told no before it sends anything.
#[tokio::test]
async fn expect_100_continue_is_answered_by_the_refusal() {
    let gateway = small().start().await;
    let client = gateway.client("/mcp").initialize("2025-06-18").await;
    let headers = format!("Content-Type: application/json\r\nMcp-Session-Id: {}\r\n", client.session());
    let ask = |length: usize| {
        format!(
            "POST /mcp HTTP/1.1\r\nHost: gw\r\nExpect: 100-continue\r\nContent-Length: {length}\r\n{headers}\r\n"
        )
    };
    let mut raw = Raw::connect(gateway.address).await;
    raw.send(ask(BODY + 1)).await;
    assert_eq!(raw.answer().await.status, 413);
    let mut raw = Raw::connect(gateway.address).await;
    let body = ping_of(100);
    raw.send(ask(body.len())).await;
    assert_eq!(raw.head().await.status, 100);
    raw.send(body).await;
    assert_eq!(raw.answer().await.status, 200);
}

/// Headers over the limit are 431; over twice that, hyper says so without a body.
#[tokio::test]
async fn headers_over_the_limit_are_431() {
    let gateway = small().start().await;
    for (bytes, json) in [(5 << 10, true), (200 << 10, false)] {
        for shape in ["one", "many"] {
            let headers = match shape {
                "one" => format!("X-Long: {}\r\n", "x".repeat(bytes)),
                _ => format!("X-Long: {}\r\n", "x".repeat(90)).repeat(bytes / 100),
            };
            let mut raw = Raw::connect(gateway.address).await;
            let head = format!("GET /mcp HTTP/1.1\r\nHost: gw\r\n{headers}\r\n");
            // The gateway may say no, and go, before it has seen all.
            let _ = tokio::io::AsyncWriteExt::write_all(&mut raw.socket, head.as_bytes()).await;
            let answer = raw.answer().await;
            assert_eq!(answer.status, 431, "{bytes} {shape}");
            if json {
                assert_eq!(
                    answer.json()["error"]["data"]["mcpgate"]["reason"],
                    "headers_too_large",
                    "{shape}"
                );
                assert!(answer.header("x-request-id").is_some());
            }
        }
    }
}

/// A target longer than any of ours is refused and not repeated.
#[tokio::test]
async fn an_endless_target_is_refused() {
    let gateway = small().start().await;
    for (length, statuses) in [(3000, &[404][..]), (60_000, &[404, 414, 431]), (300_000, &[414, 431, 400])] {
        let mut raw = Raw::connect(gateway.address).await;
        let head = format!("GET /{} HTTP/1.1\r\nHost: gw\r\n\r\n", "x".repeat(length));
        let _ = tokio::io::AsyncWriteExt::write_all(&mut raw.socket, head.as_bytes()).await;
        let answer = raw.answer().await;
        assert!(statuses.contains(&answer.status), "{length}: {}", answer.status);
        assert!(answer.body.len() < 1024);
    }
}

/// A body that breaks off leaves nothing behind but its own connection.
#[tokio::test]
async fn a_body_that_breaks_off_harms_nobody() {
    let gateway = small().start().await;
    let client = gateway.client("/mcp").initialize("2025-06-18").await;
    let headers = format!("Content-Type: application/json\r\nMcp-Session-Id: {}\r\n", client.session());
    for _ in 0..10 {
        let mut raw = Raw::connect(gateway.address).await;
        raw.send(format!("POST /mcp HTTP/1.1\r\nHost: gw\r\nContent-Length: 100\r\n{headers}\r\n{{\"json"))
            .await;
    }
    for framing in [
        "Content-Length: -1",
        "Content-Length: 1, 2",
        "Content-Length: x",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
    ] {
        let mut raw = Raw::connect(gateway.address).await;
        raw.send(format!(
            "POST /mcp HTTP/1.1\r\nHost: gw\r\n{framing}\r\n{headers}\r\n5\r\nhello\r\n0\r\n\r\n"
        ))
        .await;
        let status = raw.head().await.status;
        assert_eq!(status, 400, "{framing}");
    }
    assert_eq!(client.post(&request(2, "ping", json!({}))).await.status, StatusCode::OK);
}
