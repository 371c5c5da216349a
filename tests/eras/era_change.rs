//! Finding out an HTTP server's era, and servers that change it (T17, T64, T66).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use futures_util::future::join_all;
use mcpgate::protocol::revision::Revision;
use mcpgate::settings::servers::ProtocolSetting;
use mcpgate::settings::{ServerSettings, Settings};
use serde_json::{Value, json};

use crate::client::{Client, tool};
use crate::gateway::TestGateway;
use crate::http_server::{Answer, Gate, HttpServer, Seen, hold, rpc};
use crate::kit::{LEGACY, auto, modern};

async fn gateway(server: &HttpServer) -> TestGateway {
    TestGateway::new().http("u1", server.url()).adjust(auto).start().await
}

fn echo() -> Value {
    tool("mcp_u1_echo", json!({}))
}

async fn call(caller: &Client) -> Value {
    caller.call("c", "tools/call", echo()).await
}

fn is_ok(answer: &Value) -> bool {
    answer["result"]["content"][0]["text"] == "ok"
}

fn reason(answer: &Value) -> Option<&str> {
    answer["error"]["data"]["mcpgate"]["reason"].as_str()
}

/// T66: a server that was modern and is legacy now: the same call goes on, after one more question.
#[tokio::test]
async fn calls_go_on_at_a_server_that_became_legacy() {
    let server = HttpServer::modern().await;
    let gateway = gateway(&server).await;
    let (new, old) = (modern(&gateway, "/mcp"), gateway.client("/mcp").initialize(LEGACY).await);
    assert!(is_ok(&new.call(1, "tools/call", echo()).await) && is_ok(&call(&old).await));
    server.turn_legacy();
    assert!(is_ok(&call(&old).await));
    assert!(is_ok(&new.call(2, "tools/call", echo()).await));
    assert_eq!(server.count(rpc("server/discover")), 2);
    let in_session = |seen: &Seen| seen.is("tools/call") && seen.header("mcp-session-id").is_some();
    assert_eq!(server.count(in_session), 2, "each caller has a session of its own now");
}

/// T66: the same where the legacy server says in JSON that it misses a session.
#[tokio::test]
async fn a_missing_session_tells_that_a_server_is_legacy() {
    for code in [-32600, -32000] {
        let server = HttpServer::modern().await;
        let gateway = gateway(&server).await;
        let old = gateway.client("/mcp").initialize(LEGACY).await;
        assert!(is_ok(&call(&old).await));
        server.turn_legacy();
        let sessionless = |seen: &Seen| !seen.is("initialize") && seen.header("mcp-session-id").is_none();
        server.on(sessionless, Answer::error(code, "Bad Request: no session").with_status(400));
        assert!(is_ok(&call(&old).await));
    }
}

/// T66: a server that was legacy and is modern now: sessions go on there, and their old links are not used again.
#[tokio::test]
async fn calls_go_on_at_a_server_that_became_modern() {
    let server = HttpServer::start().await;
    let gateway = gateway(&server).await;
    let callers =
        [gateway.client("/mcp").initialize(LEGACY).await, gateway.client("/mcp").initialize(LEGACY).await];
    for caller in &callers {
        assert!(is_ok(&call(caller).await));
    }
    assert_eq!(server.count(rpc("initialize")), 2);
    server.turn_modern();
    for caller in &callers {
        let answer = call(caller).await;
        assert!(is_ok(&answer), "{answer}");
    }
    assert_eq!(server.count(rpc("server/discover")), 2);
    assert_eq!(server.count(rpc("initialize")), 2);
    let lost = |seen: &Seen| seen.is("tools/call") && seen.header("mcp-session-id").is_some();
    assert_eq!(server.count(lost), 3, "only the call that found out went to the old session");
}

/// T66: the same where the modern server answers 404 to all it does not know, as a lost session would.
#[tokio::test]
async fn a_session_that_cannot_be_renewed_tells_that_a_server_is_modern() {
    let server = HttpServer::start().await;
    let gateway = gateway(&server).await;
    let old = gateway.client("/mcp").initialize(LEGACY).await;
    assert!(is_ok(&call(&old).await));
    server.turn_modern();
    server.on(|seen| seen.header("mcp-method").is_none(), Answer::status(404));
    let answer = call(&old).await;
    assert!(is_ok(&answer), "{answer}");
}

/// A server remembered as legacy that refuses `initialize` since it is modern.
#[tokio::test]
async fn a_refused_initialize_tells_that_a_server_is_modern() {
    let server = HttpServer::start().await;
    let gateway = gateway(&server).await;
    assert!(is_ok(&call(&gateway.client("/mcp").initialize(LEGACY).await).await));
    server.turn_modern();
    let answer = call(&gateway.client("/mcp").initialize(LEGACY).await).await;
    assert!(is_ok(&answer), "{answer}");
    let list = modern(&gateway, "/mcp").call(1, "tools/list", json!({})).await;
    assert_eq!(list["result"]["tools"][0]["name"], "mcp_u1_echo");
}

/// T66: lists are read again from the server as it is now.
#[tokio::test]
async fn lists_go_on_over_a_change() {
    let server = HttpServer::modern().await;
    let gateway = gateway(&server).await;
    let new = modern(&gateway, "/mcp");
    assert!(is_ok(&new.call(1, "tools/call", echo()).await));
    server.turn_legacy();
    let listed = gateway.client("/mcp").initialize_with(LEGACY, json!({ "roots": {} })).await;
    let list = listed.call(1, "tools/list", json!({})).await;
    assert_eq!(list["result"]["tools"][0]["name"], "mcp_u1_echo", "{list}");
    server.await_request(rpc("initialize")).await;
}

/// T66: however many calls find out at once, the server is asked once.
#[tokio::test]
async fn a_change_is_found_out_once() {
    let server = HttpServer::modern().await;
    let gateway = gateway(&server).await;
    let new = modern(&gateway, "/mcp");
    assert!(is_ok(&new.call(1, "tools/call", echo()).await));
    server.turn_legacy();
    let answers = join_all((0..8).map(|n| new.call(n, "tools/call", echo()))).await;
    assert!(answers.iter().all(is_ok), "{answers:?}");
    assert_eq!(server.count(rpc("server/discover")), 2);
    assert_eq!(server.count(rpc("initialize")), 1);
}

/// A server that only looks like one of the other era is asked once in a while, and its answers stay its own.
#[tokio::test]
async fn a_doubt_that_comes_to_nothing_changes_nothing() {
    let server = HttpServer::modern().await;
    server.on(rpc("tools/call"), Answer::error(-32600, "its own").with_status(400));
    let gateway = gateway(&server).await;
    let new = modern(&gateway, "/mcp");
    for n in 0..5 {
        let answer = new.call(n, "tools/call", echo()).await;
        assert_eq!(answer["error"], json!({ "code": -32600, "message": "its own" }));
    }
    assert_eq!(server.count(rpc("tools/call")), 5, "none was sent again");
    assert!(server.count(rpc("server/discover")) <= 2);
    assert_eq!(server.count(rpc("initialize")), 0);
}

/// case-H13: an error that says nothing about whether the request ran is the answer, also where it shows a change.
#[tokio::test]
async fn what_may_have_run_is_not_sent_again() {
    let server = HttpServer::modern().await;
    let gateway = gateway(&server).await;
    let new = modern(&gateway, "/mcp");
    assert!(is_ok(&new.call(1, "tools/call", echo()).await));
    server.turn_legacy();
    server.once(rpc("tools/call"), Answer::error(-32000, "its own"));
    assert_eq!(new.call(2, "tools/call", echo()).await["error"]["message"], "its own");
    assert_eq!(server.count(rpc("tools/call")), 2);
    assert!(is_ok(&new.call(3, "tools/call", echo()).await), "the next one knows better");
}

/// A pinned server is believed to be what the config says.
#[tokio::test]
async fn a_pinned_server_is_never_asked_again() {
    let pinned = |server: &mut ServerSettings| server.protocol = ProtocolSetting::Pinned(Revision::LATEST);
    let server = HttpServer::modern().await;
    let gateway = TestGateway::new().http("u1", server.url()).adjust(pinned).start().await;
    let new = modern(&gateway, "/mcp");
    assert!(is_ok(&new.call(1, "tools/call", echo()).await));
    let asked = server.count(rpc("server/discover"));
    server.turn_legacy();
    assert_eq!(reason(&new.call(2, "tools/call", echo()).await), Some("http_status"));
    assert_eq!(server.count(rpc("server/discover")), asked);
    assert_eq!(server.count(rpc("initialize")), 0);
}

/// T64: a server that is down is down, and not legacy.
#[tokio::test]
async fn a_server_that_is_down_is_not_taken_for_legacy() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap()).parse().unwrap();
    drop(listener);
    let gateway = TestGateway::new().http("u1", url).adjust(auto).start().await;
    let answer = modern(&gateway, "/servers/u1/mcp").call(1, "tools/call", tool("echo", json!({}))).await;
    assert_eq!(reason(&answer), Some("unreachable"), "{answer}");
}

/// A server that is busy says nothing about its era: `initialize` is tried, and nothing is remembered.
#[tokio::test]
async fn a_server_that_is_busy_is_asked_again() {
    let server = HttpServer::modern().await;
    let busy = Arc::new(AtomicBool::new(true));
    let is_busy = busy.clone();
    server.on(move |_| is_busy.load(Relaxed), Answer::status(503));
    let gateway = gateway(&server).await;
    let new = modern(&gateway, "/servers/u1/mcp");
    let answer = new.call(1, "tools/call", tool("echo", json!({}))).await;
    assert_eq!(reason(&answer), Some("http_status"), "{answer}");
    let tried = server.count(rpc("initialize"));
    assert!(tried > 0);
    busy.store(false, Relaxed);
    let answer = new.call(2, "tools/call", tool("echo", json!({}))).await;
    assert!(is_ok(&answer), "{answer}");
    assert_eq!(server.count(rpc("initialize")), tried);
}

/// A server that does not know the gateway's credentials would know them no better after `initialize`.
#[tokio::test]
async fn a_server_that_refuses_credentials_is_not_taken_for_legacy() {
    for answer in [Answer::status(401), Answer::error(-32600, "who are you").with_status(403)] {
        let server = HttpServer::modern().await;
        server.on(|_| true, answer);
        let gateway = gateway(&server).await;
        let answer = modern(&gateway, "/servers/u1/mcp").call(1, "tools/call", tool("echo", json!({}))).await;
        assert_eq!(reason(&answer), Some("upstream_unauthorized"), "{answer}");
        assert_eq!(server.count(rpc("initialize")), 0);
    }
}

/// T64: a modern error is a modern answer; `initialize` is never sent then.
#[tokio::test]
async fn a_modern_error_tells_that_a_server_is_modern() {
    let supported =
        r#""error":{"code":-32022,"message":"x","data":{"supported":["2026-07-28"],"requested":"y"}}"#;
    for (always, answer) in [
        (false, Answer::members(supported).with_status(400)),
        (true, Answer::members(supported).with_status(400)),
        (true, Answer::error(-32020, "x").with_status(400)),
        (true, Answer::error(-32021, "x").with_status(400)),
    ] {
        let server = HttpServer::modern().await;
        if always {
            server.on(rpc("server/discover"), answer);
        } else {
            server.once(rpc("server/discover"), answer);
        }
        let gateway = gateway(&server).await;
        let answer = modern(&gateway, "/mcp").call(1, "tools/call", echo()).await;
        assert!(is_ok(&answer), "{answer}");
        assert_eq!(server.count(rpc("initialize")), 0);
        assert_eq!(server.count(rpc("server/discover")), 2, "it may say more when asked again");
    }
}

/// A server that speaks only what is not served here says so; that is no reason to try `initialize`.
#[tokio::test]
async fn a_server_that_is_too_new_is_said_to_be() {
    let server = HttpServer::modern().await;
    let error =
        r#""error":{"code":-32022,"message":"x","data":{"supported":["2031-01-01"],"requested":"y"}}"#;
    server.on(rpc("server/discover"), Answer::members(error).with_status(400));
    let gateway = gateway(&server).await;
    let answer = modern(&gateway, "/servers/u1/mcp").call(1, "tools/call", tool("echo", json!({}))).await;
    assert_eq!(reason(&answer), Some("unsupported_revision"));
    assert!(answer["error"]["message"].as_str().unwrap().contains("2031-01-01"), "{answer}");
    assert_eq!(server.count(rpc("initialize")), 0);
}

/// T64: a server that does not answer the question at all is initialized in time.
#[tokio::test]
async fn a_silent_server_is_initialized() {
    let server = HttpServer::start().await;
    server.on(rpc("server/discover"), Answer::events([hold()]));
    let hasty = |server: &mut ServerSettings| server.timeouts.start = Duration::from_millis(500);
    let gateway = TestGateway::new().http("u1", server.url()).adjust(auto).adjust(hasty).start().await;
    let answer = modern(&gateway, "/servers/u1/mcp").call(1, "tools/call", tool("echo", json!({}))).await;
    assert!(is_ok(&answer), "{answer}");
    server.await_hang_up(rpc("server/discover")).await;
    assert_eq!(server.count(rpc("server/discover")), 1, "its silence is waited for once for a link");
}

/// T66: many who wait for a server that fails wait for one question, and all hear how that one failed.
#[tokio::test]
async fn a_server_that_fails_is_asked_once_for_all_who_wait() {
    let server = HttpServer::modern().await;
    let gate = Gate::new();
    server.on(|_| true, Answer::status(401).after(&gate));
    let soon = |settings: &mut Settings| settings.streams.keep_alive = Duration::from_millis(20);
    let gateway = TestGateway::new().http("u1", server.url()).adjust(auto).with(soon).start().await;
    let caller = modern(&gateway, "/servers/u1/mcp");
    let calls = (0..8).map(|n| caller.request(n, "tools/call", tool("echo", json!({}))));
    // Each has begun to wait when its stream begins.
    let waiting = join_all(calls.map(async |call| caller.post(&call).await)).await;
    gate.open();
    for answer in join_all(waiting.into_iter().map(crate::client::Answer::response)).await {
        assert_eq!(reason(&answer), Some("upstream_unauthorized"), "{answer}");
    }
    assert_eq!(server.count(rpc("server/discover")), 1);
}

/// T66, case-C09: a caller that leaves takes the question from nobody who waits for it too.
#[tokio::test]
async fn a_question_goes_on_when_the_caller_that_came_first_leaves() {
    let server = HttpServer::modern().await;
    let gate = Gate::new();
    server.once(rpc("server/discover"), Answer::status(401).after(&gate));
    let gateway = gateway(&server).await;
    let caller = modern(&gateway, "/servers/u1/mcp");
    let call = || caller.call(1, "tools/call", tool("echo", json!({})));
    tokio::select! {
        answer = call() => panic!("nobody said anything yet: {answer}"),
        _ = server.await_request(rpc("server/discover")) => {}
    }
    gateway.until(r#"mcpgate_requests_total{method="tools/call",outcome="cancelled"}"#, |n| n == 1.0).await;
    let (answer, ()) = tokio::join!(call(), async { gate.open() });
    assert_eq!(reason(&answer), Some("upstream_unauthorized"), "{answer}");
    assert_eq!(server.count(rpc("server/discover")), 1);
}

/// T64: whatever else a legacy server says to an unknown method, it is legacy.
#[tokio::test]
async fn anything_else_leads_to_initialize() {
    for answer in [
        Answer::status(400),
        Answer::status(404),
        Answer::status(405),
        Answer::status(202),
        Answer::body("text/html", "<p>hello</p>"),
        Answer::body("text/plain", "no session").with_status(400),
        Answer::error(-32601, "Method not found"),
        Answer::error(-32602, "Invalid request parameters"),
        Answer::error(-32000, "Server not initialized").with_status(400),
        Answer::result("{}"),
    ] {
        let server = HttpServer::start().await;
        server.on(rpc("server/discover"), answer);
        let gateway = gateway(&server).await;
        let answer = modern(&gateway, "/mcp").call(1, "tools/call", echo()).await;
        assert!(is_ok(&answer), "{answer}");
        assert_eq!(server.count(rpc("initialize")), 1);
    }
}
