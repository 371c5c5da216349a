//! What is sent again and what never is, and how requests end that lead nowhere.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{init, request, tool};
use crate::gateway::TestGateway;
use crate::http_server::{Answer, HttpServer, Step, break_off, message, reset, rpc};
use crate::kit::{REVISION, call, failure, server_with, session, until, value};

/// case-H13: whatever breaks after the server may have begun, the call is not sent again, and the caller is told
/// that its outcome is unknown.
#[tokio::test]
async fn a_call_that_may_have_run_is_never_sent_again() {
    let progress =
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#;
    let broken: Vec<(&str, Answer)> = vec![
        ("reset before the head", Answer::reset()),
        ("end before the head", Answer::hang_up()),
        ("no HTTP", Answer::bare("SSH-2.0-OpenSSH\r\n")),
        ("half a body", Answer::json(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).cut(20)),
        ("an empty body", Answer::json("")),
        ("no JSON", Answer::json("<html>")),
        ("no MCP", Answer::body("text/html", "<html>secret</html>")),
        ("a stream without a word", Answer::events([])),
        ("a stream cut off", Answer::events([message(progress), break_off()])),
        ("a stream reset", Answer::events([message(progress), reset()])),
        ("a stream of nonsense", Answer::events([message("{nonsense")])),
        ("500", Answer::status(500)),
        ("502", Answer::body("text/html", "<html>secret</html>").with_status(502)),
        ("503", Answer::status(503)),
        ("401", Answer::status(401)),
        ("403", Answer::status(403)),
        ("202", Answer::status(202)),
        ("204", Answer::status(204)),
    ];
    let server = HttpServer::start().await;
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = session(&gateway).await;
    assert!(call(&client, 0, "mcp_u1_echo", json!({})).await["result"].is_object());
    for (n, (what, answer)) in broken.into_iter().enumerate() {
        server.once(rpc("tools/call"), answer);
        let begun = Instant::now();
        let response = client.post(&request(what, "tools/call", tool("mcp_u1_echo", json!({})))).await;
        assert_eq!(response.status, 200, "{what}");
        let request_id = response.header("x-request-id").map(str::to_owned);
        let response = response.response().await;
        assert!(begun.elapsed() < Duration::from_secs(2), "{what}");
        assert_eq!(
            (&response["id"], &response["error"]["code"]),
            (&json!(what), &json!(-32603)),
            "{response}"
        );
        let said = failure(&response);
        assert_eq!(
            (&said["server"], &said["retryable"]),
            (&json!("u1"), &json!(false)),
            "{what} -> {response}"
        );
        assert_eq!(said["layer"], "transport", "{what} -> {response}");
        assert_eq!(said["requestId"].as_str(), request_id.as_deref(), "{what} -> {response}");
        assert!(!response.to_string().contains("secret"), "{response}");
        assert_eq!(server.count(rpc("tools/call")), n + 2, "{what}: sent once");
    }
    assert!(call(&client, 1, "mcp_u1_echo", json!({})).await["result"].is_object());
}

/// case-H13: a server that cannot be reached is a clear error, soon; when it is back calls work without a person.
#[tokio::test]
async fn a_server_that_cannot_be_reached_is_a_clear_error() {
    let gone = HttpServer::start().await;
    let url = gone.url();
    drop(gone);
    let gateway = TestGateway::new().http("u1", url).start().await;
    let client = gateway.client("/servers/u1/mcp").initialize(REVISION).await;
    for _ in 0..2 {
        let begun = Instant::now();
        let answer = call(&client, 1, "echo", json!({})).await;
        assert!(begun.elapsed() < Duration::from_secs(1));
        let said = failure(&answer);
        assert_eq!((&said["server"], &said["layer"]), (&json!("u1"), &json!("transport")), "{answer}");
        assert_eq!((&said["reason"], &said["retryable"]), (&json!("unreachable"), &json!(true)), "{answer}");
        assert!(!answer.to_string().contains("127.0.0.1"), "{answer}");
    }
}

/// case-H13: what a server says itself is passed on and never tried again: its errors, and tools that failed.
#[tokio::test]
async fn a_servers_own_errors_are_passed_on() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = session(&gateway).await;
    assert!(call(&client, 0, "mcp_u1_echo", json!({})).await["result"].is_object());
    let answers = [
        Answer::error(-32603, "mine"),
        Answer::error(-32603, "mine").with_status(500),
        Answer::error(-32603, "mine").with_status(400),
    ];
    for (n, answer) in answers.into_iter().enumerate() {
        server.once(rpc("tools/call"), answer);
        let response = call(&client, 1, "mcp_u1_echo", json!({})).await;
        assert_eq!(response["error"], json!({"code": -32603, "message": "mine"}), "{response}");
        assert_eq!(server.count(rpc("tools/call")), n + 2);
    }
    let failed = r#"{"isError":true,"content":[{"type":"text","text":"no"}]}"#;
    server.once(rpc("tools/call"), Answer::result(failed));
    let response = call(&client, 1, "mcp_u1_echo", json!({})).await;
    assert_eq!(response["result"]["isError"], true);
    assert_eq!(server.count(rpc("tools/call")), 5);
    assert_eq!(gateway.sample(r#"mcpgate_calls_total{outcome="tool_error",server="u1"}"#), 1.0);
}

/// case-H13: a child that ends between two calls has not seen the second one, so that goes to its successor.
#[tokio::test]
async fn a_call_that_surely_did_not_run_goes_to_the_next_child() {
    let gateway = TestGateway::new().stdio("u1", &[]).start().await;
    let client = session(&gateway).await;
    for round in 0..5 {
        let answer = call(&client, 1, "mcp_u1_answer_and_exit", json!({"round": round})).await;
        assert_eq!(value(&answer)["round"], round);
        // At once, while the first child is still being buried.
        let answer = call(&client, 2, "mcp_u1_echo", json!({"round": round})).await;
        let ran = answer["result"].is_object();
        assert!(ran || failure(&answer)["layer"] == "process", "{answer}");
        until("the next child works", async || {
            call(&client, 3, "mcp_u1_echo", json!({})).await["result"].is_object()
        })
        .await;
    }
}

/// case-H15: what a caller asks before `notifications/initialized` is served; clients are not all in order.
#[tokio::test]
async fn requests_before_initialized_are_served() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let answer = gateway.client("/mcp").post(&init(REVISION, json!({}))).await;
    let id = answer.header("mcp-session-id").expect("a session").to_owned();
    let client = gateway.client("/mcp").header("mcp-session-id", &id);
    assert_eq!(crate::kit::tools(&client).await, ["mcp_u1_echo"]);
    assert!(call(&client, 1, "mcp_u1_echo", json!({})).await["result"].is_object());
    assert_eq!(client.call(2, "ping", json!({})).await["result"], json!({}));
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    for _ in 0..2 {
        assert_eq!(client.post(&note).await.status, 202);
    }
}

/// case-H15: unknown tools, prompts and resources, with the caller's id, at HTTP 200, soon.
#[tokio::test]
async fn what_nobody_has_is_said_to_be_unknown() {
    let server = server_with(r#"{"tools":{},"prompts":{}}"#).await;
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = session(&gateway).await;
    for (method, params, code) in [
        ("tools/call", json!({"name": "nope"}), -32602),
        ("tools/call", json!({"name": "mcp_u1_nope", "arguments": {}}), -32602),
        ("tools/call", json!({"name": "echo"}), -32602),
        ("tools/call", json!({"name": ""}), -32602),
        ("tools/call", json!({"name": "x".repeat(10_000)}), -32602),
        ("prompts/get", json!({"name": "nope"}), -32602),
        ("resources/read", json!({"uri": "x://nope"}), -32002),
        ("resources/subscribe", json!({"uri": "x://nope"}), -32002),
        ("resources/read", json!({}), -32602),
        ("resources/read", json!({"uri": 7}), -32602),
        ("logging/setLevel", json!({"level": "loud"}), -32602),
        ("logging/setLevel", json!({}), -32602),
        ("completion/complete", json!({}), -32602),
        ("foo/bar", json!({}), -32601),
        ("", json!({}), -32601),
        ("server/discover", json!({}), -32601),
        ("tasks/list", json!({}), -32601),
        ("initialize", json!({}), -32600),
    ] {
        let answer = client.post(&request(method, method, params.clone())).await;
        let status = if method == "initialize" { 400 } else { 200 };
        assert_eq!(answer.status, status, "{method} {params}");
        let answer = answer.response().await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(method), &json!(code)), "{answer}");
        assert!(answer.to_string().len() < 2000, "a long name is not repeated whole");
    }
    assert_eq!(server.count(rpc("tools/call")), 0);
}

/// case-H15: on the endpoint of one server a method nobody here knows is the server's own business.
#[tokio::test]
async fn an_unknown_method_is_passed_on_to_a_single_server() {
    let server = HttpServer::start().await;
    server.on_each(rpc("vendor/method"), |seen| {
        let params = seen.json()["params"].clone();
        Answer::result(&json!({"echo": params}).to_string())
    });
    let gateway = TestGateway::new().http("u1", server.url()).http("u2", server.url()).start().await;
    let client = gateway.client("/servers/u1/mcp").initialize(REVISION).await;
    let answer = client.call("v", "vendor/method", json!({"a": [1], "name": "x"})).await;
    assert_eq!(answer, json!({"jsonrpc": "2.0", "id": "v", "result": {"echo": {"a": [1], "name": "x"}}}));
    let answer = client.call("w", "vendor/unknown", json!({})).await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("w"), &json!(-32601)));
    let note = json!({"jsonrpc": "2.0", "method": "notifications/vendor", "params": {"x": 1}});
    assert_eq!(client.post(&note).await.status, 202);
    let seen = server.await_request(rpc("notifications/vendor")).await;
    assert_eq!(seen.json(), note);
    let all = session(&gateway).await;
    assert_eq!(all.call(1, "vendor/method", json!({})).await["error"]["code"], -32601);
    assert_eq!(all.post(&note).await.status, 202);
    assert_eq!(server.count(rpc("notifications/vendor")), 1);
}

/// case-H15: a name that appeared a moment ago is found, by one look at the servers.
#[tokio::test]
async fn a_new_name_is_found_by_looking_again() {
    let gateway = TestGateway::new().stdio("u1", &[]).start().await;
    let client = session(&gateway).await;
    crate::kit::tools(&client).await;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let grown = call(&client, 1, "mcp_u1_grow", json!({"name": "fresh", "quietly": true})).await;
    assert!(grown["result"].is_object(), "{grown}");
    let answer = call(&client, 2, "mcp_u1_fresh", json!({})).await;
    // It reached the server, which has no code for it.
    assert_eq!(answer["error"]["message"], "unknown tool fresh", "{answer}");
}

/// Promise 10: who misses a tool is told which servers could not be listed.
#[tokio::test]
async fn who_misses_a_tool_is_told_which_servers_are_missing() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new()
        .http("u1", server.url())
        .http("gone", "http://127.0.0.1:1/mcp".parse().expect("a URL"))
        .start()
        .await;
    let client = session(&gateway).await;
    let answer = call(&client, 1, "mcp_gone_tool", json!({})).await;
    let said: &Value = &answer["error"]["message"];
    assert!(said.as_str().is_some_and(|m| m.contains("gone") && !m.contains("u1")), "{answer}");
}

/// case-H13: a stream that ends before its result is resumed where the server lets it, not called again.
#[tokio::test]
async fn a_stream_that_can_be_resumed_is_resumed() {
    let server = HttpServer::start().await;
    let steps: Vec<Step> = vec![crate::http_server::primed("e1"), crate::http_server::retry(20)];
    server.once(rpc("tools/call"), Answer::events(steps));
    server.on_each(
        |seen| seen.method == http::Method::GET && seen.header("last-event-id") == Some("e1"),
        |_| Answer::status(503),
    );
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = session(&gateway).await;
    let asked = call(&client, 1, "mcp_u1_echo", json!({}));
    let resumed = async {
        server.await_request(|seen| seen.header("last-event-id") == Some("e1")).await;
        let id = server.await_request(rpc("tools/call")).await.id.expect("an id");
        let response = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}"#);
        server.on(
            |seen| seen.method == http::Method::GET && seen.header("last-event-id") == Some("e1"),
            Answer::events([message(&response)]),
        );
    };
    let (answer, ()) = futures_util::future::join(asked, resumed).await;
    assert!(answer["result"].is_object(), "{answer}");
    assert_eq!(server.count(rpc("tools/call")), 1);
}
