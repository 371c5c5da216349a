//! Legacy callers of modern servers: what the server is told, and what the caller gets (X3 to X12, X18 to X25).

use std::time::Duration;

use futures_util::future::join;
use serde_json::{Value, json};

use crate::client::{Client, request, tool};
use crate::gateway::TestGateway;
use crate::http_server::{Answer, HttpServer, hold, message, raw, result, rpc};
use crate::kit::{LEGACY, auto};

const META: &str = "io.modelcontextprotocol/";

async fn gateway(server: &HttpServer) -> TestGateway {
    TestGateway::new().http("u1", server.url()).adjust(auto).start().await
}

async fn call(client: &Client, arguments: Value) -> Value {
    client.call("c", "tools/call", tool("mcp_u1_echo", arguments)).await
}

fn meta(seen: &crate::http_server::Seen) -> Value {
    seen.json()["params"]["_meta"].clone()
}

/// X3, X4, X16: each request says what the caller declared, in words of the modern era, as far as its revision
/// knows them.
#[tokio::test]
async fn each_request_says_what_the_caller_declared() {
    let server = HttpServer::modern().await;
    let gateway = gateway(&server).await;
    let all = json!({
        "roots": {"listChanged": true}, "sampling": {"tools": {}}, "elicitation": {},
        "tasks": {"list": {}}, "experimental": {"x": 1}, "unheard": {},
    });
    for (n, (revision, declared)) in [
        (LEGACY, json!({"roots": {}, "sampling": {"tools": {}}, "elicitation": {"form": {}}, "experimental": {"x": 1}})),
        ("2025-06-18", json!({"roots": {}, "sampling": {}, "elicitation": {"form": {}}, "experimental": {"x": 1}})),
        ("2025-03-26", json!({"roots": {}, "sampling": {}, "experimental": {"x": 1}})),
    ].into_iter().enumerate() {
        let client = gateway.client("/mcp").initialize_with(revision, all.clone()).await;
        assert!(call(&client, json!({})).await["result"].is_object());
        client.call(2, "tools/list", json!({})).await;
        let told = meta(&server.await_requests(n + 1, rpc("tools/call")).await[n]);
        assert_eq!(told[format!("{META}clientCapabilities")], declared);
        assert_eq!(told[format!("{META}protocolVersion")], "2026-07-28");
        assert_eq!(told[format!("{META}clientInfo")], json!({"name": "test", "version": "1"}));
        assert_eq!(told.get(format!("{META}logLevel")), None, "nobody set one");
    }
    let list = meta(&server.await_request(rpc("tools/list")).await);
    assert_eq!(list[format!("{META}clientCapabilities")]["roots"], json!({}));
}

/// G21, M8: what is reserved cannot be spoofed; trace context and unknown keys pass.
#[tokio::test]
async fn reserved_keys_are_not_the_callers() {
    let server = HttpServer::modern().await;
    let gateway = gateway(&server).await;
    let client = gateway.client("/mcp").initialize(LEGACY).await;
    // With the claim of a version the request would be a modern one.
    let spoofed = json!({
        "io.modelcontextprotocol/clientCapabilities": {"sampling": {}},
        "io.modelcontextprotocol/clientInfo": {"name": "other"},
        "io.modelcontextprotocol/logLevel": "debug",
        "io.modelcontextprotocol/made-up": 1,
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "com.example/x": 1.50,
    });
    let mut params = tool("mcp_u1_echo", json!({}));
    params["_meta"] = spoofed.clone();
    assert!(client.call(1, "tools/call", params).await["result"].is_object());
    let told = meta(&server.await_request(rpc("tools/call")).await);
    assert_eq!(told[format!("{META}clientCapabilities")], json!({}));
    assert_eq!(told[format!("{META}clientInfo")]["name"], "test");
    assert_eq!((told.get(format!("{META}logLevel")), told.get(format!("{META}made-up"))), (None, None));
    assert_eq!((&told["traceparent"], &told["com.example/x"]), (&spoofed["traceparent"], &json!(1.5)));
}

/// case-K13, X7: the level is kept, and said with each request from then on.
#[tokio::test]
async fn the_log_level_goes_with_each_request() {
    let server = HttpServer::modern().await;
    let gateway = gateway(&server).await;
    let client = gateway.client("/mcp").initialize(LEGACY).await;
    call(&client, json!({})).await;
    assert_eq!(client.call(1, "logging/setLevel", json!({"level": "warning"})).await["result"], json!({}));
    call(&client, json!({})).await;
    let other = gateway.client("/mcp").initialize(LEGACY).await;
    call(&other, json!({})).await;
    assert_eq!(client.call(2, "logging/setLevel", json!({"level": "loud"})).await["error"]["code"], -32602);
    let calls = server.await_requests(3, rpc("tools/call")).await;
    let levels: Vec<Option<Value>> =
        calls.iter().map(|seen| meta(seen).get(format!("{META}logLevel")).cloned()).collect();
    assert_eq!(levels, [None, Some(json!("warning")), None], "each session its own");
    assert_eq!(server.count(rpc("logging/setLevel")), 0);
}

fn logging(level: &str) -> crate::http_server::Step {
    let params = json!({"level": level, "data": level});
    message(&json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params}).to_string())
}

/// X8, P1: what the server logs turns the answer into a stream, once the caller wants it; before, nothing is wanted.
#[tokio::test]
async fn what_a_server_logs_comes_on_the_stream_of_the_call() {
    let server = HttpServer::modern().await;
    let steps = [logging("error"), logging("debug"), result(r#"{"resultType":"complete","content":[]}"#)];
    server.on(rpc("tools/call"), Answer::events(steps));
    let gateway = gateway(&server).await;
    let client = gateway.client("/mcp").initialize(LEGACY).await;
    let echo = request(1, "tools/call", tool("mcp_u1_echo", json!({})));
    let quiet = client.post(&echo).await;
    assert!(!quiet.is_stream(), "no level, no log");
    client.call(1, "logging/setLevel", json!({"level": "warning"})).await;
    let messages = client.post(&echo).await.stream().rest().await;
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert_eq!(messages[0]["params"], json!({"level": "error", "data": "error"}));
    assert!(messages[1]["result"].is_object());
}

/// case-K13, X6, X18: ping is answered here, and changes of roots are absorbed.
#[tokio::test]
async fn ping_and_changes_of_roots_stay_here() {
    let server = HttpServer::modern().await;
    let gateway = gateway(&server).await;
    for path in ["/mcp", "/servers/u1/mcp"] {
        let client =
            gateway.client(path).initialize_with(LEGACY, json!({"roots": {"listChanged": true}})).await;
        client.call(1, "tools/list", json!({})).await;
        assert_eq!(client.call(1, "ping", json!({})).await["result"], json!({}));
        for method in ["notifications/roots/list_changed", "notifications/unheard"] {
            let note = json!({"jsonrpc": "2.0", "method": method});
            assert_eq!(client.post(&note).await.status, 202);
        }
    }
    let known = ["server/discover", "tools/list", "subscriptions/listen"];
    let others = server.count(|seen| !known.iter().any(|method| seen.is(method)));
    assert_eq!(others, 0, "{:#?}", server.requests());
}

/// case-H07, G15: two callers with one progress token each get their own progress, under their own token.
#[tokio::test]
async fn progress_goes_to_its_own_caller() {
    let server = HttpServer::modern().await;
    server.on_each(rpc("tools/call"), |seen| {
        let params = seen.json()["params"].clone();
        let progress = json!({
            "progressToken": params["_meta"]["progressToken"], "progress": 1, "message": params["arguments"]["who"],
        });
        let note = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress});
        Answer::events([message(&note.to_string()), result(r#"{"resultType":"complete","content":[]}"#)])
    });
    let gateway = gateway(&server).await;
    let (a, b) =
        (gateway.client("/mcp").initialize(LEGACY).await, gateway.client("/mcp").initialize(LEGACY).await);
    let ask = |who: &str, token: Value| {
        let mut params = tool("mcp_u1_echo", json!({"who": who}));
        params["_meta"] = json!({"progressToken": token});
        request(1, "tools/call", params)
    };
    let (ask_a, ask_b) = (ask("a", json!(1)), ask("b", json!("1")));
    let (of_a, of_b) = join(a.post(&ask_a), b.post(&ask_b)).await;
    for (answer, who, token) in [(of_a, "a", json!(1)), (of_b, "b", json!("1"))] {
        let messages = answer.stream().rest().await;
        assert_eq!(messages.len(), 2, "{messages:?}");
        assert_eq!(
            (&messages[0]["params"]["message"], &messages[0]["params"]["progressToken"]),
            (&json!(who), &token)
        );
    }
    let calls = server.await_requests(2, rpc("tools/call")).await;
    assert_ne!(meta(&calls[0])["progressToken"], meta(&calls[1])["progressToken"]);
    let plain = request(2, "tools/call", tool("mcp_u1_echo", json!({"who": "c"})));
    let messages = a.post(&plain).await.response().await;
    assert!(messages["result"].is_object(), "no token, no progress");
}

/// X19: results lose what only the modern era has; every other byte stays.
#[tokio::test]
async fn results_lose_what_only_the_modern_era_has() {
    let server = HttpServer::modern().await;
    let large = "y".repeat(100_000);
    let text = format!(
        r#"{{"resultType":"complete","content":[ {{"type":"text","text":"{large}"}} ],"n":1.500,"_meta":{{"io.modelcontextprotocol/serverInfo":{{"name":"s","version":"1"}},"k":1e2}}}}"#
    );
    server.on(rpc("tools/call"), Answer::result(&text));
    let gateway = gateway(&server).await;
    let client = gateway.client("/mcp").initialize(LEGACY).await;
    let answer = client.post(&request("c", "tools/call", tool("mcp_u1_echo", json!({})))).await.text().await;
    let expected = format!(
        r#"{{"jsonrpc":"2.0","id":"c","result":{{"content":[ {{"type":"text","text":"{large}"}} ],"n":1.500,"_meta":{{"k":1e2}}}}}}"#
    );
    assert!(answer == expected, "{}", &answer[answer.len() - 100..]);
    let list = client.call(1, "tools/list", json!({})).await["result"].clone();
    assert_eq!(list.as_object().unwrap().keys().collect::<Vec<_>>(), ["tools"]);
}

/// X22, X23: each revision gets structured content and content types that it knows.
#[tokio::test]
async fn each_revision_gets_content_that_it_knows() {
    let server = HttpServer::modern().await;
    let list = json!({"resultType": "complete", "tools": [
        {"name": "echo", "inputSchema": {"type": "object"}, "outputSchema": {"type": "array"}},
        {"name": "sound", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"}},
    ]});
    server.on(rpc("tools/list"), Answer::result(&list.to_string()));
    let result = json!({
        "resultType": "complete", "structuredContent": [1],
        "content": [{"type": "resource_link", "uri": "x:1", "name": "n"}],
    });
    server.on(rpc("tools/call"), Answer::result(&result.to_string()));
    let gateway = gateway(&server).await;
    for (revision, schemas, content) in [
        (LEGACY, 1, json!({"type": "resource_link", "uri": "x:1", "name": "n"})),
        ("2025-06-18", 1, json!({"type": "resource_link", "uri": "x:1", "name": "n"})),
        ("2025-03-26", 0, json!({"type": "text", "text": "n: x:1"})),
        ("2024-11-05", 0, json!({"type": "text", "text": "n: x:1"})),
    ] {
        let client = gateway.client("/mcp").initialize(revision).await;
        let tools = client.call(1, "tools/list", json!({})).await["result"]["tools"].clone();
        let tools = tools.as_array().unwrap();
        assert_eq!(tools.len(), 2);
        assert_eq!(tools.iter().filter(|t| t.get("outputSchema").is_some()).count(), schemas, "{revision}");
        assert_eq!(call(&client, json!({})).await["result"], json!({"content": [content]}), "{revision}");
    }
}

/// X21: codes of the modern era become what legacy callers know, in words; 404 says nothing about the session.
#[tokio::test]
async fn errors_are_told_in_legacy_words() {
    let server = HttpServer::modern().await;
    let gateway = gateway(&server).await;
    let client = gateway.client("/servers/u1/mcp").initialize(LEGACY).await;
    let missing = json!({"code": -32021, "message": "no", "data": {"requiredCapabilities": {"elicitation": {"url": {}}}}});
    let missing = format!(r#""error":{missing}"#);
    server.on(rpc("tools/call"), Answer::members(&missing).with_status(400));
    let answer = client.post(&request(1, "tools/call", tool("echo", json!({})))).await;
    assert_eq!(answer.status, 200);
    let error = answer.json().await["error"].clone();
    assert_eq!(error["code"], -32603);
    let text = error["message"].as_str().unwrap();
    assert!(text.contains("u1") && text.contains("elicitation.url"), "{text}");

    server.on(rpc("resources/read"), Answer::error(-32602, "not found"));
    let answer = client.post(&request(1, "resources/read", json!({"uri": "x:1"}))).await;
    assert_eq!((answer.status.as_u16(), answer.json().await["error"]["code"].clone()), (200, json!(-32002)));

    let answer = client.post(&request(1, "prompts/get", json!({"name": "p"}))).await;
    assert_eq!((answer.status.as_u16(), answer.json().await["error"]["code"].clone()), (200, json!(-32601)));
    assert_eq!(client.call(2, "ping", json!({})).await["result"], json!({}), "the session lives");
}

/// X24: what came with 2025-06-18 is not sent to servers of an earlier revision.
#[tokio::test]
async fn completion_context_goes_to_who_knows_it() {
    let capabilities =
        r#""capabilities":{"completions":{},"prompts":{}},"serverInfo":{"name":"s","version":"1"}"#;
    let params = json!({
        "ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""},
        "context": {"arguments": {"b": "c"}},
    });
    for (revision, sent) in [("2024-11-05", false), ("2025-03-26", false), ("2025-06-18", true)] {
        let server = HttpServer::start().await;
        let answer = format!(r#"{{"protocolVersion":"{revision}",{capabilities}}}"#);
        server.on(rpc("initialize"), Answer::result(&answer));
        server.on(rpc("completion/complete"), Answer::result(r#"{"completion":{"values":[]}}"#));
        let gateway = TestGateway::new().http("u1", server.url()).start().await;
        let client = gateway.client("/servers/u1/mcp").initialize(LEGACY).await;
        assert!(client.call(1, "completion/complete", params.clone()).await["result"].is_object());
        let mut expected = params.clone();
        if !sent {
            expected.as_object_mut().unwrap().remove("context");
        }
        assert_eq!(server.await_request(rpc("completion/complete")).await.json()["params"], expected);
    }
    let server = HttpServer::modern().await;
    server.on(
        rpc("completion/complete"),
        Answer::result(r#"{"resultType":"complete","completion":{"values":[]}}"#),
    );
    let gateway = gateway(&server).await;
    let client = gateway.client("/servers/u1/mcp").initialize(LEGACY).await;
    let answer = client.call(1, "completion/complete", params.clone()).await;
    assert_eq!(answer["result"], json!({"completion": {"values": []}}));
    assert_eq!(
        server.await_request(rpc("completion/complete")).await.json()["params"]["context"],
        params["context"]
    );
}

/// X11: a call that is taken back is told to the server by the end of its stream.
#[tokio::test]
async fn a_call_taken_back_ends_the_servers_stream() {
    let server = HttpServer::modern().await;
    server.on(rpc("tools/call"), Answer::events([raw(": here\n\n"), hold()]));
    let gateway = gateway(&server).await;
    let client = gateway.client("/mcp").initialize(LEGACY).await;
    let stream = client.post(&request("c", "tools/call", tool("mcp_u1_echo", json!({})))).await.stream();
    server.await_request(rpc("tools/call")).await;
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "c"}});
    assert_eq!(client.post(&cancel).await.status, 202);
    server.await_hang_up(rpc("tools/call")).await;
    assert!(stream.rest().await.is_empty());
    assert_eq!(server.count(rpc("notifications/cancelled")), 0, "no notification of that era");
}

/// X12: a caller that leaves has not cancelled: the server's stream stays, and the result waits.
#[tokio::test]
async fn a_caller_that_leaves_finds_its_result() {
    let server = HttpServer::modern().await;
    let (feed, answer) = Answer::fed();
    server.on(rpc("tools/call"), answer);
    let gateway = gateway(&server).await;
    let client = gateway.client("/mcp").initialize(LEGACY).await;
    let mut stream = client.post(&request("c", "tools/call", tool("mcp_u1_echo", json!({})))).await.stream();
    let primed = stream.event().await.unwrap().id.unwrap();
    drop(stream);
    server.await_request(rpc("tools/call")).await;
    client.call(1, "ping", json!({})).await;
    feed.send(result(r#"{"resultType":"complete","content":[]}"#)).await;
    let mut stream = client.resume(&primed).await.stream();
    let message = stream.message().await.unwrap();
    assert_eq!((&message["id"], &message["result"]), (&json!("c"), &json!({"content": []})));
}

/// X25: a batch reaches a modern server one by one, and is answered as one.
#[tokio::test]
async fn a_batch_is_split_and_joined() {
    let server = HttpServer::modern().await;
    let gateway = gateway(&server).await;
    let client = gateway.client("/mcp").initialize("2025-03-26").await;
    client.call(0, "tools/list", json!({})).await;
    let one = |id: u64| request(id, "tools/call", tool("mcp_u1_echo", json!({})));
    let note = json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"});
    let answer = client.post(&json!([one(1), note, one(2), request(3, "ping", json!({}))])).await;
    let responses = if answer.is_stream() { answer.stream().rest().await } else { vec![answer.json().await] };
    let mut ids: Vec<u64> = responses
        .iter()
        .flat_map(|r| r.as_array().cloned().unwrap_or_else(|| vec![r.clone()]))
        .map(|r| {
            assert!(r["result"].is_object(), "{r}");
            r["id"].as_u64().unwrap()
        })
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 3]);
    let calls = server.await_requests(2, rpc("tools/call")).await;
    assert!(calls.iter().all(|seen| seen.json().is_object()));
}

/// A server that is slow to answer is still waited for in silence when no level is set.
#[tokio::test]
async fn an_answer_after_the_grace_time_is_a_stream_of_the_result_alone() {
    let server = HttpServer::modern().await;
    let pause = crate::http_server::pause(Duration::from_millis(300));
    let steps = [logging("error"), pause, result(r#"{"resultType":"complete","content":[]}"#)];
    server.on(rpc("tools/call"), Answer::events(steps));
    let gateway = gateway(&server).await;
    let client = gateway.client("/mcp").initialize(LEGACY).await;
    let answer = client.post(&request(1, "tools/call", tool("mcp_u1_echo", json!({})))).await;
    assert_eq!(answer.stream().rest().await.len(), 1);
}
