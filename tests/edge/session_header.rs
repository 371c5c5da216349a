//! `Mcp-Session-Id` as it can come in: any case, once, and within its alphabet.

use serde_json::json;

use crate::client::request;
use crate::gateway::TestGateway;
use crate::raw::Raw;

/// case-E11: header names have no case.
#[tokio::test]
async fn the_session_header_is_found_in_any_case() {
    let gateway = TestGateway::new().start().await;
    let id = gateway.client("/mcp").initialize("2025-06-18").await.session();
    let mut raw = Raw::connect(gateway.address).await;
    for name in ["Mcp-Session-Id", "mcp-session-id", "MCP-SESSION-ID", "MCP-Session-Id", "mCP-sESSION-iD"] {
        let headers = format!("content-type: application/json\r\n{name}: {id}\r\n");
        raw.request("POST /mcp", &headers, &request(1, "ping", json!({})).to_string()).await;
        assert_eq!(raw.answer().await.status, 200, "{name}");
    }
}

/// case-E11: an id that can be none is 400 for every method, and never "first wins"; one that could be is 404.
#[tokio::test]
async fn a_malformed_session_id_is_400_and_an_unknown_one_404() {
    let gateway = TestGateway::new().start().await;
    let id = gateway.client("/mcp").initialize("2025-06-18").await.session();
    let line = |value: &[u8]| [b"Mcp-Session-Id: ", value, b"\r\n"].concat();
    let (own, other) = (line(id.as_bytes()), line(b"another"));
    let long = "x".repeat(1025);
    for (headers, status) in [
        ([own.clone(), other.clone()].concat(), 400),
        ([other.clone(), own.clone()].concat(), 400),
        ([own.clone(), own.clone()].concat(), 400),
        (line(format!("{id},{id}").as_bytes()), 400),
        (line(format!("{id} {id}").as_bytes()), 400),
        (line(b"a\tb"), 400),
        (line(long.as_bytes()), 400),
        (line("x".repeat(257).as_bytes()), 400),
        (line("\u{e4}".as_bytes()), 400),
        (line(b"\xff\xfe"), 400),
        (line(b""), 400),
        (line("x".repeat(256).as_bytes()), 404),
        (line(b"~!@#$%^&*()_+"), 404),
        (other, 404),
    ] {
        for method in ["POST", "GET", "DELETE"] {
            let mut raw = Raw::connect(gateway.address).await;
            let shown = String::from_utf8_lossy(&headers).into_owned();
            let body = request(7, "ping", json!({})).to_string();
            let length = body.len();
            let head = format!(
                "{method} /mcp HTTP/1.1\r\nHost: gw\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n"
            );
            raw.send([head.as_bytes(), &headers, b"\r\n", body.as_bytes()].concat()).await;
            let answer = raw.answer().await;
            assert_eq!(answer.status, status, "{method} {shown}");
            if method == "POST" {
                assert_eq!(answer.json()["id"], 7, "{shown}");
            }
        }
    }
    let client = gateway.client("/mcp").header("mcp-session-id", &id);
    assert_eq!(client.post(&request(1, "ping", json!({}))).await.status, 200, "the session goes on");
}

/// case-E11: what no header may hold never gets to us; the connection ends with a bare 400.
#[tokio::test]
async fn control_characters_in_a_header_are_refused() {
    let gateway = TestGateway::new().start().await;
    for value in ["a\0b", "a\x01b", "a\x7fb"] {
        let mut raw = Raw::connect(gateway.address).await;
        raw.request("POST /mcp", &format!("Mcp-Session-Id: {value}\r\n"), "{}").await;
        assert_eq!(raw.head().await.status, 400, "{value:?}");
    }
}
