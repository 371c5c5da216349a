//! Sessions at HTTP servers: begun once, kept, begun anew when lost, and what the server may answer.

use std::time::Duration;

use futures_util::future::join_all;
use http::Method;
use serde_json::json;

use crate::gateway::TestGateway;
use crate::http_server::{Answer, Gate, HttpServer, hold_until, http, message, result, rpc};
use crate::kit::{call, failure, introduces, server_with, session, session_with, tools};

/// case-D01: after the server forgot its sessions, calls at once lead to one new session, and each runs once.
#[tokio::test]
async fn a_lost_session_is_begun_anew_once_for_all() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = session(&gateway).await;
    assert!(call(&client, 0, "mcp_u1_echo", json!({})).await["result"].is_object());
    server.forget_sessions();
    let known = |id: &str| server.sessions().iter().any(|s| s == id);
    let answers = join_all((1..=10).map(|i| call(&client, i, "mcp_u1_echo", json!({ "i": i })))).await;
    for (i, answer) in (1..=10).zip(&answers) {
        assert!(answer["result"].is_object() && answer["id"] == i, "{answer}");
    }
    assert_eq!(server.count(rpc("initialize")), 2);
    // What came under the session that is known ran; the rest was turned away.
    for i in 1..=10 {
        let ran = server.count(|seen| {
            seen.is("tools/call")
                && seen.json()["params"]["arguments"]["i"] == i
                && seen.header("mcp-session-id").is_some_and(known)
        });
        assert_eq!(ran, 1, "call {i}");
    }
}

/// case-D01: a server that forgets the new session as well is an error, not a loop.
#[tokio::test]
async fn a_session_lost_twice_is_an_error() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = session(&gateway).await;
    assert!(call(&client, 0, "mcp_u1_echo", json!({})).await["result"].is_object());
    server.on(rpc("tools/call"), Answer::status(404));
    let before = (server.count(rpc("initialize")), server.count(rpc("tools/call")));
    let answer = call(&client, 1, "mcp_u1_echo", json!({})).await;
    assert_eq!(failure(&answer)["server"], "u1", "{answer}");
    assert_eq!(answer["id"], 1);
    let after = (server.count(rpc("initialize")), server.count(rpc("tools/call")));
    assert_eq!((after.0 - before.0, after.1 - before.1), (1, 2));
}

/// case-D01: with the new session come the log level, the subscriptions and the lists.
#[tokio::test]
async fn a_new_session_is_brought_to_the_old_ones_state() {
    let server =
        server_with(r#"{"tools":{"listChanged":true},"logging":{},"resources":{"subscribe":true}}"#).await;
    server.on(rpc("resources/list"), Answer::result(r#"{"resources":[{"uri":"x://a","name":"a"}]}"#));
    server.on(rpc("resources/templates/list"), Answer::result(r#"{"resourceTemplates":[]}"#));
    server.on(rpc("resources/subscribe"), Answer::result("{}"));
    server.on(rpc("logging/setLevel"), Answer::result("{}"));
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = session(&gateway).await;
    let mut get = client.open_get().await;
    assert_eq!(tools(&client).await, ["mcp_u1_echo"]);
    for (method, params) in
        [("logging/setLevel", json!({"level": "warning"})), ("resources/subscribe", json!({"uri": "x://a"}))]
    {
        let answer = client.call(method, method, params).await;
        assert_eq!(answer["result"], json!({}), "{answer}");
    }
    server.forget_sessions();
    server.on(
        rpc("tools/list"),
        Answer::result(r#"{"tools":[{"name":"new","inputSchema":{"type":"object"}}]}"#),
    );
    assert!(call(&client, 1, "mcp_u1_echo", json!({})).await["result"].is_object());
    let levels = server.await_requests(2, rpc("logging/setLevel")).await;
    assert_eq!(levels[1].json()["params"]["level"], "warning");
    let subscribed = server.await_requests(2, rpc("resources/subscribe")).await;
    assert_eq!(subscribed[1].json()["params"]["uri"], "x://a");
    let [current] = &server.sessions()[..] else { panic!("one session") };
    assert_eq!(levels[1].header("mcp-session-id"), Some(current.as_str()));
    let told = get.message().await.expect("a notice");
    assert_eq!(told["method"], "notifications/tools/list_changed");
    assert_eq!(tools(&client).await, ["mcp_u1_new"]);
}

/// case-D03: a server without a GET stream is asked for one once, and its callers hear of no changes.
#[tokio::test]
async fn a_server_without_a_stream_is_asked_for_it_once() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = session(&gateway).await;
    let mut get = client.open_get().await;
    for i in 0..5 {
        assert_eq!(tools(&client).await, ["mcp_u1_echo"]);
        assert!(call(&client, i, "mcp_u1_echo", json!({})).await["result"].is_object());
    }
    server.await_request(http(Method::GET)).await;
    let nothing = tokio::time::timeout(Duration::from_millis(1500), get.message()).await;
    assert!(nothing.is_err(), "nothing changed: {nothing:?}");
    assert_eq!(server.count(http(Method::GET)), 1);
}

/// case-D05: the server's session id goes with everything after `initialize`, GET and DELETE included.
#[tokio::test]
async fn the_servers_session_id_goes_with_everything() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = session(&gateway).await;
    assert_eq!(tools(&client).await, ["mcp_u1_echo"]);
    assert!(call(&client, 1, "mcp_u1_echo", json!({})).await["result"].is_object());
    server.await_request(http(Method::GET)).await;
    assert_eq!(client.delete().await, 204);
    server.await_request(http(Method::DELETE)).await;
    let ids: Vec<_> = server
        .requests()
        .iter()
        .filter(|seen| !seen.is("initialize"))
        .map(|seen| seen.header("mcp-session-id").map(str::to_owned))
        .collect();
    assert!(ids.iter().all(|id| id.is_some() && *id == ids[0]), "{ids:?}");
    assert!(server.count(rpc("notifications/initialized")) == 1);
}

/// case-D07: one session serves all calls of a caller.
#[tokio::test]
async fn one_session_serves_all_calls_of_a_caller() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = session(&gateway).await;
    for i in 0..10 {
        assert!(call(&client, i, "mcp_u1_echo", json!({})).await["result"].is_object());
    }
    join_all((0..10).map(|i| call(&client, i, "mcp_u1_echo", json!({})))).await;
    assert_eq!(server.count(rpc("initialize")), 1);
}

/// case-D09: a redirect within the same origin is followed with method and body; one to elsewhere is refused, and
/// the other place sees nothing of it.
#[tokio::test]
async fn redirects_are_followed_within_the_origin_only() {
    let (server, other) = (HttpServer::start().await, HttpServer::start().await);
    for status in [307, 308] {
        server.once(
            |seen| seen.is("tools/call") && !seen.path.ends_with('/'),
            Answer::redirect(status, "/mcp/"),
        );
    }
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = session(&gateway).await;
    for i in 0..2 {
        assert!(call(&client, i, "mcp_u1_echo", json!({})).await["result"].is_object());
    }
    assert_eq!(server.count(|seen| seen.is("tools/call") && seen.path == "/mcp/"), 2);
    server.once(rpc("tools/call"), Answer::redirect(307, other.url().as_str()));
    let answer = call(&client, 3, "mcp_u1_echo", json!({})).await;
    assert_eq!(answer["error"]["code"], -32603);
    assert_eq!(failure(&answer)["reason"], "redirected", "{answer}");
    assert!(!answer.to_string().contains(other.url().as_str()), "no URL of a server reaches a caller");
    assert_eq!(other.requests().len(), 0);
}

/// case-D11: whatever success a server answers a notification with is success.
#[tokio::test]
async fn any_success_is_success_for_a_notification() {
    for answer in [
        Answer::status(202),
        Answer::status(200),
        Answer::status(204),
        Answer::json("null"),
        Answer::json("{}"),
        Answer::body("text/plain", "ok"),
        Answer::events([]),
        Answer::events([message(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#)]),
    ] {
        let server = HttpServer::start().await;
        server.on(rpc("notifications/initialized"), answer.clone());
        server.on(rpc("notifications/roots/list_changed"), answer);
        let gateway = TestGateway::new().http("u1", server.url()).start().await;
        let client = session_with(&gateway, json!({"roots": {}})).await;
        assert_eq!(tools(&client).await, ["mcp_u1_echo"]);
        let note = json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"});
        assert_eq!(client.post(&note).await.status, 202);
        server.await_request(rpc("notifications/roots/list_changed")).await;
        assert!(call(&client, 1, "mcp_u1_echo", json!({})).await["result"].is_object());
    }
}

/// case-D05: a server that gives no session id is asked for none.
#[tokio::test]
async fn a_server_without_sessions_is_served_as_well() {
    let server = HttpServer::sessionless().await;
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = session(&gateway).await;
    assert!(call(&client, 1, "mcp_u1_echo", json!({})).await["result"].is_object());
    assert_eq!(server.count(|seen| seen.header("mcp-session-id").is_some()), 0);
}

/// case-D01: what a server says of itself the second time counts.
#[tokio::test]
async fn a_server_that_learned_something_is_asked_about_it() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = session(&gateway).await;
    assert_eq!(tools(&client).await, ["mcp_u1_echo"]);
    assert_eq!(client.call(1, "prompts/list", json!({})).await["result"]["prompts"], json!([]));
    introduces(&server, r#"{"tools":{},"prompts":{}}"#);
    server.on(rpc("prompts/list"), Answer::result(r#"{"prompts":[{"name":"p"}]}"#));
    server.forget_sessions();
    let mut get = client.open_get().await;
    assert!(call(&client, 2, "mcp_u1_echo", json!({})).await["result"].is_object());
    assert_eq!(get.message().await.expect("a notice")["method"], "notifications/prompts/list_changed");
    let prompts = client.call(3, "prompts/list", json!({})).await;
    assert_eq!(prompts["result"]["prompts"][0]["name"], "mcp_u1_p", "{prompts}");
}

/// case-D01: calls that already run on the lost session's streams go on by themselves.
#[tokio::test]
async fn a_call_that_runs_while_another_finds_the_session_lost_goes_on() {
    let server = HttpServer::start().await;
    let gate = Gate::new();
    server.once(rpc("tools/call"), Answer::events([hold_until(&gate), result(r#"{"content":[]}"#)]));
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = session(&gateway).await;
    let long = call(&client, "long", "mcp_u1_echo", json!({}));
    let short = async {
        server.await_request(rpc("tools/call")).await;
        server.forget_sessions();
        let answer = call(&client, "short", "mcp_u1_echo", json!({})).await;
        gate.open();
        answer
    };
    let (long, short) = futures_util::future::join(long, short).await;
    assert!(long["result"].is_object(), "{long}");
    assert!(short["result"].is_object(), "{short}");
}

/// Links to HTTP servers are counted by how their opening went, as those to children are.
#[tokio::test]
async fn links_that_open_and_that_do_not_are_counted() {
    let server = HttpServer::start().await;
    // A port that nobody listens on.
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let gone = format!("http://{gone}/mcp").parse().unwrap();
    let gateway = TestGateway::new().http("u1", server.url()).http("gone", gone).start().await;
    let client = session(&gateway).await;
    assert!(call(&client, 1, "mcp_u1_echo", json!({})).await["result"].is_object());
    let opened = |server: &str, outcome: &str| {
        gateway.sample(&format!("mcpgate_links_opened_total{{outcome=\"{outcome}\",server=\"{server}\"}}"))
    };
    assert!(opened("u1", "ok") >= 1.0 && opened("u1", "transport") == 0.0);
    assert!(opened("gone", "transport") >= 1.0 && opened("gone", "ok") == 0.0, "its lists were asked for");
}
