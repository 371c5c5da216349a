//! Thousands of messages that are nearly right.

use serde_json::{Value, json};

use crate::client::{init, request};
use crate::gateway::TestGateway;
use crate::http_server::HttpServer;
use crate::raw::Raw;

/// A small generator, so that a failure can be had again.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        usize::try_from(self.0 >> 33).expect("31 bits") % sides
    }
}

fn seeds() -> Vec<String> {
    let id = |n: i32| Value::from(n);
    let mut seeds: Vec<String> = [
        init("2025-06-18", json!({"roots": {}, "sampling": {"tools": {}}, "elicitation": {"form": {}}})),
        request(1, "tools/list", json!({"cursor": "x"})),
        request("two", "tools/call", json!({"name": "mcp_u1_echo", "arguments": {"a": [1, 2, {"b": null}]}, "_meta": {"progressToken": 7}})),
        request(3, "resources/read", json!({"uri": "a:1"})),
        request(4, "resources/subscribe", json!({"uri": "a:1"})),
        request(5, "prompts/get", json!({"name": "mcp_u1_x", "arguments": {"a": "b"}})),
        request(6, "completion/complete", json!({"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": "b"}})),
        request(7, "logging/setLevel", json!({"level": "debug"})),
        request(8, "ping", json!({})),
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1, "reason": "r"}}),
        json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 4294967297u64, "progress": 1}}),
        json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}),
        json!({"jsonrpc": "2.0", "id": 4294967297u64, "result": {"roots": []}}),
        json!({"jsonrpc": "2.0", "id": id(9), "error": {"code": -1, "message": "no"}}),
        json!([request(1, "ping", json!({})), {"jsonrpc": "2.0", "method": "notifications/initialized"}]),
    ]
    .iter()
    .map(Value::to_string)
    .collect();
    seeds.push(String::new());
    seeds
}

fn mutate(dice: &mut Dice, seeds: &[String]) -> Vec<u8> {
    const TOKENS: [&str; 22] = [
        "null",
        "true",
        "-0",
        "1e999",
        "1.5",
        "\"\"",
        "{}",
        "[]",
        "[",
        "{",
        "}",
        "\"",
        ",",
        ":",
        "\\",
        "\\u0000",
        "\\ud800",
        "\u{0}",
        "\u{feff}",
        "\"id\":{},",
        "\"method\":\"initialize\",",
        "99999999999999999999999999",
    ];
    let mut text = seeds[dice.roll(seeds.len())].clone().into_bytes();
    for _ in 0..=dice.roll(4) {
        let at = dice.roll(text.len() + 1);
        match dice.roll(6) {
            0 => text.truncate(at),
            1 => drop(text.splice(at..at, TOKENS[dice.roll(TOKENS.len())].bytes())),
            2 if at < text.len() => text[at] = u8::try_from(dice.roll(256)).expect("a byte"),
            3 if at < text.len() => drop(text.remove(at)),
            4 => {
                let other = &seeds[dice.roll(seeds.len())];
                text.truncate(at);
                text.extend_from_slice(&other.as_bytes()[dice.roll(other.len() + 1)..]);
            }
            _ => {
                let end = (at + dice.roll(40)).min(text.len());
                let piece = text[at.min(end)..end].to_vec();
                drop(text.splice(at..at, piece));
            }
        }
    }
    text
}

/// case-I13: every message is answered, whatever it is; afterwards the gateway serves as before, and nothing is left.
#[tokio::test]
async fn every_nearly_right_message_is_answered() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new()
        .http("u1", server.url())
        .with(|s| s.streams.grace = std::time::Duration::from_secs(3600))
        .start()
        .await;
    let seeds = seeds();
    let mut dice = Dice(4711);
    for revision in ["2025-03-26", "2025-11-25"] {
        let client = gateway.client("/mcp").initialize(revision).await;
        let session = client.session();
        let mut raw = Raw::connect(gateway.address).await;
        for n in 0..2500 {
            let body = mutate(&mut dice, &seeds);
            let with_session = dice.roll(10) > 0;
            let session = if with_session { format!("Mcp-Session-Id: {session}\r\n") } else { String::new() };
            let head = format!(
                "POST /mcp HTTP/1.1\r\nHost: gw\r\nContent-Type: application/json\r\n{session}Content-Length: {}\r\n\r\n",
                body.len()
            );
            raw.send([head.as_bytes(), &body].concat()).await;
            let answer = raw.answer().await;
            let shown = String::from_utf8_lossy(&body);
            assert!(matches!(answer.status, 200 | 202 | 400 | 404), "{n}: {} to {shown}", answer.status);
            if answer.status != 202 && answer.header("content-type") == Some("application/json") {
                answer.json();
            }
            if let Some(opened) = answer.header("mcp-session-id") {
                let opened = gateway.client("/mcp").header("mcp-session-id", opened);
                assert_eq!(opened.delete().await, 204, "{n}: {shown}");
            }
        }
        let list = client.call(1, "tools/list", json!({})).await;
        assert_eq!(list["result"]["tools"][0]["name"], "mcp_u1_echo");
        assert_eq!(client.delete().await, 204);
    }
    assert_eq!(gateway.sessions(), 0.0);
    assert_eq!(gateway.sample(r#"mcpgate_sse_streams_active{kind="post"}"#), 0.0);
    gateway.stopped().await;
}
