//! A modern caller whose legacy server asks in mid-call (X34): the call is parked between its requests.

use std::time::Duration;

use mcpgate::settings::auth::Anonymous;
use serde_json::{Value, json};

use crate::client::tool;
use crate::gateway::{Setup, TestGateway};
use crate::http_server::{Answer, Feed, HttpServer, Seen, members, message, result, rpc};
use crate::kit::{ModernClient, auto, modern};

/// How many calls wait for their callers.
const PARKED: &str = "mcpgate_parked_calls";

/// What all callers here can be asked.
fn everything() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}})
}

fn question(id: impl Into<Value>, method: &str, params: Value) -> String {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params}).to_string()
}

fn elicitation(id: impl Into<Value>, says: &str) -> String {
    question(id, "elicitation/create", json!({"message": says, "requestedSchema": {"type": "object"}}))
}

/// The answer that a server got to its question.
fn is_answer(seen: &Seen) -> bool {
    seen.method == http::Method::POST && seen.rpc.is_none() && seen.id.is_some()
}

/// A legacy server and a caller that can be asked everything.
struct Scene {
    server: HttpServer,
    gateway: TestGateway,
    caller: ModernClient,
}

impl Scene {
    async fn new() -> Self {
        Self::with(|_| {}, |_| {}).await
    }

    async fn with(
        settings: impl FnOnce(&mut mcpgate::settings::Settings),
        of_server: impl FnOnce(&mut mcpgate::settings::ServerSettings),
    ) -> Self {
        let server = HttpServer::start().await;
        let setup = TestGateway::new().http("u1", server.url()).adjust(auto).adjust(of_server);
        Self::of(server, setup.with(settings)).await
    }

    async fn of(server: HttpServer, setup: Setup) -> Self {
        let gateway = setup.start().await;
        let caller = modern(&gateway, "/mcp").with(everything());
        caller.call("list", "tools/list", json!({})).await;
        Self { server, gateway, caller }
    }

    /// A call whose server asks these questions and then waits for the test.
    async fn asked(&self, questions: &[String]) -> (Feed, Value) {
        let (feed, answer) = Answer::fed();
        self.server.once(rpc("tools/call"), answer);
        for question in questions {
            feed.send(message(question)).await;
        }
        let asked = self.caller.call("first", "tools/call", params()).await;
        (feed, asked)
    }

    /// The retry of `asked` with these answers.
    async fn retry(&self, id: &str, asked: &Value, answers: Value) -> Value {
        self.caller.call(id, "tools/call", retry_params(asked, answers)).await
    }

    async fn answers(&self, count: usize) -> Vec<Value> {
        self.server.await_requests(count, is_answer).await.iter().map(Seen::json).collect()
    }

    async fn cancelled(&self) -> Seen {
        self.server.await_request(rpc("notifications/cancelled")).await
    }
}

fn params() -> Value {
    tool("mcp_u1_echo", json!({"b": 1.0, "a": [1, {"y": 2, "x": 1}]}))
}

fn retry_params(asked: &Value, answers: Value) -> Value {
    let mut params = params();
    params["requestState"] = asked["result"]["requestState"].clone();
    params["inputResponses"] = answers;
    params
}

fn accept(what: &str) -> Value {
    json!({"action": "accept", "content": {"what": what}})
}

fn requests(asked: &Value) -> &serde_json::Map<String, Value> {
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    assert!(asked["result"]["requestState"].is_string(), "{asked}");
    asked["result"]["inputRequests"].as_object().unwrap_or_else(|| panic!("questions: {asked}"))
}

fn reason(refused: &Value) -> (i64, &str) {
    let error = &refused["error"];
    (
        error["code"].as_i64().unwrap_or_else(|| panic!("an error: {refused}")),
        error["data"]["mcpgate"]["reason"].as_str().unwrap(),
    )
}

const DONE: &str = r#"{"content":[{"type":"text","text":"done"}]}"#;

fn is_done(response: &Value, id: &str) {
    assert_eq!(response["id"], id, "{response}");
    assert_eq!(response["result"]["content"][0]["text"], "done", "{response}");
    assert_eq!(response["result"]["resultType"], "complete");
}

/// X34, R2, R3: what a legacy server asks comes as `input_required`; the answers go to it under its own ids, and the
/// same call goes on to its result, under the retry's id.
#[tokio::test]
async fn a_question_parks_the_call_and_the_retry_goes_on_with_it() {
    let scene = Scene::new().await;
    let asks = [
        question(
            7,
            "sampling/createMessage",
            json!({"messages": [], "maxTokens": 7, "zz": 1, "_meta": {"progressToken": 1}}),
        ),
        question(
            "e",
            "elicitation/create",
            json!({"mode": "url", "message": "?", "url": "https://x.test", "elicitationId": "i"}),
        ),
        json!({"jsonrpc": "2.0", "id": 0, "method": "roots/list"}).to_string(),
    ];
    let (feed, asked) = scene.asked(&asks).await;
    assert_eq!(asked["id"], "first");
    assert_eq!(scene.gateway.sample(PARKED), 1.0);
    let expected = json!({
        "sampling-1": {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 7, "zz": 1}},
        "elicitation-2": {"method": "elicitation/create", "params": {"mode": "url", "message": "?", "url": "https://x.test"}},
        "roots-3": {"method": "roots/list", "params": {}},
    });
    assert_eq!(Value::Object(requests(&asked).clone()), expected);
    assert!(asked["result"].get("ttlMs").is_none(), "R8");
    let sample =
        json!({"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m", "x": 1.0});
    let answers =
        json!({"sampling-1": sample, "elicitation-2": {"action": "decline"}, "roots-3": {"roots": []}});
    let (answered, got) = tokio::join!(scene.retry("second", &asked, answers), async {
        let got = scene.answers(3).await;
        feed.send(result(DONE)).await;
        got
    });
    is_done(&answered, "second");
    assert_eq!(scene.gateway.sample(PARKED), 0.0);
    let of = |id: Value| got.iter().find(|a| a["id"] == id).map(|a| a["result"].clone());
    assert_eq!(of(json!(7)), Some(sample));
    assert_eq!(of(json!("e")), Some(json!({"action": "decline"})));
    assert_eq!(of(json!(0)), Some(json!({"roots": []})));
    let calls = scene.server.requests().into_iter().filter(|seen| seen.is("tools/call")).count();
    assert_eq!(calls, 1, "one call, once");
}

/// X34: the order of members and the spelling of numbers may differ in a retry, whose `_meta` is its own.
#[tokio::test]
async fn a_retry_may_be_written_another_way() {
    let scene = Scene::new().await;
    let (feed, asked) = scene.asked(&[elicitation(1, "?")]).await;
    let state = asked["result"]["requestState"].as_str().unwrap();
    let meta = scene.caller.meta();
    let text = format!(
        r#"{{"params":{{"inputResponses":{{"elicitation-1":{{"action":"cancel"}}}},"arguments":{{"a":[1.0,{{"x":1e0,"y":2}}],"b":1}},"requestState":"{state}","name":"mcp_u1_echo","_meta":{meta}}},"method":"tools/call","id":5,"jsonrpc":"2.0"}}"#
    );
    let request: Value = serde_json::from_str(&text).unwrap();
    let client = scene.caller.mirrored(&request);
    let (answer, ()) = tokio::join!(client.send(http::Method::POST, text), async {
        scene.answers(1).await;
        feed.send(result(DONE)).await;
    });
    assert_eq!(answer.response().await["id"], 5);
}

/// X34: a call may take several rounds, each with a state of its own and keys that were not there before; a stream
/// or not.
#[tokio::test]
async fn a_call_may_take_several_rounds() {
    let scene = Scene::new().await;
    let (feed, mut asked) = scene.asked(&[elicitation(1, "0")]).await;
    let mut states = vec![asked["result"]["requestState"].clone()];
    for round in 1..4 {
        let key = requests(&asked).keys().next().unwrap().clone();
        assert_eq!(key, format!("elicitation-{round}"));
        feed.send(message(&elicitation(1, &round.to_string()))).await;
        asked = scene.retry("next", &asked, json!({key: accept("x")})).await;
        assert!(!states.contains(&asked["result"]["requestState"]), "a fresh state");
        states.push(asked["result"]["requestState"].clone());
        assert_eq!(scene.answers(round).await[round - 1]["result"], accept("x"));
    }
    let last = json!({"elicitation-4": accept("x")});
    let (done, ()) = tokio::join!(scene.retry("last", &asked, last), async {
        scene.answers(4).await;
        feed.send(result(DONE)).await;
    });
    is_done(&done, "last");
}

/// R6: what a retry leaves open is asked again, with a fresh state; keys that were never asked are no matter.
#[tokio::test]
async fn what_is_left_open_is_asked_again() {
    let scene = Scene::new().await;
    let (feed, asked) = scene.asked(&[elicitation(1, "a"), elicitation(2, "b")]).await;
    assert_eq!(requests(&asked).len(), 2);
    let mut without = params();
    without["requestState"] = asked["result"]["requestState"].clone();
    let again = scene.caller.call("2", "tools/call", without).await;
    assert_eq!(requests(&again), requests(&asked));
    assert_ne!(again["result"]["requestState"], asked["result"]["requestState"]);
    let some = json!({"elicitation-1": accept("a"), "elicitation-9": 7, "never": null});
    let rest = scene.retry("3", &again, some).await;
    assert_eq!(requests(&rest).keys().collect::<Vec<_>>(), ["elicitation-2"]);
    assert_eq!(scene.answers(1).await[0]["id"], 1);
    let (done, ()) = tokio::join!(scene.retry("4", &rest, json!({"elicitation-2": accept("b")})), async {
        scene.answers(2).await;
        feed.send(result(DONE)).await;
    });
    is_done(&done, "4");
}

/// R6: an answer that has not the form of its question is refused, and the question stays open.
#[tokio::test]
async fn a_malformed_answer_leaves_its_question_open() {
    let scene = Scene::new().await;
    let (feed, asked) = scene.asked(&[elicitation(1, "?")]).await;
    for bad in [
        json!({"elicitation-1": "yes"}),
        json!({"elicitation-1": {"action": "maybe"}}),
        json!([]),
        json!("x"),
    ] {
        let refused = scene.retry("bad", &asked, bad).await;
        assert_eq!(reason(&refused), (-32602, "invalid_answer"));
    }
    assert_eq!(scene.server.count(is_answer), 0);
    let (done, ()) =
        tokio::join!(scene.retry("good", &asked, json!({"elicitation-1": accept("x")})), async {
            scene.answers(1).await;
            feed.send(result(DONE)).await;
        });
    is_done(&done, "good");
}

/// R5: a state that was changed, is another caller's or endpoint's, or was given out for another request is refused,
/// and harms the call in nothing.
#[tokio::test]
async fn a_state_that_does_not_fit_is_refused() {
    let scene = Scene::new().await;
    let (feed, asked) = scene.asked(&[elicitation(1, "?")]).await;
    let answers = json!({"elicitation-1": accept("x")});
    let state = asked["result"]["requestState"].as_str().unwrap().to_owned();
    let mut tampered = retry_params(&asked, answers.clone());
    for at in [0, 8, state.len() / 2, state.len() - 2] {
        let mut changed = state.clone().into_bytes();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        tampered["requestState"] = String::from_utf8(changed).unwrap().into();
        let refused = scene.caller.call("t", "tools/call", tampered.clone()).await;
        assert_eq!(reason(&refused), (-32602, "invalid_state"), "{at}");
    }
    for odd in [json!(""), json!(7), json!({"a": 1}), json!("x".repeat(100_000))] {
        tampered["requestState"] = odd;
        let refused = scene.caller.call("t", "tools/call", tampered.clone()).await;
        assert_eq!(reason(&refused), (-32602, "invalid_state"));
    }
    let elsewhere = modern(&scene.gateway, "/servers/u1/mcp").with(everything());
    let mut bare = retry_params(&asked, answers.clone());
    bare["name"] = "echo".into();
    assert_eq!(reason(&elsewhere.call("e", "tools/call", bare).await), (-32602, "invalid_state"));
    let mut other = retry_params(&asked, answers.clone());
    other["arguments"]["b"] = json!(2);
    assert_eq!(reason(&scene.caller.call("o", "tools/call", other).await), (-32602, "other_request"));
    let prompt = json!({"name": "mcp_u1_echo", "requestState": state, "inputResponses": answers.clone()});
    assert_eq!(reason(&scene.caller.call("p", "prompts/get", prompt).await), (-32602, "other_request"));
    assert_eq!(scene.server.count(is_answer), 0);
    assert_eq!(scene.server.count(rpc("tools/call")), 1, "none of it reached the server");
    let (done, ()) = tokio::join!(scene.retry("good", &asked, answers), async {
        scene.answers(1).await;
        feed.send(result(DONE)).await;
    });
    is_done(&done, "good");
}

/// X34: a state counts once. A replay, of an older round or of one that is answered, says that the outcome is unknown.
#[tokio::test]
async fn a_state_counts_once() {
    let scene = Scene::new().await;
    let (feed, first) = scene.asked(&[elicitation(1, "a")]).await;
    let answers = json!({"elicitation-1": accept("a")});
    feed.send(message(&elicitation(2, "b"))).await;
    let second = scene.retry("2", &first, answers.clone()).await;
    assert_eq!(requests(&second).len(), 1);
    assert_eq!(reason(&scene.retry("old", &first, answers).await), (-32603, "outcome_unknown"));
    let answers = json!({"elicitation-2": accept("b")});
    let (one, two, ()) = tokio::join!(
        scene.retry("x", &second, answers.clone()),
        scene.retry("y", &second, answers.clone()),
        async {
            scene.answers(2).await;
            feed.send(result(DONE)).await;
        }
    );
    let (won, lost) = if one["result"].is_object() { (&one, &two) } else { (&two, &one) };
    is_done(won, won["id"].as_str().unwrap());
    assert_eq!(reason(lost), (-32603, "outcome_unknown"));
    assert_eq!(reason(&scene.retry("late", &second, answers).await), (-32603, "outcome_unknown"));
    assert_eq!(scene.server.count(is_answer), 2);
    assert_eq!(scene.server.count(rpc("notifications/cancelled")), 0);
}

/// A state that outlived its gateway says so.
#[tokio::test]
async fn a_state_of_a_process_that_is_gone_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let server = HttpServer::start().await;
    let start = async || {
        let kept = dir.path().to_owned();
        let setup = TestGateway::new().http("u1", server.url()).adjust(auto);
        setup
            .with(|s| {
                s.state_dir = Some(kept);
                s.shutdown.drain = Duration::ZERO;
            })
            .start()
            .await
    };
    let gateway = start().await;
    let (feed, answer) = Answer::fed();
    server.once(rpc("tools/call"), answer);
    feed.send(message(&elicitation(1, "?"))).await;
    let asked = modern(&gateway, "/mcp").with(everything()).call(1, "tools/call", params()).await;
    requests(&asked);
    gateway.stopped().await;
    let gateway = start().await;
    let caller = modern(&gateway, "/mcp").with(everything());
    let lost = caller.call(2, "tools/call", retry_params(&asked, json!({}))).await;
    assert_eq!(reason(&lost), (-32603, "call_lost"));
}

/// A state that is not ours is refused, and never reaches a legacy server.
#[tokio::test]
async fn a_legacy_server_sees_no_state() {
    let scene = Scene::new().await;
    for brought in
        [json!({"requestState": "made up"}), json!({"requestState": "made up", "inputResponses": {}})]
    {
        let mut params = params();
        params.as_object_mut().unwrap().extend(brought.as_object().unwrap().clone());
        let refused = scene.caller.call(1, "tools/call", params).await;
        assert_eq!(reason(&refused), (-32602, "invalid_state"));
    }
    assert_eq!(scene.server.count(rpc("tools/call")), 0);
}

/// R6: answers to questions that were never asked are nothing; a legacy server is not told of them.
#[tokio::test]
async fn answers_that_nobody_asked_for_are_ignored() {
    let scene = Scene::new().await;
    let mut params = params();
    params["inputResponses"] = json!({"a": {"action": "accept"}, "b": 12345});
    let answer = scene.caller.call(1, "tools/call", params).await;
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    let seen = scene.server.await_request(rpc("tools/call")).await.json();
    assert!(seen["params"].get("inputResponses").is_none(), "{seen}");
}

/// X37, R10: a caller that does not come back costs the server's call: an error to its question and a cancellation.
#[tokio::test]
async fn a_caller_that_does_not_come_back_is_not_waited_for() {
    let scene = Scene::with(|_| {}, |s| s.timeouts.input = Duration::from_millis(150)).await;
    let (_feed, asked) = scene.asked(&[elicitation("q", "?")]).await;
    requests(&asked);
    let refused = scene.answers(1).await;
    assert_eq!((&refused[0]["id"], &refused[0]["error"]["code"]), (&json!("q"), &json!(-32603)));
    let cancelled = scene.cancelled().await.json();
    let call = scene.server.await_request(rpc("tools/call")).await.json();
    assert_eq!(cancelled["params"]["requestId"], call["id"]);
    let late = scene.retry("late", &asked, json!({"elicitation-1": accept("x")})).await;
    assert_eq!(reason(&late), (-32602, "expired_state"));
    assert_eq!(scene.gateway.sample(PARKED), 0.0);
}

/// X37: `timeouts.total` ends a parked call too; its caller hears so when it comes back.
#[tokio::test]
async fn a_parked_call_ends_with_its_total_time() {
    let scene = Scene::with(|_| {}, |s| s.timeouts.total = Duration::from_millis(200)).await;
    let (_feed, asked) = scene.asked(&[elicitation("q", "?")]).await;
    requests(&asked);
    scene.cancelled().await;
    assert_eq!(scene.answers(1).await[0]["error"]["code"], -32603);
    let late = scene.retry("late", &asked, json!({"elicitation-1": accept("x")})).await;
    assert_eq!(late["id"], "late");
    assert_eq!(reason(&late), (-32603, "timed_out"));
}

/// X34: a server that goes on without an answer has its result wait for the retry.
#[tokio::test]
async fn a_result_waits_for_the_retry() {
    let scene = Scene::new().await;
    let (feed, asked) = scene.asked(&[elicitation(1, "?")]).await;
    feed.send(result(DONE)).await;
    let refused = scene.answers(1).await;
    assert!(refused[0]["error"].is_object(), "nobody will answer: {refused:?}");
    is_done(&scene.retry("r", &asked, json!({"elicitation-1": accept("x")})).await, "r");
}

/// T54: closing the stream of a retry cancels the call; closing that of the first request, once it is answered, does
/// not.
#[tokio::test]
async fn closing_the_retrys_stream_cancels_the_call() {
    let scene = Scene::new().await;
    let (feed, answer) = Answer::fed();
    scene.server.once(rpc("tools/call"), answer);
    let request = scene.caller.request("first", "tools/call", params());
    let events = scene.caller.mirrored(&request).header("accept", "text/event-stream");
    feed.send(message(&elicitation(1, "?"))).await;
    let mut stream = events.post(&request).await.stream();
    let asked = stream.message().await.unwrap();
    requests(&asked);
    assert!(stream.message().await.is_none(), "the stream ends with it");
    drop(stream);

    let mut params = retry_params(&asked, json!({"elicitation-1": accept("x")}));
    params["_meta"] = json!({"io.modelcontextprotocol/logLevel": "debug"});
    let retry = scene.caller.request("second", "tools/call", params);
    let (answer, ()) = tokio::join!(scene.caller.post(&retry), async {
        scene.answers(1).await;
        let log = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}});
        feed.send(message(&log.to_string())).await;
    });
    let mut stream = answer.stream();
    assert_eq!(stream.message().await.unwrap()["method"], "notifications/message");
    assert_eq!(scene.server.count(rpc("notifications/cancelled")), 0, "not by the first one's end");
    drop(stream);
    scene.cancelled().await;
}

/// A caller that accepts only JSON can be asked like any other.
#[tokio::test]
async fn a_caller_that_takes_only_json_can_be_asked() {
    let mut scene = Scene::new().await;
    scene.caller.client = scene.caller.client.clone().header("accept", "application/json");
    let (feed, asked) = scene.asked(&[elicitation(1, "?")]).await;
    requests(&asked);
    let (done, ()) = tokio::join!(scene.retry("r", &asked, json!({"elicitation-1": accept("x")})), async {
        scene.answers(1).await;
        feed.send(result(DONE)).await;
    });
    is_done(&done, "r");
}

/// R4, case-H11: a caller is not asked what it did not declare, not with its retry either; the server hears so at once
/// and the call goes on.
#[tokio::test]
async fn a_caller_is_asked_only_what_it_declared() {
    let scene = Scene::new().await;
    let caller = modern(&scene.gateway, "/mcp").with(json!({"elicitation": {}}));
    let (feed, answer) = Answer::fed();
    scene.server.once(rpc("tools/call"), answer);
    let asks = [
        question(1, "roots/list", json!({})),
        question(2, "sampling/createMessage", json!({"messages": []})),
        question(3, "elicitation/create", json!({"mode": "url", "url": "https://x.test"})),
        question(4, "ask/nonsense", json!({})),
        elicitation(5, "?"),
    ];
    for ask in &asks {
        feed.send(message(ask)).await;
    }
    let asked = caller.call("1", "tools/call", params()).await;
    assert_eq!(requests(&asked).len(), 1);
    for refused in scene.answers(4).await {
        assert_eq!(refused["error"]["code"], -32601, "{refused}");
    }
    let less = modern(&scene.gateway, "/mcp").with(json!({"roots": {}}));
    let (done, ()) = tokio::join!(less.call("r", "tools/call", retry_params(&asked, json!({}))), async {
        let last = scene.answers(5).await;
        assert_eq!((&last[4]["id"], &last[4]["error"]["code"]), (&json!(5), &json!(-32601)));
        feed.send(result(DONE)).await;
    });
    is_done(&done, "r");
}

/// X36: a question outside any call is refused at once, and so is one during a method that R1 does not name.
#[tokio::test]
async fn what_belongs_to_no_call_cannot_be_asked() {
    let server = HttpServer::start().await;
    let (standalone, stream) = Answer::fed();
    server.on(crate::http_server::http(http::Method::GET), stream);
    let gateway = TestGateway::new().http("u1", server.url()).adjust(auto).start().await;
    let caller = modern(&gateway, "/servers/u1/mcp").with(everything());
    caller.call(0, "tools/call", tool("echo", json!({}))).await;
    standalone.send(message(&elicitation("outside", "?"))).await;
    let got = server.await_request(is_answer).await.json();
    assert_eq!((&got["id"], &got["error"]["code"]), (&json!("outside"), &json!(-32601)));

    let (feed, answer) = Answer::fed();
    server.once(rpc("completion/complete"), answer);
    feed.send(message(&elicitation("inside", "?"))).await;
    let params = json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}});
    let (answer, ()) = tokio::join!(caller.call(1, "completion/complete", params), async {
        let got = server.await_requests(2, is_answer).await[1].json();
        assert_eq!((&got["id"], &got["error"]["code"]), (&json!("inside"), &json!(-32601)));
        feed.send(result(r#"{"completion":{"values":[]}}"#)).await;
    });
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
}

/// Prompts and resources can be asked about like tools.
#[tokio::test]
async fn prompts_and_resources_can_be_asked_about() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new().http("u1", server.url()).adjust(auto).start().await;
    let caller = modern(&gateway, "/servers/u1/mcp").with(everything());
    for (method, mut params) in
        [("prompts/get", json!({"name": "p"})), ("resources/read", json!({"uri": "x:1"}))]
    {
        let (feed, answer) = Answer::fed();
        server.once(rpc(method), answer);
        feed.send(message(&question(method, "roots/list", json!({})))).await;
        let asked = caller.call(1, method, params.clone()).await;
        assert_eq!(requests(&asked).len(), 1);
        params["requestState"] = asked["result"]["requestState"].clone();
        params["inputResponses"] = json!({"roots-1": {"roots": []}});
        let (done, ()) = tokio::join!(caller.call(2, method, params), async {
            server.await_request(|seen| is_answer(seen) && seen.text().contains(method)).await;
            feed.send(result(r#"{"contents":[]}"#)).await;
        });
        assert_eq!(done["result"]["resultType"], "complete", "{done}");
    }
}

/// A server takes a question back: its caller need not answer, and an answer none the less is no matter.
#[tokio::test]
async fn a_question_may_be_taken_back() {
    let scene = Scene::new().await;
    let (feed, asked) = scene.asked(&[elicitation(1, "?")]).await;
    let back = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    feed.send(message(&back.to_string())).await;
    feed.send(message(&elicitation(2, "another"))).await;
    let again = scene.retry("2", &asked, json!({})).await;
    assert_eq!(requests(&again).keys().collect::<Vec<_>>(), ["elicitation-2"]);
    feed.send(result(DONE)).await;
    is_done(&scene.retry("3", &again, json!({"elicitation-1": accept("x")})).await, "3");
    assert!(scene.answers(1).await[0]["error"].is_object());
}

/// Nothing grows without a bound: over `limits.parkedPerTenant`, or half of what a session may run, the server gets an
/// error to its question, and the call goes on. Places come free.
#[tokio::test]
async fn parked_calls_are_bounded() {
    let scene = Scene::with(|s| s.limits.parked_per_tenant = 1, |_| {}).await;
    let (feed, asked) = scene.asked(&[elicitation(1, "a")]).await;
    requests(&asked);
    let (over, answer) = Answer::fed();
    scene.server.once(rpc("tools/call"), answer);
    over.send(message(&elicitation(2, "b"))).await;
    let (done, ()) = tokio::join!(scene.caller.call("over", "tools/call", params()), async {
        let got = scene.answers(1).await;
        assert_eq!((&got[0]["id"], &got[0]["error"]["code"]), (&json!(2), &json!(-32603)));
        over.send(result(DONE)).await;
    });
    is_done(&done, "over");
    let (done, ()) = tokio::join!(scene.retry("r", &asked, json!({"elicitation-1": accept("x")})), async {
        scene.answers(2).await;
        feed.send(result(DONE)).await;
    });
    is_done(&done, "r");
    let (_feed, asked) = scene.asked(&[elicitation(3, "c")]).await;
    requests(&asked);
}

/// A call whose result waits for its caller takes its place for as long.
#[tokio::test]
async fn a_result_that_waits_takes_a_place() {
    let scene = Scene::with(|s| s.limits.parked_per_tenant = 1, |_| {}).await;
    let (feed, asked) = scene.asked(&[elicitation(1, "a")]).await;
    feed.send(result(DONE)).await;
    assert!(scene.answers(1).await[0]["error"].is_object(), "the call is over");
    let (over, answer) = Answer::fed();
    scene.server.once(rpc("tools/call"), answer);
    over.send(message(&elicitation(2, "b"))).await;
    let (done, ()) = tokio::join!(scene.caller.call("over", "tools/call", params()), async {
        let got = scene.answers(2).await;
        assert_eq!((&got[1]["id"], &got[1]["error"]["code"]), (&json!(2), &json!(-32603)));
        over.send(result(DONE)).await;
    });
    is_done(&done, "over");
    is_done(&scene.retry("r", &asked, json!({})).await, "r");
    let (_feed, asked) = scene.asked(&[elicitation(3, "c")]).await;
    requests(&asked);
}

/// Nothing goes on for ever: after 64 rounds the server gets an error to its question, and the call goes on.
#[tokio::test]
async fn a_caller_is_not_asked_for_ever() {
    let scene = Scene::new().await;
    let (feed, mut asked) = scene.asked(&[elicitation(1, "?")]).await;
    for _ in 1..64 {
        asked = scene.retry("again", &asked, json!({})).await;
        requests(&asked);
    }
    let (done, ()) = tokio::join!(scene.retry("last", &asked, json!({})), async {
        assert!(scene.answers(1).await[0]["error"].is_object());
        feed.send(message(&elicitation(2, "!"))).await;
        assert!(scene.answers(2).await[1]["error"].is_object());
        feed.send(result(DONE)).await;
    });
    is_done(&done, "last");
}

/// A server that asks and asks at once gets errors over 64 open questions.
#[tokio::test]
async fn a_server_that_asks_too_much_gets_errors() {
    let scene = Scene::new().await;
    let (feed, answer) = Answer::fed();
    scene.server.once(rpc("tools/call"), answer);
    let asking = async {
        for n in 0..80 {
            feed.send(message(&elicitation(n, "?"))).await;
        }
    };
    let (asked, ()) = tokio::join!(scene.caller.call(1, "tools/call", params()), asking);
    requests(&asked);
    let got = scene.answers(16).await;
    assert!(got.iter().all(|a| a["error"]["code"] == -32603), "{got:?}");
}

/// X40, P3, case-H07: progress goes to the stream of the request that waits, under its own token; the last one that
/// came between two requests is told to the second.
#[tokio::test]
async fn progress_goes_to_the_request_that_waits() {
    let scene = Scene::new().await;
    let (feed, answer) = Answer::fed();
    scene.server.once(rpc("tools/call"), answer);
    let mut with_token = params();
    with_token["_meta"] = json!({"progressToken": "first"});
    let request = scene.caller.request(1, "tools/call", with_token);
    let step = |token: &Value, step: f64| {
        let params = json!({"progressToken": token, "progress": step});
        message(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}).to_string())
    };
    let (answer, token) = tokio::join!(scene.caller.post(&request), async {
        let call = scene.server.await_request(rpc("tools/call")).await.json();
        let token = call["params"]["_meta"]["progressToken"].clone();
        assert!(token.is_u64(), "{call}");
        for n in [1.0, 1.0, 0.5, 2.0] {
            feed.send(step(&token, n)).await;
        }
        feed.send(message(&elicitation(1, "?"))).await;
        token
    });
    let heard = answer.stream().rest().await;
    let told = |heard: &[Value]| -> Vec<(Value, f64)> {
        let progress = heard.iter().filter(|m| m["method"] == "notifications/progress");
        progress
            .map(|m| (m["params"]["progressToken"].clone(), m["params"]["progress"].as_f64().unwrap()))
            .collect()
    };
    assert_eq!(told(&heard), [(json!("first"), 1.0), (json!("first"), 2.0)]);
    let asked = heard.last().unwrap();
    requests(asked);
    feed.send(step(&token, 3.0)).await;
    feed.send(step(&token, 4.0)).await;
    // Behind them on the same stream, so they were heard.
    feed.send(message(&question("sync", "ask/nonsense", json!({})))).await;
    scene.answers(1).await;
    let mut retry = retry_params(asked, json!({"elicitation-1": accept("x")}));
    retry["_meta"] = json!({"progressToken": 7});
    let retry = scene.caller.request(2, "tools/call", retry);
    let (answer, ()) = tokio::join!(scene.caller.post(&retry), async {
        scene.answers(2).await;
        feed.send(step(&token, 5.0)).await;
        feed.send(result(DONE)).await;
    });
    let heard = answer.stream().rest().await;
    assert_eq!(told(&heard), [(json!(7), 4.0), (json!(7), 5.0)]);
    assert_eq!(heard.last().unwrap()["id"], 2);
}

/// R4: what a caller can be asked is what its latest request declares, also of a call that is made again in its kept
/// session, or that has gone on since.
#[tokio::test]
async fn a_retry_is_asked_only_what_it_declares_itself() {
    let server = HttpServer::start().await;
    let setup = TestGateway::new().http("u1", server.url()).adjust(auto).off_loopback();
    let setup = setup.with(|s| s.auth.anonymous = Anonymous::AcceptedFromAnywhere);
    let scene = Scene::of(server, setup).await;
    let less = modern(&scene.gateway, "/mcp").with(json!({"roots": {}}));
    scene.server.once(rpc("tools/call"), urls_wanted());
    let visit = scene.caller.call("first", "tools/call", params()).await;
    requests(&visit);
    let (feed, answer) = Answer::fed();
    scene.server.once(rpc("tools/call"), answer);
    feed.send(message(&elicitation(1, "?"))).await;
    let visited = retry_params(&visit, json!({"elicitation-1": {"action": "accept"}}));
    let (done, ()) = tokio::join!(less.call("r", "tools/call", visited), async {
        let got = scene.answers(1).await;
        assert_eq!((&got[0]["id"], &got[0]["error"]["code"]), (&json!(1), &json!(-32601)));
        feed.send(result(DONE)).await;
    });
    is_done(&done, "r");

    let (feed, asked) = scene.asked(&[question(2, "roots/list", json!({}))]).await;
    let retry = retry_params(&asked, json!({"roots-1": {"roots": []}}));
    let (refused, ()) = tokio::join!(less.call("s", "tools/call", retry), async {
        scene.answers(2).await;
        let urls = json!({"elicitations": [{"mode": "url", "url": "https://x.test", "message": "?"}]});
        feed.send(members(&format!(r#""error":{{"code":-32042,"message":"visit","data":{urls}}}"#))).await;
    });
    assert_eq!(reason(&refused), (-32021, "missing_capability"));
}

/// The error that wants a URL visited first.
fn urls_wanted() -> Answer {
    let urls = json!({"elicitations": [{"mode": "url", "elicitationId": "i", "url": "https://x.test", "message": "?"}]});
    let error = json!({"code": -32042, "message": "visit", "data": urls});
    Answer::members(&format!(r#""error":{error}"#))
}

/// A drain lets a parked call go on: its caller comes back and has its result.
#[tokio::test]
async fn a_drain_lets_parked_calls_go_on() {
    let scene = Scene::with(|s| s.shutdown.delay = Duration::from_secs(10), |_| {}).await;
    let (feed, asked) = scene.asked(&[elicitation(1, "?")]).await;
    scene.gateway.begin_to_stop().await;
    let (done, ()) = tokio::join!(scene.retry("r", &asked, json!({"elicitation-1": accept("x")})), async {
        scene.answers(1).await;
        feed.send(result(DONE)).await;
    });
    is_done(&done, "r");
}

/// X31, I03: of a caller that may be anybody a session lasts for one call and its retries, parked or made again.
#[tokio::test]
async fn the_session_of_anybody_lasts_for_a_call_and_its_retries() {
    let server = HttpServer::start().await;
    let setup = TestGateway::new().http("u1", server.url()).adjust(auto).off_loopback();
    let setup = setup.with(|s| s.auth.anonymous = Anonymous::AcceptedFromAnywhere);
    let scene = Scene::of(server, setup).await;
    let (feed, asked) = scene.asked(&[elicitation(1, "?")]).await;
    let (done, ()) = tokio::join!(scene.retry("r", &asked, json!({"elicitation-1": accept("x")})), async {
        scene.answers(1).await;
        feed.send(result(DONE)).await;
    });
    is_done(&done, "r");
    let parked =
        scene.server.await_request(rpc("tools/call")).await.header("mcp-session-id").map(str::to_owned);

    scene.server.once(rpc("tools/call"), urls_wanted());
    let asked = scene.caller.call("first", "tools/call", params()).await;
    requests(&asked);
    let done = scene.retry("again", &asked, json!({"elicitation-1": {"action": "accept"}})).await;
    assert_eq!(done["result"]["content"][0]["text"], "ok", "{done}");
    let calls = scene.server.await_requests(3, rpc("tools/call")).await;
    let sessions: Vec<_> =
        calls.iter().map(|call| call.header("mcp-session-id").map(str::to_owned)).collect();
    assert_eq!(sessions[1], sessions[2], "made again in the same session");
    assert_ne!(sessions[1], parked);
    let replayed = scene.retry("replayed", &asked, json!({"elicitation-1": {"action": "accept"}})).await;
    assert_eq!(reason(&replayed), (-32603, "outcome_unknown"), "and only once");
    assert_eq!(scene.server.count(rpc("tools/call")), 3);
}
