//! Processes that are killed, by the hand of an operator or of the kernel.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::binary::{Binary, MCPGATE};
use crate::client::{Client, Stream, request, tool};
use crate::kept_alive::{KeptAlive, Session};
use crate::process::{children, descendants, lives};

/// How many sessions one server has.
const SESSIONS: usize = 200;

/// case-C03: the caller of a child that is killed in mid-call hears of it at once, and the next call works.
#[tokio::test]
async fn a_killed_child_fails_its_call_and_no_other() {
    let gateway = Binary::serve("mcpServers: { demo: { command: mcpgate, args: [demo-server] } }").await;
    let client = gateway.client("/mcp").initialize("2025-11-25").await;
    let mut stream = begin_slow(&client).await;

    let child = children(gateway.process.id()).into_iter().find(|(_, line)| line.ends_with("demo-server"));
    kill(child.unwrap().0);
    let killed = Instant::now();
    let answer = last(&mut stream).await;
    assert!(killed.elapsed() < Duration::from_secs(1), "the caller waited {:?}", killed.elapsed());
    failed_at(&answer, "process");
    let request_id = answer["error"]["data"]["mcpgate"]["requestId"].as_str().unwrap();
    gateway.process.line(|line| (line.contains("WARN") && line.contains(request_id)).then_some(())).await;

    let counted =
        client.call(2, "tools/call", tool("mcp_demo_count_words", json!({"text": "one two"}))).await;
    assert_eq!(counted["result"]["structuredContent"]["words"], 2, "{counted}");
}

/// case-D01: a server over HTTP, here a gateway too, that is killed and started anew has lost the call and its
/// sessions: the caller hears of the call when it is clear that nobody can resume it, and the next call works.
#[tokio::test]
async fn a_restarted_http_server_fails_its_call_and_is_found_again() {
    let demo = "mcpServers: { demo: { command: mcpgate, args: [demo-server] } }";
    let behind = Binary::serve(demo).await;
    let url = behind.url("/servers/demo/mcp");
    let gateway = Binary::serve(&format!("mcpServers: {{ demo: {{ url: '{url}' }} }}")).await;
    let client = gateway.client("/mcp").initialize("2025-11-25").await;
    let mut stream = begin_slow(&client).await;

    let address = behind.address;
    behind.process.signal(Signal::KILL);
    behind.process.ended(Duration::from_secs(5)).await;
    let _behind = Binary::serve_at(address, tempfile::tempdir().unwrap(), demo).await;
    failed_at(&last(&mut stream).await, "transport");

    let counted =
        client.call(2, "tools/call", tool("mcp_demo_count_words", json!({"text": "one two"}))).await;
    assert_eq!(counted["result"]["structuredContent"]["words"], 2, "{counted}");
}

/// case-D15: hundreds of sessions survive that their server, which has sessions as well, is started anew.
#[tokio::test]
async fn a_restarted_http_server_is_found_again_by_all_sessions() {
    let demo = "mcpServers: { demo: { command: mcpgate, args: [demo-server], isolation: shared } }";
    let behind = Binary::serve(demo).await;
    let url = behind.url("/servers/demo/mcp");
    let gateway =
        Binary::serve(&format!("mcpServers: {{ demo: {{ url: '{url}', protocol: 2025-11-25 }} }}")).await;
    let call = async |(mut caller, session): (KeptAlive, Session)| {
        let answer = caller.call(&session, tool("count_words", json!({"text": "one two three"}))).await;
        assert!(answer.contains(r#""words":3"#), "{answer}");
        (caller, session)
    };
    let begun = (0..SESSIONS).map(async |_| {
        let mut caller = KeptAlive::connect(gateway.address, "/servers/demo/mcp").await;
        let session = caller.initialize().await;
        call((caller, session)).await
    });
    let sessions = join_all(begun).await;

    let address = behind.address;
    behind.process.signal(Signal::KILL);
    behind.process.ended(Duration::from_secs(5)).await;
    let behind = Binary::serve_at(address, tempfile::tempdir().unwrap(), demo).await;
    let restarted = Instant::now();
    join_all(sessions.into_iter().map(call)).await;
    assert!(restarted.elapsed() < Duration::from_secs(30), "it took {:?}", restarted.elapsed());
    behind.await_metric("mcpgate_sessions_active", SESSIONS as f64).await;
}

/// case-C07: a gateway that is killed leaves neither children nor theirs.
#[tokio::test]
async fn a_killed_gateway_leaves_no_process() {
    let gateway = with_grandchildren().await;
    let all = descendants(gateway.process.id());
    gateway.process.signal(Signal::KILL);
    all_gone(&all, Duration::from_secs(5)).await;
}

/// case-C07: nor does one that is told to stop; it ends well.
#[tokio::test]
async fn a_stopped_gateway_leaves_no_process() {
    let gateway = with_grandchildren().await;
    let all = descendants(gateway.process.id());
    gateway.process.signal(Signal::TERM);
    let (status, said) = gateway.process.ended(Duration::from_secs(20)).await;
    assert!(status.success(), "{status}: {said}");
    all_gone(&all, Duration::from_secs(5)).await;
}

/// A gateway with two sessions that each have a child with a child of its own, and a running call.
async fn with_grandchildren() -> Binary {
    let script = format!("sleep 1000 & exec '{MCPGATE}' demo-server");
    let server = json!({"command": "sh", "args": ["-c", script]});
    let shutdown = "shutdown: { delay: 0s, drain: 100ms, children: 2s }";
    let gateway = Binary::serve(&format!("mcpServers: {{ demo: {server} }}\n{shutdown}")).await;
    for _ in 0..2 {
        let client = gateway.client("/mcp").initialize("2025-11-25").await;
        begin_slow(&client).await;
    }
    let all = descendants(gateway.process.id());
    assert!(all.len() >= 4, "two children and theirs: {all:?}");
    gateway
}

/// Begins a long call and waits until it runs.
async fn begin_slow(client: &Client) -> Stream {
    let mut params = tool("mcp_demo_slow", json!({"seconds": 50, "steps": 500}));
    params["_meta"] = json!({"progressToken": 1});
    let mut stream = client.post(&request("slow", "tools/call", params)).await.stream();
    let first = stream.message().await.unwrap();
    assert_eq!(first["method"], "notifications/progress", "{first}");
    stream
}

/// The response, after whatever else comes.
async fn last(stream: &mut Stream) -> Value {
    loop {
        let message = stream.message().await.expect("a response");
        if message["method"].is_null() {
            return message;
        }
    }
}

/// The answer says that the call failed, of which server, and in which layer.
fn failed_at(answer: &Value, layer: &str) {
    assert_eq!(answer["id"], "slow", "{answer}");
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    let told = &answer["error"]["data"]["mcpgate"];
    assert_eq!((&told["server"], &told["layer"]), (&json!("demo"), &json!(layer)), "{answer}");
}

fn kill(pid: i32) {
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

/// Waits until none of these processes lives.
async fn all_gone(pids: &[i32], limit: Duration) {
    let gone = async {
        while pids.iter().any(|pid| lives(*pid)) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let gone = tokio::time::timeout(limit, gone).await;
    let left: Vec<_> = pids.iter().filter(|pid| lives(**pid)).collect();
    assert!(gone.is_ok(), "after {limit:?} these are left: {left:?}");
}
