//! Log messages of servers, and the level callers ask for.

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{Client, request, tool};
use crate::gateway::TestGateway;
use crate::http_server::{Answer, Gate, hold_until, http, message, result, rpc};
use crate::kit::{call, server_with, session, until, value};
use mcpgate::settings::servers::Isolation;

fn log(level: &str, text: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": level, "data": text, "logger": "l"}})
}

async fn set_level(client: &Client, level: &str) {
    let answer = client.call("level", "logging/setLevel", json!({ "level": level })).await;
    assert_eq!(answer["result"], json!({}), "{answer}");
}

/// The level goes to every link that supports it, and to links that are opened later.
#[tokio::test]
async fn the_level_reaches_all_links_also_later_ones() {
    let with = server_with(r#"{"tools":{},"logging":{}}"#).await;
    let late = server_with(r#"{"tools":{},"logging":{}}"#).await;
    let without = server_with(r#"{"tools":{}}"#).await;
    for server in [&with, &late] {
        server.on(rpc("logging/setLevel"), Answer::result("{}"));
    }
    let gateway = TestGateway::new()
        .http("with", with.url())
        .http("without", without.url())
        .stdio("child", &[])
        .http("late", late.url())
        .start()
        .await;
    let client = session(&gateway).await;
    crate::kit::tools(&client).await;
    // The link to `late` was opened for its list; a session of its own opens it later.
    for level in ["debug", "warning"] {
        set_level(&client, level).await;
        let seen = with.await_request(rpc("logging/setLevel")).await;
        assert!(seen.json()["params"]["level"].is_string());
    }
    let levels: Vec<_> = with
        .requests()
        .into_iter()
        .filter(|seen| seen.is("logging/setLevel"))
        .map(|seen| seen.json()["params"]["level"].clone())
        .collect();
    assert_eq!(levels, ["debug", "warning"]);
    assert_eq!(without.count(rpc("logging/setLevel")), 0);
    let heard = call(&client, 1, "mcp_child_heard", json!({})).await;
    let heard: Vec<_> =
        value(&heard).as_array().expect("a list").iter().map(|m| m["params"]["level"].clone()).collect();
    assert!(heard.ends_with(&[json!("debug"), json!("warning")]), "{heard:?}");

    let second = session(&gateway).await;
    let before = late.count(rpc("logging/setLevel"));
    set_level(&second, "error").await;
    assert_eq!(late.count(rpc("logging/setLevel")), before, "no link is opened for it");
    assert!(call(&second, 1, "mcp_late_echo", json!({})).await["result"].is_object());
    let seen = late.await_requests(before + 1, rpc("logging/setLevel")).await;
    assert_eq!(seen[before].json()["params"]["level"], "error");
    let heard = call(&second, 1, "mcp_child_heard", json!({})).await;
    assert!(value(&heard).to_string().contains("error"), "{heard}");
}

/// G13: a server that refuses the level, or never answers, holds nobody up.
#[tokio::test]
async fn a_server_that_refuses_the_level_holds_nobody_up() {
    let refusing = server_with(r#"{"tools":{},"logging":{}}"#).await;
    refusing.on(rpc("logging/setLevel"), Answer::error(-32601, "no"));
    let mute = server_with(r#"{"tools":{},"logging":{}}"#).await;
    mute.on(rpc("logging/setLevel"), Answer::events([crate::http_server::hold()]));
    let gateway = TestGateway::new().http("refusing", refusing.url()).http("mute", mute.url()).start().await;
    let client = session(&gateway).await;
    crate::kit::tools(&client).await;
    let begun = std::time::Instant::now();
    set_level(&client, "info").await;
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    assert!(call(&client, 1, "mcp_mute_echo", json!({})).await["result"].is_object());
}

/// What a child logs goes to the stream of the call that runs, else to the GET.
#[tokio::test]
async fn what_a_child_logs_goes_to_the_running_call_or_the_get() {
    let gateway = TestGateway::new().stdio("u1", &[]).start().await;
    let client = session(&gateway).await;
    let mut get = client.open_get().await;
    let said = log("info", "in a call");
    let saying = tool("mcp_u1_say", json!({"method": said["method"], "params": said["params"]}));
    let messages = client.post(&request(1, "tools/call", saying.clone())).await.stream().rest().await;
    assert_eq!(messages[0], said, "{messages:?}");
    assert!(messages[1]["result"].is_object());
    // A caller that takes only JSON gets it on its GET.
    let json_only = client.clone().header("accept", "application/json");
    let answer = json_only.post(&request(2, "tools/call", saying)).await.json().await;
    assert!(answer["result"].is_object(), "{answer}");
    assert_eq!(get.message().await.expect("a message"), said);
    // An answer first and a word right behind it: the call may still run in our eyes, but the word is not lost.
    let text = format!(
        "{}\n{}\n",
        json!({"jsonrpc": "2.0", "id": "$ID", "result": {"content": []}})
            .to_string()
            .replace("\"$ID\"", "$ID"),
        said
    );
    let answer = client.post(&request(3, "tools/call", tool("mcp_u1_raw", json!({ "text": text })))).await;
    let messages = if answer.is_stream() { answer.stream().rest().await } else { vec![answer.json().await] };
    assert!(messages.last().is_some_and(|m| m["result"].is_object()), "{messages:?}");
    if messages.len() == 1 {
        assert_eq!(get.message().await.expect("a message"), said);
    } else {
        assert_eq!(messages[0], said);
    }
}

/// Over HTTP, what comes on the stream of a call is that call's, what comes outside is the GET's.
#[tokio::test]
async fn what_an_http_server_logs_stays_on_its_stream() {
    let server = server_with(r#"{"tools":{},"logging":{}}"#).await;
    let gate = Gate::new();
    server.on(
        rpc("tools/call"),
        Answer::events([
            message(&log("info", "inside").to_string()),
            hold_until(&gate),
            result(r#"{"content":[]}"#),
        ]),
    );
    let (feed, stream) = Answer::fed();
    server.on(http(http::Method::GET), stream);
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = session(&gateway).await;
    let mut get = client.open_get().await;
    let mut stream = client.post(&request(1, "tools/call", tool("mcp_u1_echo", json!({})))).await.stream();
    assert_eq!(stream.message().await.expect("a message"), log("info", "inside"));
    feed.send(message(&log("info", "outside").to_string())).await;
    assert_eq!(get.message().await.expect("a message"), log("info", "outside"));
    gate.open();
    let rest = stream.rest().await;
    assert_eq!(rest.len(), 1, "each message goes to exactly one stream: {rest:?}");
}

/// On a shared link the level is the most verbose asked for, and each session gets what it wants.
#[tokio::test]
async fn on_a_shared_link_each_session_gets_what_it_asked_for() {
    let server = server_with(r#"{"tools":{},"logging":{}}"#).await;
    server.on(rpc("logging/setLevel"), Answer::result("{}"));
    server.on(
        rpc("tools/call"),
        Answer::events([
            message(&log("debug", "d").to_string()),
            message(&log("warning", "w").to_string()),
            message(&log("error", "e").to_string()),
            result(r#"{"content":[]}"#),
        ]),
    );
    let gateway = TestGateway::new()
        .http("u1", server.url())
        .adjust(|s| s.isolation = Isolation::Shared { size: 1 })
        .start()
        .await;
    let (a, b) = (session(&gateway).await, session(&gateway).await);
    crate::kit::tools(&a).await;
    set_level(&a, "error").await;
    set_level(&b, "debug").await;
    set_level(&a, "warning").await;
    until("the most verbose level counts", async || {
        let levels = server.requests().into_iter().filter(|seen| seen.is("logging/setLevel"));
        let levels: Vec<_> = levels.map(|seen| seen.json()["params"]["level"].clone()).collect();
        levels == ["error", "debug", "debug"]
    })
    .await;
    for (client, expected) in [(&a, vec!["warning", "error"]), (&b, vec!["debug", "warning", "error"])] {
        let body = request(1, "tools/call", tool("mcp_u1_echo", json!({})));
        let messages = client.post(&body).await.stream().rest().await;
        let levels: Vec<_> = messages.iter().filter_map(|m| m["params"]["level"].as_str()).collect();
        assert_eq!(levels, expected);
    }
}
