//! A caller takes a request back.

use std::time::{Duration, Instant};

use futures_util::future::join;
use serde_json::{Value, json};

use crate::client::{Client, request, tool};
use crate::gateway::TestGateway;
use crate::http_server::{Answer, Gate, HttpServer, hold, hold_until, http, result, rpc};
use crate::kit::{REVISION, call, session, until, value};

async fn cancel(client: &Client, id: impl Into<Value>) {
    let params = json!({"requestId": id.into(), "reason": "changed my mind"});
    let note = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    assert_eq!(client.post(&note).await.status, 202);
}

/// What a POST was answered with, when it ended: all messages.
async fn messages(client: &Client, body: Value) -> Vec<Value> {
    let answer = client.post(&body).await;
    if answer.is_stream() {
        return answer.stream().rest().await;
    }
    let text = answer.text().await;
    if text.is_empty() { Vec::new() } else { vec![serde_json::from_str(&text).expect("JSON")] }
}

/// case-H09: the server that works on it hears of it soon and by its own id, other servers hear nothing, and no
/// response comes. Whether the answer was to be a stream or JSON makes no difference.
#[tokio::test]
async fn a_cancelled_call_ends_without_a_response() {
    let (u1, u2) = (HttpServer::start().await, HttpServer::start().await);
    for server in [&u1, &u2] {
        server.on(rpc("tools/call"), Answer::events([hold()]));
    }
    let gateway = TestGateway::new().http("u1", u1.url()).http("u2", u2.url()).start().await;
    let client = session(&gateway).await;
    for (n, id, client) in [
        (1, json!(101), client.clone()),
        (2, json!("a"), client.clone().header("accept", "application/json")),
        (3, json!(101), client.clone().header("accept", "text/event-stream")),
    ] {
        let other = messages(&client, request("other", "tools/call", tool("mcp_u2_echo", json!({}))));
        let other = tokio::time::timeout(Duration::from_millis(1), other);
        let cancelled = async {
            let seen = u1.await_requests(n, rpc("tools/call")).await;
            let begun = Instant::now();
            cancel(&client, id.clone()).await;
            let told = u1.await_requests(n, rpc("notifications/cancelled")).await;
            assert!(begun.elapsed() < Duration::from_millis(200), "{:?}", begun.elapsed());
            assert_eq!(told[n - 1].json()["params"]["requestId"], seen[n - 1].json()["id"]);
        };
        let asked = messages(&client, request(id.clone(), "tools/call", tool("mcp_u1_echo", json!({}))));
        let ((said, ()), _) = join(join(asked, cancelled), other).await;
        assert_eq!(said, Vec::<Value>::new());
    }
    assert_eq!(u2.count(rpc("notifications/cancelled")), 0);
}

/// case-H09: the same for every method that goes to a server, and over stdio.
#[tokio::test]
async fn every_relayed_method_can_be_cancelled() {
    let server =
        crate::kit::server_with(r#"{"tools":{},"prompts":{},"resources":{},"completions":{}}"#).await;
    let gateway = TestGateway::new().http("u1", server.url()).stdio("u2", &[]).start().await;
    let client = gateway.client("/servers/u1/mcp").initialize(REVISION).await;
    let methods = [
        ("tools/call", tool("echo", json!({}))),
        ("prompts/get", json!({"name": "p"})),
        ("resources/read", json!({"uri": "x://a"})),
        ("resources/subscribe", json!({"uri": "x://a"})),
        ("resources/unsubscribe", json!({"uri": "x://a"})),
        ("completion/complete", json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {}})),
        ("vendor/method", json!({})),
    ];
    for (n, (method, params)) in methods.into_iter().enumerate() {
        server.on(move |seen| seen.is(method), Answer::events([hold()]));
        let asked = messages(&client, request(1, method, params));
        let cancelled = async {
            let seen = server.await_request(move |seen| seen.is(method)).await;
            cancel(&client, 1).await;
            let told = server.await_requests(n + 1, rpc("notifications/cancelled")).await;
            assert_eq!(told[n].json()["params"]["requestId"], seen.json()["id"], "{method}");
        };
        assert_eq!(join(asked, cancelled).await.0, Vec::<Value>::new(), "{method}");
    }
    let client = session(&gateway).await;
    assert!(call(&client, 0, "mcp_u2_echo", json!({})).await["result"].is_object());
    let asked = messages(&client, request(9, "tools/call", tool("mcp_u2_sleep", json!({"ms": 700}))));
    let cancelled = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        cancel(&client, 9).await;
        let begun = Instant::now();
        until("the child heard of it", async || {
            let heard = call(&client, 2, "mcp_u2_heard", json!({})).await;
            value(&heard).to_string().contains("notifications/cancelled")
        })
        .await;
        assert!(begun.elapsed() < Duration::from_millis(400), "{:?}", begun.elapsed());
    };
    assert_eq!(join(asked, cancelled).await.0, Vec::<Value>::new());
}

/// case-H09: another session's cancel has no effect, nor has one of an id that is unknown, finished or of another
/// type; all of them are taken.
#[tokio::test]
async fn only_the_callers_own_requests_are_cancelled() {
    let server = HttpServer::start().await;
    let gate = Gate::new();
    server.once(rpc("tools/call"), Answer::result(r#"{"content":[]}"#));
    server.on(rpc("tools/call"), Answer::events([hold_until(&gate), result(r#"{"content":[]}"#)]));
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let (a, b) = (session(&gateway).await, session(&gateway).await);
    assert!(call(&a, 7, "mcp_u1_echo", json!({})).await["result"].is_object());
    let asked = call(&a, 101, "mcp_u1_echo", json!({}));
    let others = async {
        server.await_requests(2, rpc("tools/call")).await;
        cancel(&b, 101).await;
        for id in [json!("101"), json!(7), json!(8), json!(null), json!({}), json!(101.5)] {
            cancel(&a, id).await;
        }
        for params in [json!({}), json!([101]), json!({"requestid": 101})] {
            let note = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
            assert_eq!(a.post(&note).await.status, 202);
        }
        gate.open();
    };
    let (answer, ()) = join(asked, others).await;
    assert!(answer["result"].is_object(), "{answer}");
    assert_eq!(server.count(rpc("notifications/cancelled")), 0);
}

/// case-H09: a request that waits for its server to start can be cancelled; the server goes on starting and serves
/// the next one.
#[tokio::test]
async fn a_request_that_waits_for_its_server_can_be_cancelled() {
    let gateway = TestGateway::new().stdio("slow", &["--delay", "1200"]).start().await;
    let client = gateway.client("/servers/slow/mcp").initialize(REVISION).await;
    let begun = Instant::now();
    let asked = messages(&client, request("w", "tools/call", tool("echo", json!({}))));
    let cancelled = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        cancel(&client, "w").await;
    };
    assert_eq!(join(asked, cancelled).await.0, Vec::<Value>::new());
    assert!(begun.elapsed() < Duration::from_millis(800), "{:?}", begun.elapsed());
    let heard = call(&client, 2, "heard", json!({})).await;
    assert!(!value(&heard).to_string().contains("cancelled"), "it never saw the call: {heard}");
    assert_eq!(gateway.sample(r#"mcpgate_upstream_process_starts_total{server="slow"}"#), 1.0);
}

/// case-H09: a list that waits for servers can be cancelled, as can a call whose name is looked for.
#[tokio::test]
async fn lists_can_be_cancelled() {
    let server = crate::kit::server_with(r#"{"tools":{},"prompts":{},"resources":{}}"#).await;
    for method in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
        server.on(move |seen| seen.is(method), Answer::events([hold()]));
    }
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = session(&gateway).await;
    for (method, params) in [
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("tools/call", tool("mcp_u1_x", json!({}))),
        ("resources/read", json!({"uri": "x://a"})),
    ] {
        let begun = Instant::now();
        let asked = messages(&client, request("l", method, params));
        let cancelled = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            cancel(&client, "l").await;
        };
        assert_eq!(join(asked, cancelled).await.0, Vec::<Value>::new(), "{method}");
        assert!(begun.elapsed() < Duration::from_secs(1), "{method}: {:?}", begun.elapsed());
    }
}

/// case-H09, case-H01: of two requests with one id the newer one is meant.
#[tokio::test]
async fn of_two_requests_with_one_id_the_newer_is_meant() {
    let server = HttpServer::start().await;
    let gate = Gate::new();
    server.on(rpc("tools/call"), Answer::events([hold_until(&gate), result(r#"{"content":[]}"#)]));
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = session(&gateway).await;
    let older = messages(&client, request(1, "tools/call", tool("mcp_u1_echo", json!({"n": "older"}))));
    let newer = async {
        server.await_request(rpc("tools/call")).await;
        messages(&client, request(1, "tools/call", tool("mcp_u1_echo", json!({"n": "newer"})))).await
    };
    let cancelled = async {
        server.await_requests(2, rpc("tools/call")).await;
        cancel(&client, 1).await;
        server.await_request(rpc("notifications/cancelled")).await;
        gate.open();
    };
    let ((older, newer), ()) = join(join(older, newer), cancelled).await;
    assert_eq!((older.len(), newer.len()), (1, 0), "{older:?} {newer:?}");
}

/// T24: a caller that hangs up has not cancelled; its server works on.
#[tokio::test]
async fn a_caller_that_hangs_up_has_not_cancelled() {
    let server = HttpServer::start().await;
    let gate = Gate::new();
    server.on(rpc("tools/call"), Answer::events([hold_until(&gate), result(r#"{"content":[]}"#)]));
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = session(&gateway).await;
    let answer = client.post(&request(1, "tools/call", tool("mcp_u1_echo", json!({})))).await;
    let mut stream = answer.stream();
    stream.event().await.expect("a priming event");
    let last = stream.last_id.clone().expect("an id");
    drop(stream);
    gate.open();
    let resumed = client.resume(&last).await.stream().rest().await;
    assert!(resumed[0]["result"].is_object(), "{resumed:?}");
    assert_eq!(server.count(rpc("notifications/cancelled")), 0);
}

/// DELETE ends running calls with an error each, wherever they are.
#[tokio::test]
async fn the_end_of_a_session_ends_what_runs_with_an_error() {
    let server = HttpServer::start().await;
    server.on(rpc("tools/call"), Answer::events([hold()]));
    let gateway =
        TestGateway::new().http("u1", server.url()).stdio("slow", &["--delay", "60000"]).start().await;
    let client = session(&gateway).await;
    let single = gateway.client("/servers/slow/mcp").initialize(REVISION).await;
    let at_server = messages(&client, request("s", "tools/call", tool("mcp_u1_echo", json!({}))));
    let listing = messages(&single, request("l", "tools/list", json!({})));
    let starting = messages(&single, request("w", "tools/call", tool("echo", json!({}))));
    let ended = async {
        server.await_request(rpc("tools/call")).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(client.delete().await, 204);
        assert_eq!(single.delete().await, 204);
    };
    let begun = Instant::now();
    let (((at_server, listing), starting), ()) = join(join(join(at_server, listing), starting), ended).await;
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    for (id, said) in [("s", at_server), ("l", listing), ("w", starting)] {
        assert_eq!(said.len(), 1, "{id}: {said:?}");
        assert_eq!(
            (said[0]["id"].as_str(), said[0]["error"]["code"].as_i64()),
            (Some(id), Some(-32603)),
            "{said:?}"
        );
    }
    server.await_request(http(http::Method::DELETE)).await;
}
