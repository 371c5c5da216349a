//! Modern servers over HTTP: the headers that repeat arguments, their streams and their errors, for callers of both
//! eras.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use crate::client::{Client, SOON, tool};
use crate::gateway::TestGateway;
use crate::http_server::{
    Answer, Gate, HttpServer, break_off, event, hold, hold_until, http, members, message, result, rpc,
};
use crate::kit::{LEGACY, ModernClient, auto, modern};

const UNATTRIBUTED: &str = r#"mcpgate_upstream_unattributed_total{server="u1"}"#;

async fn gateway(server: &HttpServer) -> TestGateway {
    TestGateway::new().http("u1", server.url()).adjust(auto).start().await
}

/// A result of `tools/list` in the modern era.
fn tools(tools: Value) -> Answer {
    let list = json!({ "resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private" });
    Answer::result(&list.to_string())
}

fn annotated(name: &str, properties: Value) -> Value {
    json!({ "name": name, "inputSchema": { "type": "object", "properties": properties } })
}

/// The tool whose every kind of value is mirrored.
fn mirroring() -> Value {
    annotated(
        "deploy",
        json!({
            "region": { "type": "string", "x-mcp-header": "Region" },
            "note": { "type": "string", "x-mcp-header": "Note" },
            "empty": { "type": "string", "x-mcp-header": "EmptyVal" },
            "absent": { "type": "string", "x-mcp-header": "Absent" },
            "nothing": { "type": ["string", "null"], "x-mcp-header": "Nothing" },
            "count": { "type": "integer", "x-mcp-header": "Count" },
            "options": { "type": "object", "properties": {
                "dry": { "type": "boolean", "x-mcp-header": "Dry-Run" },
            } },
            "query": { "type": "string" },
        }),
    )
}

fn arguments() -> Value {
    json!({
        "region": "us west 1", "note": "Grüße", "empty": "", "nothing": null, "count": 42,
        "options": { "dry": false }, "query": "select",
    })
}

/// The error of a response, if it is of the gateway's making.
fn reason(answer: &Value) -> Option<&str> {
    answer["error"]["data"]["mcpgate"]["reason"].as_str()
}

async fn both(gateway: &TestGateway) -> (ModernClient, Client) {
    (modern(gateway, "/mcp"), gateway.client("/mcp").initialize(LEGACY).await)
}

/// T47, T48, X5: the gateway mirrors what the tool's schema asks for, whoever calls.
#[tokio::test]
async fn arguments_are_mirrored_for_callers_of_both_eras() {
    let server = HttpServer::modern().await;
    server.on(rpc("tools/list"), tools(json!([mirroring()])));
    let gateway = gateway(&server).await;
    let (new, old) = both(&gateway).await;
    new.call(1, "tools/list", json!({})).await;
    old.call(1, "tools/list", json!({})).await;
    let call = tool("mcp_u1_deploy", arguments());
    let mut mirroring = new.clone();
    for (name, value) in [
        ("region", "us west 1"),
        ("note", "=?base64?R3LDvMOfZQ==?="),
        ("emptyval", ""),
        ("count", "42"),
        ("dry-run", "false"),
    ] {
        mirroring.client = mirroring.client.header(&format!("mcp-param-{name}"), value);
    }
    let answer = mirroring.call(2, "tools/call", call.clone()).await;
    assert!(answer["result"].is_object(), "{answer}");
    assert!(old.call(2, "tools/call", call).await["result"].is_object());
    for seen in server.await_requests(2, rpc("tools/call")).await {
        assert_eq!(seen.header("mcp-method"), Some("tools/call"));
        assert_eq!(seen.header("mcp-name"), Some("deploy"));
        assert_eq!(seen.header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(seen.header("mcp-param-region"), Some("us west 1"));
        assert_eq!(seen.header("mcp-param-note"), Some("=?base64?R3LDvMOfZQ==?="));
        assert_eq!(seen.header("mcp-param-emptyval"), Some(""));
        assert_eq!(seen.header("mcp-param-count"), Some("42"));
        assert_eq!(seen.header("mcp-param-dry-run"), Some("false"));
        let all = seen.headers.keys().filter(|name| name.as_str().starts_with("mcp-param-")).count();
        assert_eq!(all, 5, "{:?}", seen.headers);
        assert_eq!(seen.header("mcp-session-id"), None);
    }
}

/// T49, case-G15: a tool that cannot be called over HTTP is not offered; the others are.
#[tokio::test]
async fn tools_that_cannot_be_mirrored_are_left_out() {
    let server = HttpServer::modern().await;
    let bad = annotated("bad", json!({ "rate": { "type": "number", "x-mcp-header": "Rate" } }));
    server.on(rpc("tools/list"), tools(json!([mirroring(), bad])));
    let gateway = gateway(&server).await;
    let (new, old) = both(&gateway).await;
    for list in [new.call(1, "tools/list", json!({})).await, old.call(1, "tools/list", json!({})).await] {
        let names: Vec<_> = list["result"]["tools"].as_array().unwrap().iter().map(|t| &t["name"]).collect();
        assert_eq!(names, ["mcp_u1_deploy"]);
    }
    assert!(gateway.sample(r#"mcpgate_tools_quarantined{server="u1"}"#) >= 1.0);
}

/// A legacy server knows no headers of arguments, so what it writes there harms nobody.
#[tokio::test]
async fn annotations_of_legacy_servers_are_no_fault() {
    let server = HttpServer::start().await;
    let bad = annotated("bad", json!({ "rate": { "type": "number", "x-mcp-header": "Rate" } }));
    server.on(rpc("tools/list"), Answer::result(&json!({ "tools": [bad] }).to_string()));
    let gateway = gateway(&server).await;
    let old = gateway.client("/mcp").initialize(LEGACY).await;
    assert_eq!(old.call(1, "tools/list", json!({})).await["result"]["tools"][0]["name"], "mcp_u1_bad");
    assert!(old.call(2, "tools/call", tool("mcp_u1_bad", json!({ "rate": 1 }))).await["result"].is_object());
}

/// T52: a server whose tool wants other headers by now refuses the call; it is listed again, and the call sent once
/// more.
#[tokio::test]
async fn a_refusal_of_headers_is_mended() {
    let server = HttpServer::modern().await;
    server.once(rpc("tools/list"), tools(json!([annotated("deploy", json!({}))])));
    server.on(rpc("tools/list"), tools(json!([mirroring()])));
    let unmirrored =
        |seen: &crate::http_server::Seen| seen.is("tools/call") && seen.header("mcp-param-region").is_none();
    server.on(unmirrored, Answer::error(-32020, "Mcp-Param-Region is missing").with_status(400));
    let gateway = gateway(&server).await;
    let new = modern(&gateway, "/servers/u1/mcp");
    new.call(1, "tools/list", json!({})).await;
    let mended = async {
        loop {
            let answer = new.call(2, "tools/call", tool("deploy", arguments())).await;
            if answer["result"]["content"][0]["text"] == "ok" {
                return;
            }
            // A list that was read within the last second is not read again for a server that is never content.
            assert_eq!(reason(&answer), Some("server_refused_request"), "{answer}");
        }
    };
    tokio::time::timeout(SOON, mended).await.expect("a list that is older than a second is read again");
    assert_eq!(server.count(rpc("tools/list")), 2);
    let calls = server.requests().into_iter().filter(|seen| seen.is("tools/call"));
    let ids: Vec<_> = calls.map(|seen| seen.id).collect();
    assert_eq!(
        ids.len(),
        ids.iter().collect::<std::collections::HashSet<_>>().len(),
        "each try has an id of its own"
    );
}

/// T52: what was never listed is listed once its headers are missed.
#[tokio::test]
async fn a_tool_that_was_never_listed_is_mirrored_too() {
    let server = HttpServer::modern().await;
    server.on(rpc("tools/list"), tools(json!([mirroring()])));
    let unmirrored =
        |seen: &crate::http_server::Seen| seen.is("tools/call") && seen.header("mcp-param-region").is_none();
    server.on(unmirrored, Answer::error(-32020, "Mcp-Param-Region is missing").with_status(400));
    let gateway = gateway(&server).await;
    let old = gateway.client("/servers/u1/mcp").initialize(LEGACY).await;
    let answer = old.call(2, "tools/call", tool("deploy", arguments())).await;
    assert_eq!(answer["result"]["content"][0]["text"], "ok", "{answer}");
}

/// X21: a fault between the gateway and the server reaches no caller by its code, and the call is not tried for ever.
#[tokio::test]
async fn refusals_of_the_gateways_own_are_not_the_callers() {
    let server = HttpServer::modern().await;
    let gateway = gateway(&server).await;
    let (new, old) = both(&gateway).await;
    let unsupported = |supported: &str| {
        let data = json!({ "supported": [supported], "requested": "2026-07-28" });
        let error = json!({ "code": -32022, "message": "no", "data": data });
        Answer::members(&format!(r#""error":{error}"#)).with_status(400)
    };
    for (calls, answer) in [
        (1, Answer::error(-32020, "mismatch").with_status(400)),
        (2, unsupported("2026-07-28")),
        (1, unsupported("2031-01-01")),
    ] {
        server.on(rpc("tools/call"), answer);
        for caller in 0..2 {
            let before = server.count(rpc("tools/call"));
            let call = tool("mcp_u1_echo", json!({}));
            let answer = if caller == 0 {
                new.call(7, "tools/call", call).await
            } else {
                old.call(7, "tools/call", call).await
            };
            assert_eq!(answer["error"]["code"], -32603, "{answer}");
            assert_eq!(reason(&answer), Some("server_refused_request"));
            assert_eq!(answer["error"]["data"]["mcpgate"]["server"], "u1");
            assert_eq!(answer["error"]["data"]["mcpgate"]["layer"], "call");
            assert_eq!(server.count(rpc("tools/call")) - before, calls);
        }
    }
}

/// T39: a server that refuses a version it says it speaks is asked once more.
#[tokio::test]
async fn a_version_that_is_supported_after_all_is_tried_again() {
    let server = HttpServer::modern().await;
    let gateway = gateway(&server).await;
    let new = modern(&gateway, "/mcp");
    new.call(1, "tools/list", json!({})).await;
    let error =
        r#""error":{"code":-32022,"message":"x","data":{"supported":["2026-07-28"],"requested":"x"}}"#;
    server.once(rpc("tools/call"), Answer::members(error).with_status(400));
    let answer = new.call(2, "tools/call", tool("mcp_u1_echo", json!({}))).await;
    assert_eq!(answer["result"]["content"][0]["text"], "ok", "{answer}");
}

/// T42: what the caller's capabilities lack passes to a modern caller, and is told to a legacy one in our words.
#[tokio::test]
async fn a_missing_capability_is_the_callers_matter() {
    let server = HttpServer::modern().await;
    let error = r#""error":{"code":-32021,"message":"x","data":{"requiredCapabilities":{"sampling":{}}}}"#;
    server.on(rpc("tools/call"), Answer::members(error).with_status(400));
    let gateway = gateway(&server).await;
    let (new, old) = both(&gateway).await;
    let answer = new.call(2, "tools/call", tool("mcp_u1_echo", json!({}))).await;
    assert_eq!(answer["error"]["code"], -32021);
    assert_eq!(answer["error"]["data"]["requiredCapabilities"], json!({ "sampling": {} }));
    let answer = old.call(2, "tools/call", tool("mcp_u1_echo", json!({}))).await;
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
}

/// T11: errors are answers, whatever status they come with.
#[tokio::test]
async fn errors_with_a_status_are_answers() {
    let server = HttpServer::modern().await;
    let gateway = gateway(&server).await;
    let (new, old) = both(&gateway).await;
    for (status, code) in [(404, -32601), (400, -32602), (500, -32603), (400, 7)] {
        server.on(rpc("tools/call"), Answer::error(code, "its own").with_status(status));
        let call = tool("mcp_u1_echo", json!({}));
        for answer in [new.call(2, "tools/call", call.clone()).await, old.call(2, "tools/call", call).await] {
            assert_eq!(
                (&answer["error"]["code"], &answer["error"]["message"]),
                (&json!(code), &json!("its own"))
            );
        }
    }
    assert_eq!(server.count(rpc("server/discover")), 1, "no such error puts its era in doubt");
}

/// M12, M13: a result without a type is complete; one of a type that nobody knows is no result.
#[tokio::test]
async fn results_say_what_they_are() {
    let server = HttpServer::modern().await;
    let gateway = gateway(&server).await;
    let (new, old) = both(&gateway).await;
    let call = || tool("mcp_u1_echo", json!({}));
    server.on(rpc("tools/call"), Answer::result(r#"{"content":[]}"#));
    let answer = new.call(1, "tools/call", call()).await;
    assert_eq!(answer["result"], json!({ "resultType": "complete", "content": [] }));
    server.on(rpc("tools/call"), Answer::result(r#"{"resultType":"partial","content":[]}"#));
    let answer = new.call(2, "tools/call", call()).await;
    assert_eq!((&answer["id"], reason(&answer)), (&json!(2), Some("bad_answer")), "{answer}");
    assert!(old.call(2, "tools/call", call()).await["error"].is_object());
}

/// T55: a stream that breaks off loses its request, whatever ids it gave; nothing is asked again.
#[tokio::test]
async fn a_broken_stream_is_not_resumed() {
    let server = HttpServer::modern().await;
    let note = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}"#;
    let gateway = gateway(&server).await;
    let (new, old) = both(&gateway).await;
    for steps in [vec![event("1", note), break_off()], vec![event("1", note)]] {
        server.on(rpc("tools/call"), Answer::events(steps));
        let call = tool("mcp_u1_echo", json!({}));
        for answer in [new.call(2, "tools/call", call.clone()).await, old.call(2, "tools/call", call).await] {
            assert_eq!(reason(&answer), Some("outcome_unknown"), "{answer}");
        }
    }
    assert_eq!(server.count(rpc("tools/call")), 4);
    assert_eq!(server.count(http(Method::GET)), 0);
}

/// T54, X51: a caller that closes its stream closes the server's; no notification says so.
#[tokio::test]
async fn closing_the_stream_closes_the_servers() {
    let server = HttpServer::modern().await;
    let token = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}"#;
    server.on(rpc("tools/call"), Answer::events([message(token), hold()]));
    let gateway = gateway(&server).await;
    let new = modern(&gateway, "/mcp");
    let meta = json!({ "io.modelcontextprotocol/logLevel": "debug" });
    let mut params = tool("mcp_u1_echo", json!({}));
    params["_meta"] = meta;
    let mut stream = new.post(&new.request(1, "tools/call", params)).await.stream();
    stream.message().await.expect("the log message");
    drop(stream);
    server.await_hang_up(rpc("tools/call")).await;
    assert_eq!(server.count(rpc("notifications/cancelled")), 0);
}

/// X11: the same for a legacy caller that takes its request back, while its server says nothing at all.
#[tokio::test]
async fn a_legacy_cancellation_closes_the_servers_stream() {
    let server = HttpServer::modern().await;
    server.on(rpc("tools/call"), Answer::events([hold()]));
    let gateway = gateway(&server).await;
    let old = gateway.client("/mcp").initialize(LEGACY).await;
    let call = crate::client::request(1, "tools/call", tool("mcp_u1_echo", json!({})));
    let calling = old.post(&call);
    let cancelling = async {
        server.await_request(rpc("tools/call")).await;
        let cancelled =
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
        old.post(&cancelled).await;
        server.await_hang_up(rpc("tools/call")).await;
    };
    let (answer, ()) = futures_util::future::join(calling, cancelling).await;
    assert_eq!(answer.text().await, "", "a request that was taken back has no response");
    assert_eq!(server.count(rpc("notifications/cancelled")), 0);
}

/// T53: a request on a modern server's stream is a fault; it reaches nobody, and nobody answers it.
#[tokio::test]
async fn requests_of_a_modern_server_are_dropped() {
    let server = HttpServer::modern().await;
    let asks = r#"{"jsonrpc":"2.0","id":"s1","method":"roots/list"}"#;
    let pings = r#"{"jsonrpc":"2.0","id":"s2","method":"ping"}"#;
    let done = result(r#"{"resultType":"complete","content":[]}"#);
    server.on(rpc("tools/call"), Answer::events([message(asks), message(pings), done]));
    let gateway = gateway(&server).await;
    let old = gateway.client("/mcp").initialize_with(LEGACY, json!({ "roots": {} })).await;
    let answer = old.call(1, "tools/call", tool("mcp_u1_echo", json!({}))).await;
    assert_eq!(answer["result"]["content"], json!([]));
    assert!(gateway.sample(UNATTRIBUTED) >= 2.0);
    let answers = |seen: &crate::http_server::Seen| seen.rpc.is_none() && seen.id.is_some();
    assert_eq!(server.count(answers), 0);
}

/// T37: nothing but POSTs of requests goes to a modern server, from a session's begin to its end.
#[tokio::test]
async fn a_modern_server_sees_no_session() {
    let server = HttpServer::modern().await;
    let gateway = gateway(&server).await;
    let old = gateway.client("/mcp").initialize(LEGACY).await;
    old.post(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    old.post(&json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" })).await;
    old.call(1, "tools/call", tool("mcp_u1_echo", json!({}))).await;
    old.delete().await;
    gateway.until_sessions(0.0).await;
    gateway.stopped().await;
    for seen in server.requests() {
        assert_eq!(seen.method, Method::POST);
        assert!(seen.id.is_some() && seen.header("mcp-session-id").is_none(), "{seen:?}");
        assert_eq!(seen.header("mcp-method"), seen.rpc.as_deref());
    }
}

/// L11: a modern server that says on a call's stream that its tools changed is listed again for each class of callers.
#[tokio::test]
async fn a_change_is_read_again_for_each_class() {
    let server = HttpServer::modern().await;
    let gate = Gate::new();
    let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    let done = members(r#""result":{"resultType":"complete","content":[]}"#);
    server.on(rpc("tools/call"), Answer::events([hold_until(&gate), message(changed), done]));
    let gateway = gateway(&server).await;
    let plain = gateway.client("/mcp").initialize(LEGACY).await;
    let able = gateway.client("/mcp").initialize_with(LEGACY, json!({ "roots": {} })).await;
    let new = modern(&gateway, "/mcp");
    for caller in [&plain, &able] {
        caller.call(1, "tools/list", json!({})).await;
    }
    new.call(1, "tools/list", json!({})).await;
    let (mut one, mut two) = (plain.open_get().await, able.open_get().await);
    server.on(rpc("tools/list"), tools(json!([mirroring()])));
    gate.open();
    plain.call(2, "tools/call", tool("mcp_u1_echo", json!({}))).await;
    for stream in [&mut one, &mut two] {
        let told = stream.message().await.expect("a notification");
        assert_eq!(told["method"], "notifications/tools/list_changed");
    }
    let list = able.call(3, "tools/list", json!({})).await;
    assert_eq!(list["result"]["tools"][0]["name"], "mcp_u1_deploy");
    let list = new.call(3, "tools/list", json!({})).await;
    assert_eq!(list["result"]["tools"][0]["name"], "mcp_u1_deploy");
}

/// T54: a list that takes too long is let go of in the same way.
#[tokio::test]
async fn a_list_that_is_late_is_hung_up_on() {
    let server = HttpServer::modern().await;
    server.on(rpc("tools/list"), Answer::events([hold()]));
    let hasty = |server: &mut mcpgate::settings::ServerSettings| {
        server.timeouts.idle = Duration::from_millis(200);
        server.timeouts.list = Duration::from_secs(5);
    };
    let gateway = TestGateway::new().http("u1", server.url()).adjust(auto).adjust(hasty).start().await;
    let list = modern(&gateway, "/mcp").call(1, "tools/list", json!({})).await;
    assert_eq!(list["result"]["tools"], json!([]));
    server.await_hang_up(rpc("tools/list")).await;
    assert_eq!(server.count(rpc("notifications/cancelled")), 0);
}

/// A modern server behind `isolation: shared` is spoken to as such.
#[tokio::test]
async fn a_shared_modern_server_is_found_out_too() {
    let server = HttpServer::modern().await;
    let shared = |server: &mut mcpgate::settings::ServerSettings| {
        server.isolation = mcpgate::settings::servers::Isolation::Shared { size: 2 };
    };
    let gateway = TestGateway::new().http("u1", server.url()).adjust(auto).adjust(shared).start().await;
    let (new, old) = both(&gateway).await;
    let call = tool("mcp_u1_echo", json!({}));
    assert_eq!(new.call(1, "tools/call", call.clone()).await["result"]["content"][0]["text"], "ok");
    assert_eq!(old.call(1, "tools/call", call).await["result"]["content"][0]["text"], "ok");
    assert_eq!(server.count(rpc("initialize")), 0);
    assert_eq!(server.count(rpc("server/discover")), 1);
}

/// R4: a modern server may ask a modern caller only what its request declared; what cannot be read is not handed on.
#[tokio::test]
async fn a_modern_caller_is_asked_only_what_it_declared() {
    let server = HttpServer::modern().await;
    let gateway = gateway(&server).await;
    let bare = modern(&gateway, "/servers/u1/mcp");
    let able = bare.clone().with(json!({ "elicitation": {}, "roots": {} }));
    let form = json!({ "message": "?", "requestedSchema": { "type": "object", "properties": {} } });
    let wants = json!({
        "resultType": "input_required", "requestState": "s",
        "inputRequests": { "r": { "method": "roots/list" }, "e": { "method": "elicitation/create", "params": form } },
    });
    for (method, params) in [
        ("tools/call", tool("echo", json!({}))),
        ("prompts/get", json!({ "name": "p" })),
        ("resources/read", json!({ "uri": "x:1" })),
    ] {
        server.on(rpc(method), Answer::result(&wants.to_string()));
        let refused = bare.call(1, method, params.clone()).await;
        assert_eq!(reason(&refused), Some("undeclared_input_request"), "{method}: {refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains("`u1`"), "{refused}");
        let asked = able.call(2, method, params).await;
        assert_eq!(asked["result"], wants, "{method}: {asked}");
    }
    let twice = r#"{"resultType":"input_required","inputRequests":{"r":{"method":"roots/list","method":"sampling/createMessage","params":{}}}}"#;
    server.on(rpc("tools/call"), Answer::result(twice));
    let refused = able.call(3, "tools/call", tool("echo", json!({}))).await;
    assert_eq!(reason(&refused), Some("bad_result"), "{refused}");
    let state_alone = json!({ "resultType": "input_required", "requestState": "s" });
    server.on(rpc("tools/call"), Answer::result(&state_alone.to_string()));
    let asked = bare.call(4, "tools/call", tool("echo", json!({}))).await;
    assert_eq!(asked["result"], state_alone, "nobody is asked anything");
}
