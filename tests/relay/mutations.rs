//! Servers that send almost what they should: every caller is answered, and the gateway goes on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use serde_json::{Value, json};

use crate::client::{Client, request, tool};
use crate::gateway::TestGateway;
use crate::http_server::{Answer, HttpServer, raw, rpc};
use crate::kit::{REVISION, call, session_with, tools};

/// How many mutated messages each test sends.
const ROUNDS: u64 = 2500;

/// A sequence that is the same in every run, so that a failure can be repeated by its number.
struct Dice(u64);

impl Dice {
    fn new(number: u64) -> Self {
        Self(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5bd1_e995)
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound.max(1)
    }
}

/// What a server may say, `$ID` standing for the id of the call.
fn sound_messages() -> Vec<String> {
    [
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"x"}],"isError":false}}"#,
        r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"no","data":{"a":[1,2.5e3,null]}}}"#,
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"resource_link","uri":"x://a","name":"é"}]}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$ID,"progress":1}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x://a"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}}"#,
        r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?","requestedSchema":{}}}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"roots/list"}"#,
        r#"{"jsonrpc":"2.0","id":8,"method":"ping"}"#,
    ]
    .map(str::to_owned)
    .into()
}

/// Almost one of them.
fn mutated(dice: &mut Dice, sound: &[String]) -> Vec<u8> {
    // No half of a surrogate pair: that is legal JSON, and passes, but the client of these tests cannot read it.
    const PIECES: [&str; 19] = [
        "{",
        "}",
        "[",
        "]",
        "\"",
        ",",
        ":",
        "null",
        "true",
        "-1",
        "1e999",
        "0.1",
        "\\u0000",
        "\u{feff}",
        "\u{2028}",
        "$ID",
        "\"id\":1,",
        "\"result\":{},",
        "99999999999999999999999999",
    ];
    let mut text = sound[dice.below(sound.len())].clone().into_bytes();
    for _ in 0..=dice.below(4) {
        let at = dice.below(text.len() + 1);
        let to = (at + dice.below(30)).min(text.len());
        match dice.below(7) {
            0 => drop(text.drain(at..to)),
            1 => text.truncate(at),
            2 => drop(text.splice(at..at, PIECES[dice.below(PIECES.len())].bytes())),
            3 => drop(text.splice(at..to, PIECES[dice.below(PIECES.len())].bytes())),
            4 => {
                let copy = text[at..to].to_vec();
                drop(text.splice(at..at, copy));
            }
            5 if at < text.len() => text[at] ^= 1 << dice.below(8),
            _ => {
                let deep = [b'[', b'{'][dice.below(2)];
                drop(text.splice(at..at, std::iter::repeat_n(deep, dice.below(2000))));
            }
        }
    }
    text
}

/// Every call is answered once, with its own id, by a result or an error; perhaps on a stream that its caller was
/// asked to come back to.
async fn assert_answered(client: &Client, number: u64, name: &str, arguments: Value) {
    let answer = client.post(&request(number, "tools/call", tool(name, arguments))).await;
    assert_eq!(answer.status, 200, "call {number}");
    let mut responses = Vec::new();
    if answer.is_stream() {
        let mut stream = answer.stream();
        loop {
            while let Some(message) = stream.message().await {
                responses.extend(message.get("method").is_none().then_some(message));
            }
            let last = stream.last_id.clone().expect("an id to come back with");
            if !responses.is_empty() {
                break;
            }
            stream = client.resume(&last).await.stream();
        }
    } else {
        responses.push(answer.json().await);
    }
    let [response] = &responses[..] else { panic!("call {number} has one response: {responses:?}") };
    assert_eq!(response["id"], number, "{response}");
    assert!(response.get("result").is_some() != response.get("error").is_some(), "{response}");
}

async fn several(client: &Client, name: &'static str, arguments: impl Fn(u64) -> Value) {
    let calls = (0..ROUNDS).map(|n| {
        let arguments = arguments(n);
        async move { assert_answered(client, n, name, arguments).await }
    });
    stream::iter(calls).buffer_unordered(128).collect::<Vec<()>>().await;
}

fn capabilities() -> Value {
    json!({"elicitation": {}, "roots": {}, "sampling": {}})
}

/// case-I13: over HTTP, as JSON and as streams.
#[tokio::test]
async fn mutated_answers_over_http_harm_nobody() {
    let server = HttpServer::start().await;
    let counter = AtomicU64::new(0);
    server.on_each(rpc("tools/call"), move |seen| {
        let mut dice = Dice::new(counter.fetch_add(1, Ordering::SeqCst));
        let id = seen.id.clone().expect("an id");
        let sound = sound_messages();
        let mut say = || {
            let text = mutated(&mut dice, &sound);
            let text = String::from_utf8_lossy(&text).replace("$ID", &id).into_bytes();
            (text, dice.below(4))
        };
        let (text, form) = say();
        if form == 0 {
            return Answer::json(text);
        }
        let mut steps = Vec::new();
        for _ in 0..form {
            let (text, style) = say();
            let head: &[u8] = [&b"data: "[..], b"data:", b"id: e\ndata: ", b"event: x\r\ndata: "][style];
            steps.push(raw([head, &text[..], b"\n\n"].concat()));
        }
        Answer::events(steps)
    });
    server.on(|seen| seen.is("tools/call") && seen.text().contains("\"sound\""), Answer::result("{}"));
    let gateway = TestGateway::new()
        .http("u1", server.url())
        .adjust(|s| {
            s.timeouts.idle = Duration::from_secs(3);
            s.timeouts.input = Duration::from_millis(200);
        })
        .start()
        .await;
    let client = session_with(&gateway, capabilities()).await;
    several(&client, "mcp_u1_echo", |_| json!({})).await;
    assert!(call(&client, "end", "mcp_u1_echo", json!({"sound": 1})).await["result"].is_object());
    assert_eq!(client.delete().await, 204);
    assert_eq!(gateway.sessions(), 0.0);
}

/// case-I13: over stdio, where one bad line must not spoil the next.
#[tokio::test]
async fn mutated_lines_of_a_child_harm_nobody() {
    let gateway = TestGateway::new()
        .stdio("u1", &[])
        .adjust(|s| {
            s.timeouts.idle = Duration::from_millis(400);
            s.timeouts.input = Duration::from_millis(200);
        })
        .start()
        .await;
    let client = session_with(&gateway, capabilities()).await;
    let sound = sound_messages();
    several(&client, "mcp_u1_raw", |n| {
        let mut dice = Dice::new(n);
        let lines: Vec<Vec<u8>> = (0..=dice.below(3)).map(|_| mutated(&mut dice, &sound)).collect();
        let lines = lines.iter().map(|line| String::from_utf8_lossy(line).replace(['\n', '\r'], " ") + "\n");
        json!({"text": lines.collect::<String>()})
    })
    .await;
    let answer = call(&client, "end", "mcp_u1_echo", json!({"sound": 1})).await;
    assert!(answer["result"].is_object(), "{answer}");
    assert_eq!(
        gateway.sample(r#"mcpgate_upstream_process_starts_total{server="u1"}"#),
        1.0,
        "the same child"
    );
}

/// case-I13: mutated answers to `initialize` and lists: the others are listed, every request is answered.
#[tokio::test]
async fn mutated_introductions_and_lists_harm_nobody() {
    let (bad, good) = (HttpServer::start().await, HttpServer::start().await);
    let sound = vec![
        r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"logging":{}},"serverInfo":{"name":"x","version":"1"},"instructions":"i"}"#.to_owned(),
    ];
    let lists = vec![
        r#"{"tools":[{"name":"a","inputSchema":{"type":"object"}},{"name":"b","inputSchema":{}}],"nextCursor":"c"}"#.to_owned(),
        r#"{"tools":[{"inputSchema":{},"name":"c","annotations":{"x":[1]}}]}"#.to_owned(),
    ];
    for (method, sound) in [("initialize", sound), ("tools/list", lists)] {
        let counter = AtomicU64::new(0);
        bad.on_each(
            move |seen| seen.is(method),
            move |_| {
                let n = counter.fetch_add(1, Ordering::SeqCst);
                // Half of them are sound, so that what comes after them is reached too.
                let mut dice = Dice::new(n / 2);
                let text = if n.is_multiple_of(2) {
                    sound[0].clone().into_bytes()
                } else {
                    mutated(&mut dice, &sound)
                };
                Answer::result(&String::from_utf8_lossy(&text))
            },
        );
    }
    let gateway = TestGateway::new()
        .http("bad", bad.url())
        .adjust(|s| s.timeouts.list = Duration::from_millis(500))
        .http("good", good.url())
        .start()
        .await;
    for n in 0..200_u64 {
        // Each class of callers has lists of its own, so that they are read again and again.
        let mut declared = json!({});
        for (bit, name) in ["roots", "sampling", "elicitation", "tasks"].into_iter().enumerate() {
            if n >> bit & 1 == 1 {
                declared[name] = json!({});
            }
        }
        let revision = ["2025-03-26", "2025-06-18", REVISION][usize::try_from(n % 3).unwrap()];
        let client = gateway.client("/mcp").initialize_with(revision, declared).await;
        let all = tools(&client).await;
        assert!(all.last().is_some_and(|last| last == "mcp_good_echo"), "{n}: {all:?}");
        for name in all.iter().filter(|name| name.starts_with("mcp_bad_")).take(2) {
            assert_answered(&client, n, name, json!({})).await;
        }
        assert!(call(&client, "g", "mcp_good_echo", json!({})).await["result"].is_object(), "{n}");
        assert_eq!(client.delete().await, 204);
    }
}
