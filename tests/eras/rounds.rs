//! What modern servers want to know before they go on, asked of legacy callers (X13 to X17, R1 to R4).

use std::time::{Duration, Instant};

use futures_util::future::join;
use mcpgate::settings::ServerSettings;
use mcpgate::settings::servers::Isolation;
use serde_json::{Value, json};

use crate::client::{Client, Stream, request, tool};
use crate::gateway::{Setup, TestGateway};
use crate::http_server::{Answer, HttpServer, Seen, rpc};
use crate::kit::{LEGACY, auto};

fn all_capabilities() -> Value {
    json!({"roots": {"listChanged": true}, "sampling": {"tools": {}}, "elicitation": {"form": {}, "url": {}}})
}

fn form(message: &str) -> Value {
    json!({"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": {"type": "object"}}})
}

fn sampling() -> Value {
    json!({"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 7, "zz": 1.5}})
}

/// A result that wants this.
fn wanting(requests: Value, state: Option<&str>) -> Answer {
    let mut result = json!({"resultType": "input_required", "inputRequests": requests});
    if let Some(state) = state {
        result["requestState"] = json!(state);
    }
    Answer::result(&result.to_string())
}

fn done() -> Answer {
    Answer::result(r#"{"resultType":"complete","content":[{"type":"text","text":"done"}]}"#)
}

/// Whether a call brings answers or state.
fn is_retry(seen: &Seen) -> bool {
    seen.is("tools/call") && (seen.param("inputResponses").is_some() || seen.param("requestState").is_some())
}

fn is_first(seen: &Seen) -> bool {
    seen.is("tools/call") && !is_retry(seen)
}

/// A server whose calls want this once, and are done then.
async fn server_wanting(requests: Value, state: Option<&str>) -> HttpServer {
    let server = HttpServer::modern().await;
    server.on(is_retry, done());
    server.on(is_first, wanting(requests, state));
    server
}

fn setup(server: &HttpServer) -> Setup {
    TestGateway::new().http("u1", server.url()).adjust(auto)
}

async fn caller(gateway: &TestGateway) -> Client {
    gateway.client("/mcp").initialize_with(LEGACY, all_capabilities()).await
}

fn call(id: impl Into<Value>) -> Value {
    request(id, "tools/call", tool("mcp_u1_echo", json!({"a": 1})))
}

/// Makes a call and gives the stream of its answer.
async fn calling(client: &Client) -> Stream {
    client.post(&call("c")).await.stream()
}

async fn next(stream: &mut Stream) -> Value {
    stream.message().await.expect("a message")
}

async fn answer(client: &Client, question: &Value, result: Value) {
    let body = json!({"jsonrpc": "2.0", "id": question["id"], "result": result});
    assert_eq!(client.post(&body).await.status, 202);
}

async fn refuse(client: &Client, question: &Value) {
    let error = json!({"code": -1, "message": "not today"});
    let body = json!({"jsonrpc": "2.0", "id": question["id"], "error": error});
    assert_eq!(client.post(&body).await.status, 202);
}

fn params(seen: &Seen) -> Value {
    seen.json()["params"].clone()
}

fn reason(response: &Value) -> &str {
    assert_eq!(response["error"]["code"], -32603, "{response}");
    assert_eq!(response["error"]["data"]["mcpgate"]["server"], "u1", "{response}");
    response["error"]["data"]["mcpgate"]["reason"].as_str().unwrap()
}

/// X13, R3: all questions of a round are asked at once on the stream of the call, under ids of the gateway; the same
/// request goes up again with the bare answers and the exact state.
#[tokio::test]
async fn all_questions_of_a_round_are_asked_at_once() {
    let requests = json!({"q/1": form("who?"), "q2": sampling(), "q3": {"method": "roots/list"}});
    let server = server_wanting(requests, Some("opaque \"\u{e9}\"")).await;
    let gateway = setup(&server).start().await;
    let client = caller(&gateway).await;
    let mut stream = calling(&client).await;
    let asked = [next(&mut stream).await, next(&mut stream).await, next(&mut stream).await];
    assert_eq!(
        (&asked[0]["method"], &asked[0]["params"]),
        (&json!("elicitation/create"), &form("who?")["params"])
    );
    assert_eq!(
        (&asked[1]["method"], &asked[1]["params"]),
        (&json!("sampling/createMessage"), &sampling()["params"])
    );
    assert_eq!((&asked[2]["method"], asked[2].get("params")), (&json!("roots/list"), None));
    assert!(asked.iter().all(|q| q["id"].is_u64() && q["jsonrpc"] == "2.0"), "{asked:?}");
    let answers = [
        json!({"action": "accept", "content": {"n": 1.50}}),
        json!({"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"}),
        json!({"roots": [{"uri": "file:///w"}]}),
    ];
    for at in [2, 0, 1] {
        assert_eq!(server.count(is_retry), 0, "not before all are answered");
        answer(&client, &asked[at], answers[at].clone()).await;
    }
    let result = next(&mut stream).await;
    assert_eq!((&result["id"], &result["result"]["content"][0]["text"]), (&json!("c"), &json!("done")));
    assert!(stream.message().await.is_none(), "the stream ends with the result");
    let (first, second) = (server.await_request(is_first).await, server.await_request(is_retry).await);
    assert_ne!(first.id, second.id, "a new id");
    let mut retried = params(&second);
    assert_eq!(retried["inputResponses"], json!({"q/1": answers[0], "q2": answers[1], "q3": answers[2]}));
    assert_eq!(retried["requestState"], "opaque \"\u{e9}\"");
    let members = retried.as_object_mut().unwrap();
    members.remove("inputResponses");
    members.remove("requestState");
    assert_eq!(retried, params(&first), "the same request");
    assert_eq!(second.header("mcp-name"), Some("echo"));
}

/// X13, R3: rounds repeat; a state that is not given is not sent, nor is one of an earlier round.
#[tokio::test]
async fn rounds_repeat_with_the_state_of_the_last() {
    let server = HttpServer::modern().await;
    server.once(rpc("tools/call"), wanting(json!({"a": form("1")}), Some("s1")));
    server.once(rpc("tools/call"), wanting(json!({"b": form("2")}), None));
    server.once(rpc("tools/call"), wanting(json!({"c": form("3")}), Some("s3")));
    let gateway = setup(&server).start().await;
    let client = caller(&gateway).await;
    let mut stream = calling(&client).await;
    for n in ["1", "2", "3"] {
        let asked = next(&mut stream).await;
        assert_eq!(asked["params"]["message"], n);
        answer(&client, &asked, json!({"action": "accept", "content": {"n": n}})).await;
    }
    assert_eq!(next(&mut stream).await["result"]["content"][0]["text"], "ok");
    let calls = server.await_requests(4, rpc("tools/call")).await;
    let brought: Vec<Value> = calls
        .iter()
        .map(|seen| {
            let params = params(seen);
            json!([params["inputResponses"], params.get("requestState")])
        })
        .collect();
    let accepted = |key: &str, n: &str| json!({key: {"action": "accept", "content": {"n": n}}});
    assert_eq!(
        brought,
        [
            json!([null, null]),
            json!([accepted("a", "1"), "s1"]),
            json!([accepted("b", "2"), null]),
            json!([accepted("c", "3"), "s3"]),
        ]
    );
}

/// R1: prompts and resources may want input too.
#[tokio::test]
async fn prompts_and_resources_want_input_too() {
    for (method, params) in [("prompts/get", json!({"name": "p"})), ("resources/read", json!({"uri": "x:1"}))]
    {
        let server = HttpServer::modern().await;
        server.once(rpc(method), wanting(json!({"k": form("?")}), None));
        server.once(rpc(method), Answer::result(r#"{"resultType":"complete","messages":[],"contents":[]}"#));
        let gateway = setup(&server).start().await;
        let client = gateway.client("/servers/u1/mcp").initialize_with(LEGACY, all_capabilities()).await;
        let mut stream = client.post(&request(1, method, params)).await.stream();
        let asked = next(&mut stream).await;
        answer(&client, &asked, json!({"action": "decline"})).await;
        assert!(next(&mut stream).await["result"].is_object());
        let retry = &server.await_requests(2, rpc(method)).await[1];
        assert_eq!(retry.param("inputResponses").unwrap(), r#"{"k":{"action":"decline"}}"#);
    }
}

/// X14: a caller's error is a person's no, where a person was asked.
#[tokio::test]
async fn an_error_to_an_elicitation_cancels_it() {
    let server = server_wanting(json!({"k": form("?")}), Some("s")).await;
    let gateway = setup(&server).start().await;
    let client = caller(&gateway).await;
    let mut stream = calling(&client).await;
    refuse(&client, &next(&mut stream).await).await;
    assert_eq!(next(&mut stream).await["result"]["content"][0]["text"], "done");
    let retry = server.await_request(is_retry).await;
    assert_eq!(params(&retry)["inputResponses"], json!({"k": {"action": "cancel"}}));
}

/// X14: without sampling or roots the server cannot go on: the call ends, nothing more goes up, and what else was
/// asked need not be answered.
#[tokio::test]
async fn an_error_to_sampling_or_roots_ends_the_call() {
    for wanted in [sampling(), json!({"method": "roots/list", "params": {}})] {
        let server = server_wanting(json!({"a": form("?"), "b": wanted}), Some("s")).await;
        let gateway = setup(&server).start().await;
        let client = caller(&gateway).await;
        let mut stream = calling(&client).await;
        let (other, asked) = (next(&mut stream).await, next(&mut stream).await);
        refuse(&client, &asked).await;
        let taken_back = next(&mut stream).await;
        assert_eq!(taken_back["method"], "notifications/cancelled");
        assert_eq!(taken_back["params"]["requestId"], other["id"]);
        let ended = next(&mut stream).await;
        assert_eq!((&ended["id"], reason(&ended)), (&json!("c"), "no_input"));
        assert!(ended["error"]["message"].as_str().unwrap().contains("not today"), "{ended}");
        client.call(2, "tools/list", json!({})).await;
        assert_eq!(server.count(is_retry), 0);
    }
}

/// X15: callers of 2025-11-25 want an id with each URL; the modern era has none.
#[tokio::test]
async fn a_url_elicitation_gets_an_id() {
    let url = json!({"mode": "url", "message": "?", "url": "https://x.test"});
    let ask = json!({"method": "elicitation/create", "params": url});
    let server = server_wanting(json!({"k": ask.clone(), "l": ask}), None).await;
    let gateway = setup(&server).start().await;
    let client = caller(&gateway).await;
    let mut stream = calling(&client).await;
    let asked = [next(&mut stream).await, next(&mut stream).await];
    let ids: Vec<&str> = asked.iter().map(|a| a["params"]["elicitationId"].as_str().unwrap()).collect();
    assert!(!ids[0].is_empty() && ids[0] != ids[1], "{ids:?}");
    for mut asked in asked {
        answer(&client, &asked, json!({"action": "accept"})).await;
        asked["params"].as_object_mut().unwrap().remove("elicitationId");
        assert_eq!(asked["params"], url);
    }
    assert!(next(&mut stream).await["result"].is_object());
}

/// R4, X16: what the caller did not declare, or its revision does not know, is not asked of it; the call ends and
/// the error names the server.
#[tokio::test]
async fn nobody_is_asked_what_was_not_declared() {
    let url = json!({"method": "elicitation/create", "params": {"mode": "url", "url": "https://x.test"}});
    let with_tools = json!({"method": "sampling/createMessage", "params": {"messages": [], "tools": []}});
    let roots = json!({"method": "roots/list"});
    for (revision, capabilities, wanted) in [
        (LEGACY, json!({}), form("?")),
        (LEGACY, json!({"elicitation": {}}), url.clone()),
        (LEGACY, json!({"elicitation": {"url": {}}}), form("?")),
        (LEGACY, json!({"sampling": {}}), with_tools.clone()),
        (LEGACY, json!({"sampling": {}}), roots),
        ("2025-06-18", all_capabilities(), url),
        ("2025-06-18", all_capabilities(), with_tools),
        ("2025-03-26", all_capabilities(), form("?")),
    ] {
        let server = server_wanting(json!({"k": wanted}), Some("s")).await;
        let gateway = setup(&server).start().await;
        let client = gateway.client("/mcp").initialize_with(revision, capabilities).await;
        let answer = client.post(&call(1)).await;
        assert!(!answer.is_stream(), "nothing is asked");
        assert_eq!(reason(&answer.json().await), "undeclared_input_request");
        assert_eq!(server.count(is_retry), 0);
    }
}

/// R1, R2, M13: what is no want for input that a server may have is an error that names the server.
#[tokio::test]
async fn a_malformed_want_is_the_servers_error() {
    let wants = |requests: Value| json!({"resultType": "input_required", "inputRequests": requests});
    for result in [
        json!({"resultType": "input_required"}),
        wants(json!({})),
        wants(json!([])),
        wants(json!({"k": {"method": "tools/call", "params": {}}})),
        wants(json!({"k": {"method": "elicitation/create"}})),
        json!({"resultType": "input_required", "requestState": {}}),
        json!({"resultType": "task", "taskId": "t"}),
    ] {
        let server = HttpServer::modern().await;
        server.on(rpc("tools/call"), Answer::result(&result.to_string()));
        let gateway = setup(&server).start().await;
        let ended = caller(&gateway).await.post(&call(1)).await.response().await;
        assert_eq!(reason(&ended), "bad_result", "{result}");
        assert_eq!(server.count(rpc("tools/call")), 1);
    }
    let server = HttpServer::modern().await;
    server.on(rpc("completion/complete"), wanting(json!({"k": form("?")}), Some("s")));
    let gateway = setup(&server).start().await;
    let client = gateway.client("/servers/u1/mcp").initialize_with(LEGACY, all_capabilities()).await;
    let params = json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}});
    assert_eq!(reason(&client.call(1, "completion/complete", params).await), "bad_result");
}

/// case-H11: a caller that takes only JSON cannot be asked, and hears so at once.
#[tokio::test]
async fn a_caller_of_json_only_is_told_that_it_cannot_be_asked() {
    let server = server_wanting(json!({"k": form("?")}), Some("s")).await;
    let gateway = setup(&server).start().await;
    let client = caller(&gateway).await.header("accept", "application/json");
    let ended = client.post(&call(1)).await.json().await;
    assert_eq!(reason(&ended), "no_input");
    assert!(ended["error"]["message"].as_str().unwrap().contains("no stream"), "{ended}");
    assert_eq!(server.count(is_retry), 0);
}

/// X17, R7: a server that wants nothing but another try gets it, later and later.
#[tokio::test]
async fn state_alone_is_brought_back_after_a_while() {
    let server = HttpServer::modern().await;
    for state in ["s1", "s2", "s3"] {
        let result = json!({"resultType": "input_required", "requestState": state});
        server.once(rpc("tools/call"), Answer::result(&result.to_string()));
    }
    let gateway = setup(&server).start().await;
    let ended = caller(&gateway).await.post(&call(1)).await.response().await;
    assert_eq!(ended["result"]["content"][0]["text"], "ok", "{ended}");
    let calls = server.await_requests(4, rpc("tools/call")).await;
    let states: Vec<Option<String>> = calls.iter().map(|seen| seen.param("requestState")).collect();
    assert_eq!(
        states[1..],
        [Some("\"s1\"".to_owned()), Some("\"s2\"".to_owned()), Some("\"s3\"".to_owned())]
    );
    assert!(calls.iter().all(|seen| seen.param("inputResponses").is_none()));
    let waits: Vec<Duration> = calls.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
    for (wait, least) in waits.iter().zip([80, 160, 320]) {
        assert!(*wait >= Duration::from_millis(least), "{waits:?}");
    }
}

/// X17: tries without end are bounded by the time of the whole call.
#[tokio::test]
async fn state_alone_is_not_brought_back_for_ever() {
    let server = HttpServer::modern().await;
    let result = json!({"resultType": "input_required", "requestState": "s"});
    server.on(rpc("tools/call"), Answer::result(&result.to_string()));
    let gateway = setup(&server).adjust(|s| s.timeouts.total = Duration::from_millis(500)).start().await;
    let begun = Instant::now();
    let ended = caller(&gateway).await.post(&call(1)).await.response().await;
    assert_eq!(reason(&ended), "timed_out");
    assert!(begun.elapsed() >= Duration::from_millis(500));
    assert!(server.count(rpc("tools/call")) >= 2);
}

/// A server that never has enough is not asked for ever.
#[tokio::test]
async fn rounds_are_bounded() {
    let server = HttpServer::modern().await;
    server.on(rpc("tools/call"), wanting(json!({"k": form("?")}), Some("s")));
    let gateway = setup(&server).start().await;
    let client = caller(&gateway).await;
    let mut stream = calling(&client).await;
    let mut rounds = 0;
    let ended = loop {
        let message = next(&mut stream).await;
        if message["method"].is_null() {
            break message;
        }
        rounds += 1;
        answer(&client, &message, json!({"action": "accept", "content": {}})).await;
    };
    assert_eq!((rounds, reason(&ended)), (32, "too_many_rounds"));
    assert_eq!(server.count(rpc("tools/call")), 33);
}

/// Each question waits for `timeouts.input`, while the idle limit rests.
#[tokio::test]
async fn a_question_waits_for_its_own_time() {
    let server = server_wanting(json!({"k": form("?")}), Some("s")).await;
    let limits = |server: &mut ServerSettings| {
        server.timeouts.idle = Duration::from_millis(200);
        server.timeouts.input = Duration::from_millis(700);
    };
    let gateway = setup(&server).adjust(limits).start().await;
    let client = caller(&gateway).await;
    let mut stream = calling(&client).await;
    let asked = next(&mut stream).await;
    assert!(stream.is_silent_for(Duration::from_millis(450)).await, "the idle limit rests");
    answer(&client, &asked, json!({"action": "accept"})).await;
    assert!(next(&mut stream).await["result"].is_object());

    let mut stream = calling(&client).await;
    let asked = next(&mut stream).await;
    let taken_back = next(&mut stream).await;
    assert_eq!(taken_back["params"]["requestId"], asked["id"]);
    assert_eq!(reason(&next(&mut stream).await), "no_input");
    assert_eq!(server.count(is_retry), 1, "only the first call went on");
}

/// P4, X11: a caller that takes its call back is asked no more, and nothing more goes up.
#[tokio::test]
async fn a_call_can_be_taken_back_while_it_asks() {
    let server = server_wanting(json!({"k": form("?")}), Some("s")).await;
    let gateway = setup(&server).start().await;
    let client = caller(&gateway).await;
    let mut stream = calling(&client).await;
    let asked = next(&mut stream).await;
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "c"}});
    assert_eq!(client.post(&cancel).await.status, 202);
    let taken_back = next(&mut stream).await;
    assert_eq!(taken_back["params"]["requestId"], asked["id"]);
    assert!(stream.message().await.is_none(), "no response to what was taken back");
    answer(&client, &asked, json!({"action": "accept"})).await;
    client.call(2, "tools/list", json!({})).await;
    assert_eq!(server.count(is_retry), 0);
}

/// A session that ends takes its questions along.
#[tokio::test]
async fn the_end_of_a_session_ends_what_it_asks() {
    let server = server_wanting(json!({"k": form("?")}), Some("s")).await;
    let gateway = setup(&server).start().await;
    let client = caller(&gateway).await;
    let mut stream = calling(&client).await;
    next(&mut stream).await;
    assert_eq!(client.delete().await, 204);
    let ended = stream.rest().await.into_iter().next_back().unwrap();
    assert_eq!(reason(&ended), "session_ended");
    assert_eq!(server.count(is_retry), 0);
}

/// X12: a caller that leaves has not cancelled: it finds the question when it comes back, and the result then.
#[tokio::test]
async fn a_caller_may_leave_and_come_back_to_the_question() {
    let server = server_wanting(json!({"k": form("?")}), Some("s")).await;
    let gateway = setup(&server).start().await;
    let client = caller(&gateway).await;
    let mut stream = calling(&client).await;
    let primed = stream.event().await.unwrap().id.unwrap();
    drop(stream);
    let mut stream = client.resume(&primed).await.stream();
    let asked = next(&mut stream).await;
    answer(&client, &asked, json!({"action": "accept"})).await;
    assert_eq!(next(&mut stream).await["result"]["content"][0]["text"], "done");
}

/// case-H11: two callers who are asked by one server at once: each sees its own question alone, and nothing that one
/// answers reaches the other's call.
#[tokio::test]
async fn two_callers_see_their_own_questions_only() {
    let server = HttpServer::modern().await;
    server.on_each(rpc("tools/call"), |seen| {
        let who = seen.json()["params"]["arguments"]["who"].as_str().unwrap().to_owned();
        if seen.param("inputResponses").is_some() {
            return done();
        }
        let sampling = json!({"method": "sampling/createMessage", "params": {"messages": [], "who": who}});
        let roots = json!({"method": "roots/list", "params": {"who": who}});
        let elicitation = json!({"method": "elicitation/create", "params": {"message": "?", "who": who}});
        wanting(json!({"e": elicitation, "s": sampling, "r": roots}), Some(&who))
    });
    let gateway = setup(&server).start().await;
    let (a, b) = (caller(&gateway).await, caller(&gateway).await);
    let ask = |who: &str| request(1, "tools/call", tool("mcp_u1_echo", json!({"who": who})));
    let (ask_a, ask_b) = (ask("a"), ask("b"));
    let (of_a, of_b) = join(a.post(&ask_a), b.post(&ask_b)).await;
    let (mut of_a, mut of_b) = (of_a.stream(), of_b.stream());
    let (mut for_a, mut for_b) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        for_a.push(next(&mut of_a).await);
        for_b.push(next(&mut of_b).await);
    }
    assert!(for_a.iter().all(|q| q["params"]["who"] == "a"), "{for_a:?}");
    assert!(for_b.iter().all(|q| q["params"]["who"] == "b"), "{for_b:?}");
    // Ids of one session mean nothing, or something else, in the other.
    for (question, own) in for_a.iter().zip(&for_b) {
        if question["id"] != own["id"] {
            answer(&b, question, json!({"by": "b"})).await;
        }
    }
    for (client, questions) in [(&a, &for_a), (&b, &for_b)] {
        for question in questions {
            answer(client, question, json!({"by": question["params"]["who"]})).await;
        }
    }
    assert!(next(&mut of_a).await["result"].is_object() && next(&mut of_b).await["result"].is_object());
    for retry in server.await_requests(2, is_retry).await {
        let params = params(&retry);
        let by = json!({"by": params["arguments"]["who"]});
        assert_eq!(params["inputResponses"], json!({"e": by, "s": by, "r": by}));
        assert_eq!(params["requestState"], params["arguments"]["who"]);
    }
}

/// X25: calls of a batch are asked on the stream of the batch.
#[tokio::test]
async fn calls_of_a_batch_are_asked_too() {
    let server = server_wanting(json!({"k": sampling()}), Some("s")).await;
    let gateway = setup(&server).start().await;
    let client = gateway.client("/mcp").initialize_with("2025-03-26", all_capabilities()).await;
    let mut stream = client.post(&json!([call(1), call(2)])).await.stream();
    for _ in 0..2 {
        let asked = next(&mut stream).await;
        answer(&client, &asked, json!({"role": "assistant"})).await;
    }
    let mut ids = Vec::new();
    for response in stream.rest().await {
        assert_eq!(response["result"]["content"][0]["text"], "done", "{response}");
        ids.push(response["id"].as_u64().unwrap());
    }
    ids.sort_unstable();
    assert_eq!(ids, [1, 2]);
}

/// X13: a child asks as a server over HTTP does, also one that many sessions share.
#[tokio::test]
async fn children_ask_too() {
    for isolation in [Isolation::Session, Isolation::Shared { size: 1 }] {
        let own = |server: &mut ServerSettings| {
            auto(server);
            server.isolation = isolation;
        };
        let gateway = TestGateway::new().stdio("u1", &["--era", "modern"]).adjust(own).start().await;
        let (a, b) = (caller(&gateway).await, caller(&gateway).await);
        let ask = |who: &str| {
            let arguments = json!({"method": "elicitation/create", "params": {"message": who}});
            request(1, "tools/call", tool("mcp_u1_ask", arguments))
        };
        let (ask_a, ask_b) = (ask("a"), ask("b"));
        let (of_a, of_b) = join(a.post(&ask_a), b.post(&ask_b)).await;
        for (client, answered, who) in [(&a, of_a, "a"), (&b, of_b, "b")] {
            let mut stream = answered.stream();
            let asked = next(&mut stream).await;
            assert_eq!(asked["params"]["message"], who);
            answer(client, &asked, json!({"action": "accept", "content": {"who": who}})).await;
            let result = next(&mut stream).await;
            let text = result["result"]["content"][0]["text"].as_str().unwrap_or_default();
            assert!(text.contains(&format!(r#""who":"{who}""#)), "{result}");
        }
    }
}
