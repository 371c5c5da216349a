//! What a child writes and should not.

use std::time::{Duration, Instant};

use mcpgate::protocol::error::Layer;
use mcpgate::upstream::Delivery;
use serde_json::json;

use super::child::{Child, Heard};

/// case-C01: lines on stdout that are no messages are passed over.
#[tokio::test]
async fn noise_on_stdout_does_not_end_the_link() {
    let noise =
        "Starting server v1.2\n{\"level\":\"info\",\"id\":1}\n42\n\n\r\n[1,2]\n{broken\n\"text\"\nnull\n";
    let opened = Child::new(["--noise", noise]).open().await;
    let raw = "npm notice\n{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"ok\":true}}\r\n";
    let response = opened.call("raw", json!({"text": raw})).await.expect("an answer");
    assert_eq!(response.result(), Some(r#"{"ok":true}"#));
}

/// case-C01: a log line that has an id of a call in it is not its answer.
#[tokio::test]
async fn a_log_line_with_an_id_answers_nothing() {
    let opened = Child::new([]).open().await;
    let raw = "{\"level\":\"info\",\"id\":$ID}\n{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":7}\n";
    let response = opened.call("raw", json!({"text": raw})).await.expect("an answer");
    assert_eq!(response.result(), Some("7"));
}

/// case-H03: an id of another spelling is ours if its number is.
#[tokio::test]
async fn ids_are_matched_by_number() {
    let opened = Child::new([]).open().await;
    for id in ["\"$ID\"", "$ID.0", "$ID"] {
        let raw = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}\n");
        let response = opened.call("raw", json!({"text": raw})).await.expect("an answer");
        assert_eq!(response.result(), Some("{}"), "{id}");
    }
}

/// case-I07: an answer that is deep passes; one that is too deep is an error of its call, not a silence.
#[tokio::test]
async fn depth_ends_one_call_only() {
    let opened = Child::new([]).open().await;
    let response = opened.call("deep", json!({"depth": 200})).await.expect("an answer");
    assert!(response.result().expect("a result").contains(&"[".repeat(200)));

    let begun = Instant::now();
    let failure = opened.failure("deep", json!({"depth": 100_000})).await;
    assert_eq!((failure.layer, failure.reason), (Layer::Call, "malformed_response"));
    assert_eq!(failure.delivery, Delivery::Unknown);
    assert!(begun.elapsed() < Duration::from_secs(1));
    assert_eq!(opened.value("echo", json!({"still": "here"})).await, json!({"still": "here"}));
}

/// case-I07, case-I13: every way to spoil an answer ends the call that waits for it.
#[tokio::test]
async fn a_spoilt_answer_fails_its_call() {
    let opened = Child::new([]).open().await;
    for spoilt in [
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"cut":"#,
        r#"{"jsonrpc":"2.0","id":$ID}"#,
        r#"{"jsonrpc":"2.0","id":$ID,"result":{},"error":{}}"#,
        r#"{"jsonrpc":"1.0","id":$ID,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":$ID,"error":"boom"}"#,
        r#"{"jsonrpc":"2.0","id":$ID,"error":{"message":"no code"}}"#,
        r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-1,"message":null}}"#,
        r#"{"id":$ID,"jsonrpc":"2.0","result":{},"result":{}}"#,
        "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":\"\u{1}\"}",
    ] {
        let failure = opened.failure("raw", json!({"text": format!("{spoilt}\n")})).await;
        assert_eq!(failure.reason, "malformed_response", "{spoilt}");
    }
    assert!(!opened.link.is_down());
}

/// case-C17: a line over the limit ends the child, soon and with bounded memory.
#[tokio::test]
async fn a_line_over_the_limit_ends_the_child() {
    let opened = Child::new([]).max_message(16 << 20).open().await;
    let before = resident();
    let begun = Instant::now();
    let failure = opened.failure("flood", json!({"bytes": 64 << 20})).await;
    assert_eq!((failure.reason, failure.delivery), ("message_too_large", Delivery::Unknown));
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert!(resident().saturating_sub(before) < 40 << 20);
    assert!(opened.link.is_down());
    opened.ended().await;
}

/// Bytes of memory that this process holds.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("a proc file system");
    let pages: usize = statm.split(' ').nth(1).and_then(|n| n.parse().ok()).expect("a number");
    pages * 4096
}

/// stderr is drained however much comes, and its last lines are kept.
#[tokio::test]
async fn stderr_is_drained_and_kept() {
    let opened = Child::new([]).open().await;
    opened.value("stderr", json!({"lines": 20_000})).await;
    let last = async {
        while opened.link.stderr_tail().last().is_none_or(|line| line != "line 19999") {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(super::child::SOON, last).await.expect("the last line");
    assert_eq!(opened.link.stderr_tail().len(), 50);
}

/// case-I13: no mutation of a message ends the link or makes it deaf.
#[tokio::test]
async fn mutated_messages_harm_nothing() {
    let opened = Child::new([]).open().await;
    let seeds = [
        r#"{"jsonrpc":"2.0","id":"q","method":"ping"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":3,"progress":1}}"#,
        r#"{"jsonrpc":"2.0","id":999999,"result":{"content":[]}}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"roots/list"}"#,
    ];
    // A small generator, so that a failure repeats.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).expect("31 bits") % below
    };
    for _ in 0..40 {
        let mut text = String::new();
        for _ in 0..250 {
            let mut message: Vec<char> = seeds[random(seeds.len())].chars().collect();
            for _ in 0..=random(3) {
                let at = random(message.len());
                match random(3) {
                    0 => message[at] = char::from(b"{}[]\":,0-e\\\x01x"[random(13)]),
                    1 if message.len() > 1 => drop(message.remove(at)),
                    _ => message.truncate(at + 1),
                }
            }
            text.extend(message);
            text.push('\n');
        }
        text.push_str("{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{}}\n");
        // Noise may be a spoilt answer to this very call.
        if let Err(failure) = opened.call("raw", json!({"text": text})).await {
            assert_eq!(failure.reason, "malformed_response");
        }
    }
    assert_eq!(opened.value("echo", json!({"still": "here"})).await, json!({"still": "here"}));
}

/// L5: a ping of the server is answered by the link; the listener does not hear it.
#[tokio::test]
async fn pings_are_answered() {
    let opened = Child::new([]).open().await;
    let answer = opened.value("ask", json!({"method": "ping", "params": {}})).await;
    assert_eq!(answer["result"], json!({}));
    opened.value("say", json!({"method": "notifications/tools/list_changed", "params": {}})).await;
    let Heard::Notification(first) = opened.hear().await else { panic!("the ping was heard") };
    assert_eq!(first.method().as_str(), "notifications/tools/list_changed");
}

/// A batch of a 2025-03-26 server is taken apart; in other revisions it is noise.
#[tokio::test]
async fn batches_are_taken_apart_where_they_are_legal() {
    let raw = "[{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":1}]\n";
    let opened = Child::new(["--revision", "2025-03-26"]).open().await;
    let response = opened.call("raw", json!({"text": raw})).await.expect("an answer");
    assert_eq!((response.result(), response.bytes().first()), (Some("1"), Some(&b'{')));

    let opened = Child::new([]).open().await;
    let after = raw.to_owned() + "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":2}\n";
    let response = opened.call("raw", json!({"text": after})).await.expect("an answer");
    assert_eq!(response.result(), Some("2"));
}

/// A byte order mark before the first message does not hide it.
#[tokio::test]
async fn a_byte_order_mark_is_passed_over() {
    Child::new(["--noise", "\u{feff}"]).open().await;
}

/// case-I07: a line of nothing but byte order marks is noise like any other, however long it is.
#[tokio::test]
async fn a_line_of_byte_order_marks_is_passed_over() {
    let opened = Child::new([]).open().await;
    let raw = "\u{feff}".repeat(200_000) + "\n{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":7}\n";
    let response = opened.call("raw", json!({"text": raw})).await.expect("an answer");
    assert_eq!(response.result(), Some("7"));
}

/// What a server is told in secret is in no text that we keep of it.
#[tokio::test]
async fn secrets_are_blotted_out_of_stderr() {
    let opened = Child::new(["--stderr", "key is canary-canary\n"]).env("KEY", "canary-canary").open().await;
    opened.link.close().await;
    assert_eq!(opened.link.stderr_tail(), ["key is [secret]"]);
}
