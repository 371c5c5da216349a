//! HTTP/1.1 with one connection for many requests, and HTTP/2 without TLS.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use serde_json::json;

use crate::client::{SOON, init, request, tool};
use crate::gateway::TestGateway;
use crate::h2::{H2, text};
use crate::http_server::{Answer, HttpServer, rpc};
use crate::raw::Raw;

const JSON: (&str, &[u8]) = ("content-type", b"application/json");

/// One connection serves any number of requests, answered or refused, also those that come before the answer.
#[tokio::test]
async fn one_connection_serves_many_requests() {
    let gateway = TestGateway::new().start().await;
    let client = gateway.client("/mcp").initialize("2025-06-18").await;
    let headers = format!("Content-Type: application/json\r\nMcp-Session-Id: {}\r\n", client.session());
    let mut raw = Raw::connect(gateway.address).await;
    for n in 0..20 {
        raw.request("POST /mcp", &headers, &request(n, "ping", json!({})).to_string()).await;
        assert_eq!(raw.answer().await.json()["id"], n);
        raw.request("POST /mcp", &headers, "no JSON").await;
        assert_eq!(raw.answer().await.status, 400);
        raw.request("POST /nowhere", &headers, "{}").await;
        assert_eq!(raw.answer().await.status, 404);
        raw.request("PUT /mcp", &headers, "{}").await;
        assert_eq!(raw.answer().await.status, 405);
    }
    let pipelined: String = (0..10)
        .map(|n| {
            let body = request(n, "ping", json!({})).to_string();
            format!("POST /mcp HTTP/1.1\r\nHost: gw\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
        })
        .collect();
    raw.send(pipelined).await;
    for n in 0..10 {
        assert_eq!(raw.answer().await.json()["id"], n, "in their order");
    }
}

/// HTTP/1.0, as some health checkers speak, is answered and closed.
#[tokio::test]
async fn http_1_0_is_answered() {
    let gateway = TestGateway::new().start().await;
    let mut raw = Raw::connect(gateway.address).await;
    raw.send("GET /mcp HTTP/1.0\r\n\r\n").await;
    assert!(raw.end().await.starts_with("HTTP/1.0 400"));
}

/// What is no HTTP gets 400 or nothing, and its connection ends.
#[tokio::test]
async fn what_is_no_http_is_turned_away() {
    let gateway = TestGateway::new().start().await;
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"hello\r\n\r\n",
        b"\0\0\0\0\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
        b"GET  /mcp  HTTP/1.1\r\n\r\n",
    ] {
        let mut raw = Raw::connect(gateway.address).await;
        raw.send(bytes).await;
        let said = raw.end().await;
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 400"), "{said}");
    }
}

/// A session over HTTP/2 by prior knowledge: JSON, streams, GET, DELETE, all on one connection.
#[tokio::test]
async fn a_session_runs_over_http_2() {
    let gateway = TestGateway::new().stdio("u1", &[]).start().await;
    let h2 = H2::connect(gateway.address).await;
    let opened = h2.send("POST", &[JSON], init("2025-11-25", json!({})).to_string()).await;
    assert_eq!(opened.status(), 200);
    let id = opened.headers()["mcp-session-id"].as_bytes().to_vec();
    let session: (&str, &[u8]) = ("mcp-session-id", &id);
    let call = request(1, "tools/call", tool("mcp_u1_echo", json!({"n": 1}))).to_string();
    assert!(text(h2.send("POST", &[JSON, session], call.clone()).await).await.contains(r#""id":1"#));
    let sse = h2.send("POST", &[JSON, session, ("accept", b"text/event-stream")], call.clone()).await;
    assert_eq!(sse.headers()["content-type"], "text/event-stream");
    assert!(text(sse).await.contains(r#""id":1"#));
    let mut get = h2.send("GET", &[session, ("accept", b"text/event-stream")], "").await;
    assert_eq!(get.status(), 200);
    let primed = get.body_mut().frame().await.expect("an event").expect("a frame");
    assert!(primed.into_data().expect("data").starts_with(b"id: "));
    let calls = (0..100).map(|n| {
        let body = request(n, "tools/call", tool("mcp_u1_echo", json!({"n": n}))).to_string();
        let (h2, id) = (h2.clone(), id.clone());
        async move { (n, text(h2.send("POST", &[JSON, ("mcp-session-id", &id)], body).await).await) }
    });
    for (n, answer) in futures_util::future::join_all(calls).await {
        assert!(answer.contains(&format!(r#""id":{n}"#)), "{n}: {answer}");
    }
    assert_eq!(h2.send("DELETE", &[session], "").await.status(), 204);
    while let Some(frame) = get.body_mut().frame().await {
        frame.expect("a clean end");
    }
    assert_eq!(h2.send("DELETE", &[session], "").await.status(), 404);
}

/// case-E11: the session header over HTTP/2: twice, malformed, unknown.
#[tokio::test]
async fn the_session_header_is_as_strict_over_http_2() {
    let gateway = TestGateway::new().start().await;
    let h2 = H2::connect(gateway.address).await;
    let opened = h2.send("POST", &[JSON], init("2025-06-18", json!({})).to_string()).await;
    let id = opened.headers()["mcp-session-id"].as_bytes().to_vec();
    let ping = Bytes::from(request(7, "ping", json!({})).to_string());
    let long = "x".repeat(1025);
    let name = "mcp-session-id";
    let twice = [&id[..], b",", &id[..]].concat();
    for (values, status) in [
        (&[&id[..]][..], 200),
        (&[&id[..], &b"another"[..]], 400),
        (&[&b"another"[..], &id[..]], 400),
        (&[&id[..], &id[..]], 400),
        (&[&twice[..]], 400),
        (&[&b"a b"[..]], 400),
        (&[long.as_bytes()], 400),
        (&["\u{e4}".as_bytes()], 400),
        (&[&b""[..]], 400),
        (&[&b"another"[..]], 404),
    ] {
        let mut headers = vec![JSON];
        headers.extend(values.iter().map(|value| (name, *value)));
        let answer = h2.send("POST", &headers, ping.clone()).await;
        assert_eq!(
            answer.status(),
            status,
            "{:?}",
            values.iter().map(|v| String::from_utf8_lossy(v)).collect::<Vec<_>>()
        );
        assert!(text(answer).await.contains(r#""id":7"#));
    }
}

/// A stream whose caller takes nothing of its answer is reset, as no ping of the caller's shows it; the others go on.
#[tokio::test]
async fn a_stream_that_is_not_read_is_reset() {
    let server = HttpServer::start().await;
    let large = "x".repeat(4 << 20);
    server.on(rpc("tools/call"), Answer::result(&json!({"content": [], "large": large}).to_string()));
    let gateway = TestGateway::new()
        .http("u1", server.url())
        .with(|s| s.limits.body_read = Duration::from_millis(200))
        .start()
        .await;
    let h2 = H2::connect(gateway.address).await;
    let opened = h2.send("POST", &[JSON], init("2025-06-18", json!({})).to_string()).await;
    let id = opened.headers()["mcp-session-id"].as_bytes().to_vec();
    let session: (&str, &[u8]) = ("mcp-session-id", &id);
    let call = request(1, "tools/call", tool("mcp_u1_echo", json!({}))).to_string();
    assert!(text(h2.send("POST", &[JSON, session], call.clone()).await).await.len() > large.len());
    let unread = h2.send("POST", &[JSON, session], call).await;
    assert_eq!(unread.status(), 200);
    let ping = request(2, "ping", json!({})).to_string();
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(1) {
        assert!(text(h2.send("POST", &[JSON, session], ping.clone()).await).await.contains(r#""id":2"#));
    }
    let rest = tokio::time::timeout(SOON, unread.into_body().collect()).await.expect("an end soon");
    assert!(rest.is_err(), "it was reset");
    assert!(text(h2.send("POST", &[JSON, session], ping).await).await.contains(r#""id":2"#));
}

/// A connection on which no request comes has the time of a head.
#[tokio::test]
async fn an_http_2_connection_without_a_request_is_closed() {
    let gateway =
        TestGateway::new().with(|s| s.limits.header_read = Duration::from_millis(200)).start().await;
    let mut raw = Raw::connect(gateway.address).await;
    raw.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await;
    let began = Instant::now();
    raw.end().await;
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

/// The limits hold over HTTP/2 as well: 413 while reading, 431.
#[tokio::test]
async fn the_limits_hold_over_http_2() {
    let gateway = TestGateway::new()
        .with(|s| {
            s.limits.body = 64 << 10;
            s.limits.headers = 4 << 10;
        })
        .start()
        .await;
    let h2 = H2::connect(gateway.address).await;
    assert_eq!(h2.send("POST", &[JSON], "x".repeat(65 << 10)).await.status(), 413);
    let long = "x".repeat(5 << 10);
    assert_eq!(h2.send("GET", &[("x-long", long.as_bytes())], "").await.status(), 431);
    for method in ["HEAD", "PUT", "PATCH", "OPTIONS"] {
        let answer = h2.send(method, &[], "").await;
        assert_eq!(
            (answer.status().as_u16(), answer.headers()["allow"].as_bytes()),
            (405, &b"GET, POST, DELETE"[..]),
            "{method}"
        );
    }
}
