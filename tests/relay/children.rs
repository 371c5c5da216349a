//! Child processes behind the gateway: noise, death, slow starts, many at once.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::client::{Client, init, request, tool};
use crate::gateway::TestGateway;
use crate::http_server::HttpServer;
use crate::kit::{REVISION, call, failure, session, tools, until, value};
use mcpgate::settings::servers::{Isolation, TransportSettings};

/// case-C01: what is no message on stdout is skipped and counted; the server works all the same.
#[tokio::test]
async fn noise_on_stdout_does_no_harm() {
    let noise =
        "Starting server v1.2\n{\"level\":\"info\"}\n42\n\n\r\n\u{feff}\nnull\n[1,2]\n\"text\"\n{broken\n";
    let gateway = TestGateway::new().stdio("u1", &["--noise", noise]).start().await;
    let client = session(&gateway).await;
    let answer = call(&client, 1, "mcp_u1_echo", json!({"a": 1})).await;
    assert_eq!(value(&answer), &json!({"a": 1}));
    assert!(gateway.sample(r#"mcpgate_upstream_stdout_skipped_total{server="u1"}"#) >= 3.0);
}

/// case-C03: a child that dies in mid-call is an error at once, with the caller's id, server and layer; the next
/// call is served by a fresh child.
#[tokio::test]
async fn a_child_that_dies_in_mid_call_is_an_error_at_once_and_is_replaced() {
    let gateway = TestGateway::new().stdio("u1", &[]).start().await;
    let client = session(&gateway).await;
    for (id, name, arguments) in
        [(json!(7), "mcp_u1_exit", json!({"code": 3})), (json!("a"), "mcp_u1_abort", json!({}))]
    {
        let sleeping = {
            let client = client.clone();
            let asked = tokio_util::task::TaskTracker::new();
            asked.spawn(async move { call(&client, "s", "mcp_u1_sleep", json!({"ms": 60_000})).await })
        };
        let first = call(&client, 0, "mcp_u1_echo", json!({})).await;
        assert!(first["result"].is_object(), "the child runs: {first}");
        let begun = Instant::now();
        let answer = call(&client, id.clone(), name, arguments).await;
        assert!(begun.elapsed() < Duration::from_secs(1), "at once, not after {:?}", begun.elapsed());
        assert_eq!(answer["id"], id);
        assert_eq!(answer["error"]["code"], -32603);
        let said = failure(&answer);
        assert_eq!((&said["server"], &said["layer"]), (&json!("u1"), &json!("process")), "{answer}");
        let other = sleeping.await.expect("no panic");
        assert_eq!((&other["id"], &failure(&other)["layer"]), (&json!("s"), &json!("process")), "{other}");
        let next = call(&client, 8, "mcp_u1_echo", json!({"b": 2})).await;
        assert_eq!(value(&next), &json!({"b": 2}));
    }
}

/// case-C03: killed from outside while it is idle, it is replaced as well.
#[tokio::test]
async fn a_child_killed_while_idle_is_replaced_by_the_next_call() {
    let gateway = TestGateway::new().stdio("u1", &[]).start().await;
    let client = session(&gateway).await;
    let answer = call(&client, 1, "mcp_u1_spawn", json!({})).await;
    let pid = value(&answer)[0].as_i64().expect("a process id");
    let pid =
        rustix::process::Pid::from_raw(i32::try_from(pid).expect("a process id")).expect("a process id");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("killed");
    until("it was noticed", async || gateway.sample(r#"mcpgate_upstream_processes{server="u1"}"#) == 0.0)
        .await;
    let answer = call(&client, 2, "mcp_u1_echo", json!({"back": true})).await;
    assert_eq!(value(&answer), &json!({"back": true}));
}

/// case-C03: a child that cannot start or is no server is a clear error, not a hang.
#[tokio::test]
async fn a_child_that_does_not_start_is_a_clear_error() {
    let gateway = TestGateway::new()
        .command("missing", "/no/such/program", &[])
        .stdio("exits", &["--exit", "4"])
        .stdio("refuses", &["--refuse"])
        .stdio("mute", &["--mute"])
        .adjust(|s| s.timeouts.start = Duration::from_millis(300))
        .start()
        .await;
    for (server, layer) in
        [("missing", "process"), ("exits", "process"), ("refuses", "handshake"), ("mute", "handshake")]
    {
        let client = gateway.client(&format!("/servers/{server}/mcp")).initialize(REVISION).await;
        let begun = Instant::now();
        let answer = call(&client, 1, "echo", json!({})).await;
        let said = failure(&answer);
        assert_eq!((&said["server"], &said["layer"]), (&json!(server), &json!(layer)), "{answer}");
        assert!(begun.elapsed() < Duration::from_secs(2), "{server} took {:?}", begun.elapsed());
    }
}

/// case-C05: an answer for a caller that left harms nobody; others go on.
#[tokio::test]
async fn an_answer_for_a_caller_that_left_harms_nobody() {
    let gateway = TestGateway::new()
        .stdio("u1", &[])
        .adjust(|s| s.isolation = Isolation::Shared { size: 1 })
        .start()
        .await;
    let (leaver, stayer) = (session(&gateway).await, session(&gateway).await);
    let left = leaver.post(&request(1, "tools/call", tool("mcp_u1_sleep", json!({"ms": 400})))).await;
    let staying = call(&stayer, 1, "mcp_u1_sleep", json!({"ms": 700}));
    drop(left);
    assert_eq!(leaver.delete().await, 204);
    assert_eq!(value(&staying.await), &json!({"ms": 700}));
    assert_eq!(value(&call(&stayer, 2, "mcp_u1_echo", json!({"c": 3})).await), &json!({"c": 3}));
}

/// case-C09: a slow starter holds up neither initialize nor the others, and callers are told when it is there.
#[tokio::test]
async fn a_slow_starter_holds_up_nobody_and_is_announced() {
    let fast = HttpServer::start().await;
    let gateway = TestGateway::new()
        .stdio("slow", &["--delay", "1500"])
        .adjust(|s| s.timeouts.list = Duration::from_millis(300))
        .http("fast", fast.url())
        .start()
        .await;
    let begun = Instant::now();
    let client = session(&gateway).await;
    assert!(begun.elapsed() < Duration::from_secs(1));
    let mut get = client.open_get().await;
    let begun = Instant::now();
    assert_eq!(tools(&client).await, ["mcp_fast_echo"]);
    assert!(begun.elapsed() < Duration::from_secs(1), "within timeouts.list, not {:?}", begun.elapsed());
    let begun = Instant::now();
    let answer = call(&client, 2, "mcp_fast_echo", json!({})).await;
    assert!(answer["result"].is_object(), "{answer}");
    assert!(
        begun.elapsed() < Duration::from_millis(300),
        "calls are answered at once, not {:?}",
        begun.elapsed()
    );
    let begun = Instant::now();
    assert_eq!(tools(&client).await, ["mcp_fast_echo"], "a second list does not wait again");
    assert!(begun.elapsed() < Duration::from_millis(300), "not {:?}", begun.elapsed());
    let told = get.message().await.expect("a notice");
    assert_eq!(told["method"], "notifications/tools/list_changed");
    let all = tools(&client).await;
    assert!(all[0].starts_with("mcp_slow_") && all.last().is_some_and(|n| n == "mcp_fast_echo"), "{all:?}");
    assert_eq!(
        gateway.sample(r#"mcpgate_upstream_process_starts_total{server="slow"}"#),
        1.0,
        "started once"
    );
}

/// case-C09: a call to a server that still starts waits for it, as long as it may take.
#[tokio::test]
async fn a_call_to_a_server_that_starts_waits_for_it() {
    let gateway = TestGateway::new().stdio("slow", &["--delay", "800"]).start().await;
    let client = gateway.client("/servers/slow/mcp").initialize(REVISION).await;
    let both = join_all((0..5).map(|i| call(&client, i, "echo", json!({"i": i}))));
    for (i, answer) in both.await.iter().enumerate() {
        assert_eq!(value(answer), &json!({"i": i}));
    }
    assert_eq!(gateway.sample(r#"mcpgate_upstream_process_starts_total{server="slow"}"#), 1.0);
}

/// case-C11: a child gets what the config names and a few harmless variables, nothing else of ours.
#[tokio::test]
async fn a_child_inherits_no_secret() {
    let gateway = TestGateway::new()
        .stdio("u1", &[])
        .adjust(|s| {
            if let TransportSettings::Stdio(stdio) = &mut s.transport {
                stdio.env.insert("DECLARED".into(), "yes".into());
            }
        })
        .start()
        .await;
    let client = session(&gateway).await;
    let answer = call(&client, 1, "mcp_u1_environ", json!({})).await;
    let environment = value(&answer).as_object().expect("variables");
    assert_eq!(environment["DECLARED"], "yes");
    // Cargo sets some dozens of variables for this process; none is on the list of harmless ones.
    assert!(std::env::vars().any(|(name, _)| name.starts_with("CARGO_")));
    assert!(!environment.keys().any(|name| name.starts_with("CARGO")), "{environment:?}");
}

/// case-C13: over one shared child a slow call holds up nobody, and answers find their callers.
#[tokio::test]
async fn a_slow_call_over_a_shared_child_holds_up_nobody() {
    let gateway = shared_child().await;
    let (a, b) = (session(&gateway).await, session(&gateway).await);
    let slow = call(&a, 1, "mcp_u1_sleep", json!({"ms": 1500}));
    let quick = async {
        assert!(call(&b, 0, "mcp_u1_echo", json!({})).await["result"].is_object());
        let begun = Instant::now();
        let answer = call(&b, 1, "mcp_u1_sleep", json!({"ms": 10})).await;
        (begun.elapsed(), answer)
    };
    let (slow, (took, quick)) = futures_util::future::join(slow, quick).await;
    assert!(took < Duration::from_millis(300), "{took:?}");
    assert_eq!((value(&slow), value(&quick)), (&json!({"ms": 1500}), &json!({"ms": 10})));
    assert_eq!(gateway.sample(r#"mcpgate_upstream_process_starts_total{server="u1"}"#), 1.0);
}

/// case-C13: many large arguments at once arrive whole, each at its own call. (A broken line would end the child.)
#[tokio::test]
async fn many_large_arguments_at_once_arrive_whole() {
    let gateway = shared_child().await;
    let (a, b) = (session(&gateway).await, session(&gateway).await);
    let calls = (0..200_u32).map(|i| {
        let text = format!("{i}-{}", "x".repeat(100_000));
        let client = if i % 2 == 0 { &a } else { &b };
        async move { (call(client, 1, "mcp_u1_echo", json!({ "text": text })).await, text) }
    });
    for (answer, text) in join_all(calls).await {
        assert_eq!(value(&answer)["text"].as_str().map(str::len), Some(text.len()));
        assert_eq!(value(&answer)["text"], Value::from(text));
    }
    assert_eq!(gateway.sample(r#"mcpgate_upstream_process_starts_total{server="u1"}"#), 1.0);
}

/// case-C15: many first calls at once start one child, in one session as over a shared link.
#[tokio::test]
async fn many_first_calls_start_one_child() {
    let own = TestGateway::new().stdio("u1", &["--delay", "100"]).start().await;
    let client = own.client("/servers/u1/mcp").initialize(REVISION).await;
    fifty_calls(&[client]).await;
    assert_eq!(own.sample(r#"mcpgate_upstream_process_starts_total{server="u1"}"#), 1.0);

    let shared = shared_child().await;
    let mut clients = Vec::new();
    for _ in 0..5 {
        clients.push(shared.client("/servers/u1/mcp").initialize(REVISION).await);
    }
    fifty_calls(&clients).await;
    assert_eq!(shared.sample(r#"mcpgate_upstream_process_starts_total{server="u1"}"#), 1.0);
}

/// case-C15: beyond `pool.max` the error says so, names the server and comes soon; a place that is given back is
/// used again, by the end of a session as by the end of a child.
#[tokio::test]
async fn beyond_the_most_children_a_call_gets_a_clear_error() {
    let gateway = TestGateway::new()
        .stdio("u1", &[])
        .adjust(|s| {
            if let TransportSettings::Stdio(stdio) = &mut s.transport {
                stdio.max = 2;
            }
        })
        .start()
        .await;
    let mut clients = Vec::new();
    for _ in 0..3 {
        clients.push(gateway.client("/servers/u1/mcp").initialize(REVISION).await);
    }
    for client in &clients[..2] {
        assert!(call(client, 1, "echo", json!({})).await["result"].is_object());
    }
    let begun = Instant::now();
    let refused = call(&clients[2], 1, "echo", json!({})).await;
    assert!(begun.elapsed() < Duration::from_secs(3));
    let said = failure(&refused);
    assert_eq!((&said["reason"], &said["server"]), (&json!("no_capacity"), &json!("u1")), "{refused}");
    assert_eq!(said["retryable"], true);
    // The child of the first session ends; its place is free though the session lives on.
    assert!(call(&clients[0], 2, "exit", json!({"code": 0})).await["error"].is_object());
    assert!(call(&clients[2], 2, "echo", json!({})).await["result"].is_object());
    assert_eq!(clients[1].delete().await, 204);
    assert!(call(&clients[0], 3, "echo", json!({})).await["result"].is_object());
}

/// case-C17: a message beyond the limit ends the child and fails the call, soon; the next call works.
#[tokio::test]
async fn a_line_without_an_end_fails_the_call() {
    let gateway = TestGateway::new().stdio("u1", &[]).adjust(|s| s.max_message = 1 << 20).start().await;
    let client = session(&gateway).await;
    assert!(call(&client, 0, "mcp_u1_echo", json!({})).await["result"].is_object());
    let begun = Instant::now();
    let answer = call(&client, 1, "mcp_u1_flood", json!({"bytes": 8 << 20})).await;
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(failure(&answer)["reason"], "message_too_large", "{answer}");
    assert!(call(&client, 2, "mcp_u1_echo", json!({})).await["result"].is_object());
}

/// case-C03: `initialize` is answered at once even if every server is dead.
#[tokio::test]
async fn initialize_waits_for_no_server() {
    let gateway = TestGateway::new()
        .stdio("mute", &["--mute"])
        .command("missing", "/no/such/program", &[])
        .http("refused", "http://127.0.0.1:1/mcp".parse().expect("a URL"))
        .start()
        .await;
    let begun = Instant::now();
    let answer = gateway.client("/mcp").post(&init(REVISION, json!({}))).await.json().await;
    assert!(begun.elapsed() < Duration::from_millis(500));
    assert!(answer["result"]["capabilities"]["tools"].is_object(), "{answer}");
}

/// A tenant whose last session ended leaves no shared child behind.
#[tokio::test]
async fn a_shared_child_ends_after_its_last_session() {
    let setup = TestGateway::new().stdio("u1", &[]).adjust(|s| s.isolation = Isolation::Shared { size: 1 });
    // Sessions are looked at four times in this time.
    let gateway = setup.with(|s| s.sessions.idle = Duration::from_millis(400)).start().await;
    let client = gateway.client("/servers/u1/mcp").initialize(REVISION).await;
    tools(&client).await;
    assert_eq!(gateway.sample(r#"mcpgate_upstream_processes{server="u1"}"#), 1.0);
    client.delete().await;
    gateway.until(r#"mcpgate_upstream_processes{server="u1"}"#, |n| n == 0.0).await;
}

async fn shared_child() -> TestGateway {
    TestGateway::new().stdio("u1", &[]).adjust(|s| s.isolation = Isolation::Shared { size: 1 }).start().await
}

async fn fifty_calls(clients: &[Client]) {
    let calls = (0..50_usize).map(|i| call(&clients[i % clients.len()], 1, "echo", json!({"i": i})));
    for (i, answer) in join_all(calls).await.iter().enumerate() {
        assert_eq!(value(answer), &json!({"i": i}));
    }
}
