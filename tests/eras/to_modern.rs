//! What a legacy server says, as a modern caller hears it (K01, X43, X44).

use serde_json::{Value, json};

use crate::client::tool;
use crate::gateway::TestGateway;
use crate::http_server::{Answer, HttpServer, rpc};
use crate::kit::{auto, modern};

const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

async fn scene() -> (HttpServer, TestGateway) {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new().http("u1", server.url()).adjust(auto).start().await;
    (server, gateway)
}

fn url_required(elicitations: Value) -> Answer {
    let error = json!({"code": -32042, "message": "visit", "data": {"elicitations": elicitations}});
    Answer::members(&format!(r#""error":{error}"#))
}

/// case-K01: a strict legacy server is initialized with the caller's own name and capabilities, told that it is, and
/// then called in its session.
#[tokio::test]
async fn a_strict_legacy_server_is_greeted_in_the_callers_name() {
    let (server, gateway) = scene().await;
    let declared = json!({"elicitation": {"form": {}}, "roots": {}, "extensions": {"com.example/x": {}}});
    let caller = modern(&gateway, "/mcp").with(declared);
    let answer = caller.call(1, "tools/call", tool("mcp_u1_echo", json!({"x": 1.0}))).await;
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    let all = server.requests();
    let of = |method: &str| all.iter().filter(|seen| seen.is(method)).collect::<Vec<_>>();
    // One for its list, if that was read on a link of its own.
    for hello in of("initialize") {
        let params = &hello.json()["params"];
        assert_eq!(params["protocolVersion"], "2025-11-25");
        assert_eq!(params["clientInfo"], json!({"name": "test", "version": "1"}));
        assert_eq!(params["capabilities"], json!({"elicitation": {"form": {}}, "roots": {}}));
        assert!(hello.header("mcp-session-id").is_none());
    }
    let call = of("tools/call")[0];
    let session = call.header("mcp-session-id").unwrap();
    assert!(server.sessions().contains(&session.to_owned()));
    let told = of("notifications/initialized");
    assert!(told.iter().any(|seen| seen.header("mcp-session-id") == Some(session)));
    assert_eq!(call.header("mcp-protocol-version"), Some("2025-11-25"));
    for header in ["mcp-method", "mcp-name"] {
        assert!(call.header(header).is_none(), "{header} is of another era");
    }
    let again = caller.call(2, "tools/call", tool("mcp_u1_echo", json!({}))).await;
    assert!(again["result"].is_object());
    assert_eq!(server.count(rpc("initialize")), of("initialize").len(), "the session is kept");
}

/// X43, M6: a result says that it is complete and who served it; every other byte is the server's.
#[tokio::test]
async fn results_say_what_the_era_demands() {
    let (server, gateway) = scene().await;
    let caller = modern(&gateway, "/servers/u1/mcp");
    let theirs = r#"{"content":[],"structuredContent":{"n":1.50,"_meta":1},"_meta":{"a.b/c":[1e2]},"resultType":"other"}"#;
    server.on(rpc("tools/call"), Answer::result(theirs));
    let request = caller.request(1, "tools/call", tool("echo", json!({})));
    let text = caller.post(&request).await.text().await;
    assert!(text.contains(r#""structuredContent":{"n":1.50,"_meta":1}"#), "{text}");
    assert!(text.contains(r#""a.b/c":[1e2]"#), "{text}");
    assert_eq!(text.matches("resultType").count(), 1, "{text}");
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(answer["result"]["resultType"], "complete");
    assert_eq!(answer["result"]["_meta"][SERVER_INFO]["name"], "mcpgate");

    server.on(rpc("resources/read"), Answer::result(r#"{"contents":[]}"#));
    let read = caller.call(2, "resources/read", json!({"uri": "x:1"})).await;
    let result = &read["result"];
    assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(0), &json!("private")), "{read}");

    server.on(rpc("prompts/get"), Answer::result("{}"));
    let got = caller.call(3, "prompts/get", json!({"name": "p"})).await;
    assert_eq!(got["result"]["resultType"], "complete", "{got}");
    assert!(got["result"].get("ttlMs").is_none());
}

/// X44: -32002 becomes -32602; other errors pass as they are.
#[tokio::test]
async fn errors_have_the_codes_of_the_era() {
    let (server, gateway) = scene().await;
    let caller = modern(&gateway, "/servers/u1/mcp");
    for (theirs, ours) in [(-32002, -32602), (-32602, -32602), (-32000, -32000), (17, 17)] {
        let error = json!({"code": theirs, "message": "m", "data": [1]});
        server.once(rpc("resources/read"), Answer::members(&format!(r#""error":{error}"#)));
        let read = caller.call(1, "resources/read", json!({"uri": "x:1"})).await;
        assert_eq!(read["error"], json!({"code": ours, "message": "m", "data": [1]}));
    }
}

/// X44: a call that needs URLs visited first becomes a question; the retry makes the call anew, without what the
/// caller carried.
#[tokio::test]
async fn urls_to_be_visited_are_asked_for() {
    let (server, gateway) = scene().await;
    let caller = modern(&gateway, "/servers/u1/mcp").with(json!({"elicitation": {"url": {}}}));
    server.once(
        rpc("tools/call"),
        url_required(json!([
            {"mode": "url", "elicitationId": "i", "url": "https://x.test/1", "message": "one"},
            {"mode": "url", "elicitationId": "j", "url": "https://x.test/2", "message": "two", "zz": 1},
        ])),
    );
    let params = tool("echo", json!({"a": 1}));
    let asked = caller.call(1, "tools/call", params.clone()).await;
    let expected = json!({
        "elicitation-1": {"method": "elicitation/create", "params": {"mode": "url", "url": "https://x.test/1", "message": "one"}},
        "elicitation-2": {"method": "elicitation/create", "params": {"mode": "url", "url": "https://x.test/2", "message": "two", "zz": 1}},
    });
    assert_eq!(asked["result"]["inputRequests"], expected, "{asked}");
    assert_eq!(asked["result"]["resultType"], "input_required");
    let mut retry = params.clone();
    retry["requestState"] = asked["result"]["requestState"].clone();
    retry["inputResponses"] =
        json!({"elicitation-1": {"action": "accept"}, "elicitation-2": {"action": "accept"}});
    let mut other = retry.clone();
    other["arguments"]["a"] = json!(2);
    let refused = caller.call(2, "tools/call", other).await;
    assert_eq!(refused["error"]["data"]["mcpgate"]["reason"], "other_request", "{refused}");
    // R6: what is missing is asked for again.
    let mut half = retry.clone();
    half["inputResponses"] = json!({"elicitation-1": {"action": "accept"}});
    let again = caller.call(4, "tools/call", half).await;
    assert_eq!((&again["id"], &again["result"]["inputRequests"]), (&json!(4), &expected), "{again}");
    let mut odd = retry.clone();
    odd["inputResponses"]["elicitation-2"] = json!({"action": "perhaps"});
    let refused = caller.call(5, "tools/call", odd).await;
    assert_eq!(refused["error"]["data"]["mcpgate"]["reason"], "invalid_answer", "{refused}");
    assert_eq!(server.count(rpc("tools/call")), 1);
    let done = caller.call(3, "tools/call", retry.clone()).await;
    assert_eq!((&done["id"], &done["result"]["content"][0]["text"]), (&json!(3), &json!("ok")), "{done}");
    let calls = server.await_requests(2, rpc("tools/call")).await;
    let sent = calls[1].json();
    assert_eq!(sent["params"]["arguments"], json!({"a": 1}));
    assert!(sent["params"].get("requestState").is_none() && sent["params"].get("inputResponses").is_none());
    assert_eq!(calls[0].header("mcp-session-id"), calls[1].header("mcp-session-id"));
    // R5: once.
    let replayed = caller.call(6, "tools/call", retry).await;
    assert_eq!(replayed["error"]["data"]["mcpgate"]["reason"], "outcome_unknown", "{replayed}");
    assert_eq!(server.count(rpc("tools/call")), 2);
}

/// X44, R5: of many retries at once one makes the call; and a caller that declines has it made by none.
#[tokio::test]
async fn a_call_that_wanted_urls_is_made_again_once() {
    let (server, gateway) = scene().await;
    let caller = modern(&gateway, "/servers/u1/mcp").with(json!({"elicitation": {"url": {}}}));
    let urls = json!([{"mode": "url", "elicitationId": "i", "url": "https://x.test/1", "message": "one"}]);
    for (action, calls) in [("accept", 1), ("decline", 0), ("cancel", 0)] {
        server.once(rpc("tools/call"), url_required(urls.clone()));
        let mut params = tool("echo", json!({}));
        let before = server.count(rpc("tools/call"));
        let asked = caller.call(1, "tools/call", params.clone()).await;
        params["requestState"] = asked["result"]["requestState"].clone();
        params["inputResponses"] = json!({"elicitation-1": {"action": action}});
        let retries = (0..6).map(|id| caller.call(id, "tools/call", params.clone()));
        let answers = futures_util::future::join_all(retries).await;
        let done = answers.iter().filter(|answer| answer["result"].is_object()).count();
        assert_eq!(done, calls, "{action}: {answers:?}");
        assert_eq!(server.count(rpc("tools/call")), before + 1 + calls);
        let declined = |a: &&Value| a["error"]["data"]["mcpgate"]["reason"] == "declined";
        assert_eq!(answers.iter().filter(declined).count(), 1 - calls, "{answers:?}");
    }
}

/// X44, T42: a caller that cannot be asked to visit URLs is told what it lacks, at 400; and no caller ever sees -32042.
#[tokio::test]
async fn a_caller_that_cannot_visit_urls_is_told_so() {
    let (server, gateway) = scene().await;
    let caller = modern(&gateway, "/servers/u1/mcp").with(json!({"elicitation": {"form": {}}}));
    let urls = json!([{"mode": "url", "elicitationId": "i", "url": "https://x.test/1", "message": "one"}]);
    server.once(rpc("tools/call"), url_required(urls.clone()));
    let answer = caller.post(&caller.request(1, "tools/call", tool("echo", json!({})))).await;
    assert_eq!(answer.status, 400);
    let error = &answer.json().await["error"];
    assert_eq!(error["code"], -32021);
    assert_eq!(error["data"]["requiredCapabilities"], json!({"elicitation": {"url": {}}}));
    let able = modern(&gateway, "/servers/u1/mcp").with(json!({"elicitation": {"url": {}}}));
    for none in [json!([]), json!([{"mode": "form"}]), json!("x")] {
        server.once(rpc("tools/call"), url_required(none));
        let answer = able.call(1, "tools/call", tool("echo", json!({}))).await;
        assert_eq!(answer["error"]["code"], -32603, "{answer}");
    }
    server.once(rpc("completion/complete"), url_required(urls));
    let params = json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}});
    let answer = able.call(1, "completion/complete", params).await;
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
}

/// G8: what a tool's result links to can be read by the same caller, though no list has it.
#[tokio::test]
async fn links_in_results_can_be_read() {
    let (server, other) = (HttpServer::start().await, HttpServer::start().await);
    let gateway = TestGateway::new()
        .http("u0", other.url())
        .adjust(auto)
        .http("u1", server.url())
        .adjust(auto)
        .start()
        .await;
    let caller = modern(&gateway, "/mcp");
    let link = r#"{"content":[{"type":"resource_link","uri":"made:up","name":"n"}]}"#;
    server.on(rpc("tools/call"), Answer::result(link));
    server.on(rpc("resources/read"), Answer::result(r#"{"contents":[{"uri":"made:up","text":"t"}]}"#));
    let before = caller.call(0, "resources/read", json!({"uri": "made:up"})).await;
    assert_eq!(before["error"]["code"], -32602, "{before}");
    caller.call(1, "tools/call", tool("mcp_u1_echo", json!({}))).await;
    let read = caller.call(2, "resources/read", json!({"uri": "made:up"})).await;
    assert_eq!(read["result"]["contents"][0]["text"], "t", "{read}");
}

/// X45: a server that lost its session is initialized once more, and the caller notices nothing.
#[tokio::test]
async fn a_lost_session_is_begun_anew() {
    let (server, gateway) = scene().await;
    let caller = modern(&gateway, "/servers/u1/mcp");
    assert!(caller.call(1, "tools/call", tool("echo", json!({}))).await["result"].is_object());
    let before = server.count(rpc("initialize"));
    server.forget_sessions();
    let answer = caller.call(2, "tools/call", tool("echo", json!({}))).await;
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    assert_eq!(server.count(rpc("initialize")), before + 1);
}
