//! Whose a server's question is when several calls run (X35): nobody sees another's.

use std::collections::BTreeSet;
use std::time::Duration;

use mcpgate::settings::auth::ApiKey;
use serde_json::{Value, json};

use crate::client::tool;
use crate::gateway::TestGateway;
use crate::http_server::{Answer, HttpServer, Seen, http, message, result, rpc};
use crate::kit::{ModernClient, auto, modern};

fn everything() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}})
}

fn elicitation(id: impl Into<Value>, says: &str) -> String {
    let params = json!({"message": says, "requestedSchema": {"type": "object"}});
    json!({"jsonrpc": "2.0", "id": id.into(), "method": "elicitation/create", "params": params}).to_string()
}

fn is_answer(seen: &Seen) -> bool {
    seen.method == http::Method::POST && seen.rpc.is_none() && seen.id.is_some()
}

/// What the scripted child is told to ask.
fn asking(says: &str) -> Value {
    tool("mcp_u1_ask", json!({"id": says, "method": "elicitation/create", "params": {"message": says}}))
}

/// What the one question of an answer says.
fn says(asked: &Value) -> &str {
    let requests =
        asked["result"]["inputRequests"].as_object().unwrap_or_else(|| panic!("questions: {asked}"));
    assert_eq!(requests.len(), 1, "{asked}");
    requests.values().next().unwrap()["params"]["message"].as_str().unwrap()
}

/// Answers the one question of `asked` with `what`.
async fn answer(caller: &ModernClient, asked: &Value, mut params: Value, what: &str) -> Value {
    let key = asked["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    params["requestState"] = asked["result"]["requestState"].clone();
    params["inputResponses"] = json!({key: {"action": "accept", "content": {"what": what}}});
    caller.call(what, "tools/call", params).await
}

/// What the scripted child was answered.
fn heard(done: &Value) -> &Value {
    &done["result"]["structuredContent"]["value"]["result"]["content"]["what"]
}

/// An API key of a person.
fn key(name: &str) -> ApiKey {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, name.as_bytes());
    let sha256 = digest.as_ref().try_into().unwrap();
    ApiKey { id: name.to_owned(), sha256, tenant: None, scopes: BTreeSet::new(), expires: None }
}

/// X35, case-H11: over HTTP a question is of the call on whose stream it comes; two callers of one principal are asked
/// side by side, each its own.
#[tokio::test]
async fn over_http_a_question_is_of_the_call_on_whose_stream_it_came() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new().http("u1", server.url()).adjust(auto).start().await;
    let caller = modern(&gateway, "/mcp").with(everything());
    caller.call(0, "tools/list", json!({})).await;
    let (a, b) = (Answer::fed(), Answer::fed());
    for (name, (_, answer)) in [("a", &a), ("b", &b)] {
        let mine = format!(r#""who":"{name}""#);
        server.on(move |seen: &Seen| seen.is("tools/call") && seen.text().contains(&mine), answer.clone());
    }
    let params = |who: &str| tool("mcp_u1_echo", json!({"who": who}));
    b.0.send(message(&elicitation(1, "b"))).await;
    a.0.send(message(&elicitation(1, "a"))).await;
    let (for_a, for_b) = tokio::join!(
        caller.call("a", "tools/call", params("a")),
        caller.call("b", "tools/call", params("b"))
    );
    assert_eq!((says(&for_a), says(&for_b)), ("a", "b"));
    // The state of one is of no use with the other.
    let mixed = answer(&caller, &for_a, params("b"), "x").await;
    assert_eq!(mixed["error"]["code"], -32602, "{mixed}");
    let (done_b, done_a, ()) = tokio::join!(
        answer(&caller, &for_b, params("b"), "b"),
        answer(&caller, &for_a, params("a"), "a"),
        async {
            server.await_requests(2, is_answer).await;
            a.0.send(result(r#"{"content":[],"of":"a"}"#)).await;
            b.0.send(result(r#"{"content":[],"of":"b"}"#)).await;
        }
    );
    assert_eq!((&done_a["id"], &done_a["result"]["of"]), (&json!("a"), &json!("a")));
    assert_eq!((&done_b["id"], &done_b["result"]["of"]), (&json!("b"), &json!("b")));
}

/// X35: what comes on the standalone stream is of the one call that runs; of two it is nobody's.
#[tokio::test]
async fn a_question_on_the_standalone_stream_is_of_the_only_call_there_is() {
    let server = HttpServer::start().await;
    let (standalone, stream) = Answer::fed();
    server.on(http(http::Method::GET), stream);
    let gateway = TestGateway::new().http("u1", server.url()).adjust(auto).start().await;
    let caller = modern(&gateway, "/mcp").with(everything());
    caller.call(0, "tools/list", json!({})).await;
    let (feed, fed) = Answer::fed();
    server.once(rpc("tools/call"), fed);
    let params = tool("mcp_u1_echo", json!({}));
    let (asked, ()) = tokio::join!(caller.call(1, "tools/call", params.clone()), async {
        server.await_request(rpc("tools/call")).await;
        standalone.send(message(&elicitation("one", "?"))).await;
    });
    assert_eq!(says(&asked), "?");
    let (other, fed) = Answer::fed();
    server.once(rpc("tools/call"), fed);
    let (done, ()) = tokio::join!(caller.call(2, "tools/call", params.clone()), async {
        server.await_requests(2, rpc("tools/call")).await;
        standalone.send(message(&elicitation("whose", "?"))).await;
        let got = server.await_request(is_answer).await.json();
        assert_eq!((&got["id"], &got["error"]["code"]), (&json!("whose"), &json!(-32601)));
        other.send(result(r#"{"content":[]}"#)).await;
    });
    assert!(done["result"].is_object(), "{done}");
    let (done, ()) = tokio::join!(answer(&caller, &asked, params, "x"), async {
        server.await_requests(2, is_answer).await;
        feed.send(result(r#"{"content":[]}"#)).await;
    });
    assert_eq!(done["result"]["resultType"], "complete");
}

/// X35: over stdio a call that may be asked has its child to itself while it runs; the next one waits its turn.
#[tokio::test]
async fn over_stdio_calls_that_may_be_asked_take_turns() {
    let gateway = TestGateway::new().stdio("u1", &[]).adjust(auto).start().await;
    let caller = modern(&gateway, "/mcp").with(everything());
    caller.call(0, "tools/list", json!({})).await;
    let order = std::sync::Mutex::new(Vec::new());
    let (slept, asked) = tokio::join!(
        async {
            let done = caller.call("a", "tools/call", tool("mcp_u1_sleep", json!({"ms": 300}))).await;
            order.lock().unwrap().push("a");
            done
        },
        async {
            // A caller that can be asked nothing has a session of its own, and none of this waits for it.
            let plain = modern(&gateway, "/mcp");
            plain.call("c", "tools/call", tool("mcp_u1_echo", json!({}))).await;
            order.lock().unwrap().push("c");
            let asked = caller.call("b", "tools/call", asking("b")).await;
            order.lock().unwrap().push("b");
            asked
        }
    );
    assert!(slept["result"].is_object(), "{slept}");
    assert_eq!(says(&asked), "b");
    assert_eq!(*order.lock().unwrap(), ["c", "a", "b"]);
}

/// X35: a call whose caller is being asked rests, and others have their turn meanwhile; each is asked its own.
#[tokio::test]
async fn over_stdio_a_call_that_waits_for_its_caller_keeps_nobody() {
    let gateway = TestGateway::new().stdio("u1", &[]).adjust(auto).start().await;
    let caller = modern(&gateway, "/mcp").with(everything());
    let a = caller.call("a", "tools/call", asking("a")).await;
    let b = caller.call("b", "tools/call", asking("b")).await;
    assert_eq!((says(&a), says(&b)), ("a", "b"));
    assert_eq!(heard(&answer(&caller, &b, asking("b"), "B").await), "B");
    assert_eq!(heard(&answer(&caller, &a, asking("a"), "A").await), "A");
    // One that goes on waits for its turn as well.
    let a = caller.call("a", "tools/call", asking("a")).await;
    let (slept, done) = tokio::join!(
        caller.call("s", "tools/call", tool("mcp_u1_sleep", json!({"ms": 200}))),
        answer(&caller, &a, asking("a"), "A")
    );
    assert!(slept["result"].is_object(), "{slept}");
    assert_eq!(heard(&done), "A");
}

/// X35, T54: a retry that waits for its turn has not begun: one that is closed meanwhile harms nothing, and the next
/// one goes on with the call.
#[tokio::test]
async fn a_retry_that_is_closed_while_it_waits_for_its_turn_harms_nothing() {
    let gateway = TestGateway::new().stdio("u1", &[]).adjust(auto).start().await;
    let caller = modern(&gateway, "/mcp").with(everything());
    let asked = caller.call("a", "tools/call", asking("a")).await;
    let running = caller.call("s", "tools/call", tool("mcp_u1_sleep", json!({"ms": 1500})));
    let meanwhile = async {
        caller.call(1, "tools/list", json!({})).await;
        let retry = answer(&caller, &asked, asking("a"), "never");
        let closed = tokio::time::timeout(Duration::from_millis(300), retry).await;
        assert!(closed.is_err(), "it waits for its turn, and is closed: {closed:?}");
        answer(&caller, &asked, asking("a"), "A").await
    };
    let (slept, done) = tokio::join!(running, meanwhile);
    assert!(slept["result"].is_object(), "{slept}");
    assert_eq!(heard(&done), "A", "{done}");
}

/// X35: a call that ended while its retry waited for its turn runs no more, so the retry has what became of it at once.
#[tokio::test]
async fn a_retry_waits_for_no_turn_once_its_call_has_ended() {
    let short = |s: &mut mcpgate::settings::ServerSettings| s.timeouts.total = Duration::from_millis(800);
    let gateway = TestGateway::new().stdio("u1", &[]).adjust(auto).adjust(short).start().await;
    let caller = modern(&gateway, "/mcp").with(everything());
    caller.call(0, "tools/list", json!({})).await;
    let asked = caller.call("a", "tools/call", asking("a")).await;
    // The first runs for all its time, and so does the one behind it: the turn after these would come too late.
    let sleeping = || caller.call("s", "tools/call", tool("mcp_u1_sleep", json!({"ms": 60_000})));
    let behind = async {
        caller.call(1, "tools/list", json!({})).await;
        sleeping().await
    };
    let retry = async {
        for n in 0..3 {
            caller.call(n, "tools/list", json!({})).await;
        }
        answer(&caller, &asked, asking("a"), "A").await
    };
    let (_, _, ended) = tokio::join!(sleeping(), behind, retry);
    assert_eq!(ended["error"]["data"]["mcpgate"]["reason"], "timed_out", "{ended}");
    assert_eq!(ended["id"], "A");
}

/// X35: a call whose turn does not come in time says so; it did not run.
#[tokio::test]
async fn a_call_that_waited_too_long_for_its_turn_says_so() {
    let gateway = TestGateway::new()
        .stdio("u1", &[])
        .adjust(auto)
        .adjust(|s| s.timeouts.total = Duration::from_millis(500))
        .start()
        .await;
    let caller = modern(&gateway, "/mcp").with(everything());
    caller.call(0, "tools/list", json!({})).await;
    // The first runs for all its time; of the two behind it one has its turn then, and the other's time is over.
    let sleeping = || tool("mcp_u1_sleep", json!({"ms": 60_000}));
    let running = caller.call("a", "tools/call", sleeping());
    let behind = async {
        caller.call(1, "tools/list", json!({})).await;
        tokio::join!(caller.call("b", "tools/call", sleeping()), caller.call("c", "tools/call", sleeping()))
    };
    let (_, (b, c)) = tokio::join!(running, behind);
    let is_busy = |answer: &Value| answer["error"]["data"]["mcpgate"]["reason"] == "busy";
    let (busy, other) = if is_busy(&b) { (b, c) } else { (c, b) };
    assert_eq!(other["error"]["data"]["mcpgate"]["reason"], "timed_out", "{other}");
    let said = &busy["error"]["data"]["mcpgate"];
    assert_eq!(
        (&said["reason"], &said["server"], &said["retryable"]),
        (&json!("busy"), &json!("u1"), &json!(true)),
        "{busy}"
    );
}

/// `pool.perSession`: more calls side by side, over children of their own.
#[tokio::test]
async fn a_session_may_have_several_children() {
    let several = |s: &mut mcpgate::settings::ServerSettings| {
        let mcpgate::settings::servers::TransportSettings::Stdio(stdio) = &mut s.transport else {
            unreachable!()
        };
        stdio.per_session = 2;
    };
    let gateway = TestGateway::new().stdio("u1", &[]).adjust(auto).adjust(several).start().await;
    let caller = modern(&gateway, "/mcp").with(everything());
    caller.call(0, "tools/list", json!({})).await;
    let (for_a, for_b) = tokio::join!(
        caller.call("a", "tools/call", asking("a")),
        caller.call("b", "tools/call", asking("b"))
    );
    assert_eq!((says(&for_a), says(&for_b)), ("a", "b"));
    let (a, b) =
        tokio::join!(answer(&caller, &for_a, asking("a"), "A"), answer(&caller, &for_b, asking("b"), "B"));
    assert_eq!((heard(&a), heard(&b)), (&json!("A"), &json!("B")));
}

/// case-H11: two principals at one server, over HTTP and over stdio: each is asked by its own call only, and what one
/// holds is of no use to the other.
#[tokio::test]
async fn principals_stay_apart() {
    let gateway = TestGateway::new()
        .stdio("u1", &[])
        .adjust(auto)
        .with(|s| s.auth.api_keys = vec![key("ann-secret"), key("bob-secret")])
        .start()
        .await;
    let who = |name: &str| {
        let mut caller = modern(&gateway, "/mcp").with(everything());
        caller.client = caller.client.header("authorization", &format!("Bearer {name}-secret"));
        caller
    };
    let (ann, bob) = (who("ann"), who("bob"));
    let (for_ann, for_bob) =
        tokio::join!(ann.call(1, "tools/call", asking("ann")), bob.call(1, "tools/call", asking("bob")));
    assert_eq!((says(&for_ann), says(&for_bob)), ("ann", "bob"), "side by side");
    let stolen = answer(&bob, &for_ann, asking("ann"), "bob").await;
    assert_eq!(stolen["error"]["data"]["mcpgate"]["reason"], "invalid_state", "{stolen}");
    assert_eq!(heard(&answer(&bob, &for_bob, asking("bob"), "B").await), "B");
    assert_eq!(heard(&answer(&ann, &for_ann, asking("ann"), "A").await), "A");
}

/// X39, P1: a caller hears log messages if its request names a level, from that level on, on the stream of that
/// request; the server is told the most verbose level once.
#[tokio::test]
async fn log_messages_go_to_requests_that_want_them() {
    let server = HttpServer::start().await;
    server.on_each(rpc("initialize"), |seen| {
        let version = seen.param("protocolVersion").unwrap();
        Answer::result(&format!(
            r#"{{"protocolVersion":{version},"capabilities":{{"tools":{{}},"logging":{{}}}},"serverInfo":{{"name":"s","version":"1"}}}}"#
        ))
    });
    server.on(rpc("logging/setLevel"), Answer::result("{}"));
    let gateway = TestGateway::new().http("u1", server.url()).adjust(auto).start().await;
    let caller = modern(&gateway, "/mcp");
    caller.call(0, "tools/list", json!({})).await;
    let log = |level: &str| {
        message(&json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": level, "data": level}}).to_string())
    };
    server.on(
        rpc("tools/call"),
        Answer::events([
            log("debug"),
            log("info"),
            log("error"),
            log("nonsense"),
            result(r#"{"content":[]}"#),
        ]),
    );
    let levels = async |level: Option<&str>| -> Vec<String> {
        let mut params = tool("mcp_u1_echo", json!({}));
        if let Some(level) = level {
            params["_meta"] = json!({"io.modelcontextprotocol/logLevel": level});
        }
        let answer = caller.post(&caller.request(1, "tools/call", params)).await;
        if !answer.is_stream() {
            assert!(answer.json().await["result"].is_object());
            return Vec::new();
        }
        let all = answer.stream().rest().await;
        assert!(all.last().unwrap()["result"].is_object());
        all.iter().filter_map(|m| Some(m["params"]["level"].as_str()?.to_owned())).collect()
    };
    assert!(levels(None).await.is_empty());
    assert_eq!(server.count(rpc("logging/setLevel")), 0);
    assert_eq!(levels(Some("info")).await, ["info", "error"]);
    assert_eq!(levels(Some("error")).await, ["error"]);
    assert_eq!(levels(Some("debug")).await, ["debug", "info", "error"]);
    assert_eq!(levels(Some("info")).await, ["info", "error"]);
    assert!(levels(None).await.is_empty());
    let told: Vec<Value> = server
        .requests()
        .iter()
        .filter(|s| s.is("logging/setLevel"))
        .map(|s| s.json()["params"]["level"].clone())
        .collect();
    assert_eq!(told, ["info", "debug"], "once each, only ever more verbose");
}

/// X39: over stdio a log message is of the one call that runs; of two it is nobody's.
#[tokio::test]
async fn over_stdio_a_log_message_is_of_the_only_call_there_is() {
    let gateway = TestGateway::new().stdio("u1", &[]).adjust(auto).start().await;
    let caller = modern(&gateway, "/mcp");
    caller.call(0, "tools/list", json!({})).await;
    let say = || {
        let arguments = json!({"method": "notifications/message", "params": {"level": "error", "data": "x"}});
        let mut params = tool("mcp_u1_say", arguments);
        params["_meta"] = json!({"io.modelcontextprotocol/logLevel": "debug"});
        params
    };
    let heard = async |id: &str| {
        let answer = caller.post(&caller.request(id, "tools/call", say())).await;
        if answer.is_stream() { answer.stream().rest().await.len() - 1 } else { 0 }
    };
    assert_eq!(heard("alone").await, 1);
    let sleeping = caller.call("s", "tools/call", tool("mcp_u1_sleep", json!({"ms": 3000})));
    let unheard = async { while heard("perhaps alone").await > 0 {} };
    tokio::select! {
        _ = sleeping => panic!("all was heard while another call ran"),
        () = unheard => {}
    }
}

/// case-H07: two calls with one progress token each hear their own progress only.
#[tokio::test]
async fn progress_tokens_of_two_calls_do_not_mix() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new().http("u1", server.url()).adjust(auto).start().await;
    let caller = modern(&gateway, "/mcp").with(everything());
    caller.call(0, "tools/list", json!({})).await;
    let run = async |who: f64| {
        let mut params = tool("mcp_u1_echo", json!({"who": who}));
        params["_meta"] = json!({"progressToken": 1});
        let answer = caller.post(&caller.request(1, "tools/call", params)).await;
        let all = answer.stream().rest().await;
        let progress = all.iter().filter(|m| m["method"] == "notifications/progress");
        progress
            .map(|m| (m["params"]["progressToken"].clone(), m["params"]["progress"].clone()))
            .collect::<Vec<_>>()
    };
    server.on_each(rpc("tools/call"), |seen| {
        let call = seen.json();
        let who = call["params"]["arguments"]["who"].as_f64().unwrap();
        let token = &call["params"]["_meta"]["progressToken"];
        let step = |n: f64| {
            let params = json!({"progressToken": token, "progress": who + n});
            message(
                &json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}).to_string(),
            )
        };
        Answer::events([step(0.0), step(1.0), result(r#"{"content":[]}"#)])
    });
    let (a, b) = tokio::join!(run(10.0), run(20.0));
    assert_eq!(a, [(json!(1), json!(10.0)), (json!(1), json!(11.0))]);
    assert_eq!(b, [(json!(1), json!(20.0)), (json!(1), json!(21.0))]);
}
