//! Callers that stop reading.

use std::time::Duration;

use serde_json::json;
use tokio::net::TcpSocket;

use crate::client::{request, tool};
use crate::gateway::TestGateway;
use crate::http_server::{Answer, HttpServer, message, result, rpc};
use crate::raw::Raw;

/// A caller that takes nothing loses its connection, not its stream: the log stays within its bounds, and who comes
/// back gets the result.
#[tokio::test]
async fn a_caller_that_does_not_read_loses_its_connection_and_can_resume() {
    let server = HttpServer::start().await;
    let (feed, answer) = Answer::fed();
    server.on(rpc("tools/call"), answer);
    let gateway = TestGateway::new()
        .http("u1", server.url())
        .with(|s| {
            s.streams.grace = Duration::ZERO;
            s.streams.max_bytes = 1 << 20;
            s.limits.body_read = Duration::from_millis(300);
        })
        .start()
        .await;
    let client = gateway.client("/mcp").initialize("2025-11-25").await;
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(8 << 10).expect("a small buffer");
    let mut raw = Raw::over(socket.connect(gateway.address).await.expect("a connection"));
    let headers = format!("Content-Type: application/json\r\nMcp-Session-Id: {}\r\n", client.session());
    let call = request(1, "tools/call", tool("mcp_u1_echo", json!({}))).to_string();
    raw.request("POST /mcp", &headers, &call).await;
    assert_eq!(raw.head().await.status, 200);
    let primed = raw.chunk().await;
    let cursor = primed.lines().find_map(|l| l.strip_prefix("id: ")).expect("an id").to_owned();
    // From here on nothing is read. 32 MiB are more than the sockets on the way hold.
    let large = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "x".repeat(64 << 10)}});
    let large = message(&large.to_string());
    for _ in 0..512 {
        feed.send(large.clone()).await;
    }
    gateway.until(r#"mcpgate_sse_streams_active{kind="post"}"#, |n| n == 0.0).await;
    feed.send(result(r#"{"done":true}"#)).await;
    drop(feed);
    gateway.until(r#"mcpgate_call_duration_seconds_count{server="u1"}"#, |n| n == 1.0).await;
    let answer = client.resume(&cursor).await;
    let messages = answer.stream().rest().await;
    assert_eq!(messages.last().expect("a response")["result"], json!({"done": true}));
    let bytes: usize = messages.iter().map(|m| m.to_string().len()).sum();
    assert!(bytes <= (1 << 20) + (128 << 10), "{bytes} bytes were kept");
    raw.end().await;
}

/// The same for plain JSON: what is not taken does not hold a connection for ever.
#[tokio::test]
async fn a_caller_that_does_not_read_its_json_loses_its_connection() {
    let server = HttpServer::start().await;
    let large = format!(r#"{{"text":"{}"}}"#, "x".repeat(24 << 20));
    server.on(rpc("tools/call"), Answer::result(&large));
    let gateway = TestGateway::new()
        .http("u1", server.url())
        .with(|s| {
            s.limits.body_read = Duration::from_millis(300);
            s.limits.connections = 1;
        })
        .start()
        .await;
    let client = gateway.client("/mcp").initialize("2025-06-18").await;
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(8 << 10).expect("a small buffer");
    let mut raw = Raw::over(socket.connect(gateway.address).await.expect("a connection"));
    let session = client.session();
    let headers = format!(
        "Content-Type: application/json\r\nAccept: application/json\r\nMcp-Session-Id: {session}\r\n"
    );
    let call = request(1, "tools/call", tool("mcp_u1_echo", json!({}))).to_string();
    raw.request("POST /mcp", &headers, &call).await;
    assert_eq!(raw.head().await.status, 200);
    // It holds the only place, and is there until the other has its answer.
    let mut other = Raw::connect(gateway.address).await;
    let headers = format!("Content-Type: application/json\r\nMcp-Session-Id: {session}\r\n");
    other.request("POST /mcp", &headers, &request(2, "ping", json!({})).to_string()).await;
    assert_eq!(other.answer().await.status, 200);
    drop(raw);
}
