//! What servers ask of callers: sampling, elicitation, roots.

use std::time::{Duration, Instant};

use futures_util::future::join;
use serde_json::{Value, json};

use crate::client::{Client, Stream, request, tool};
use crate::gateway::TestGateway;
use crate::http_server::{Answer, Feed, Gate, HttpServer, Seen, hold_until, http, message, result, rpc};
use crate::kit::{REVISION, call, session_with, until, value};
use mcpgate::settings::servers::Isolation;

fn all_capabilities() -> Value {
    json!({"roots": {}, "sampling": {"tools": {}}, "elicitation": {"form": {}, "url": {}}})
}

/// The questions there are, with params that no question of ours would have.
fn questions() -> Vec<(&'static str, Value)> {
    vec![
        ("sampling/createMessage", json!({"messages": [], "maxTokens": 7, "zz": 1, "a": [1.5]})),
        ("sampling/createMessage", json!({"messages": [], "maxTokens": 7, "tools": []})),
        ("elicitation/create", json!({"message": "?", "requestedSchema": {"type": "object"}})),
        ("elicitation/create", json!({"mode": "form", "message": "?", "requestedSchema": {}})),
        (
            "elicitation/create",
            json!({"mode": "url", "message": "?", "url": "https://x.test", "elicitationId": "e"}),
        ),
        ("roots/list", json!({})),
    ]
}

/// Answers a question on the caller's side.
async fn answer(client: &Client, question: &Value, result: Value) {
    let body = json!({"jsonrpc": "2.0", "id": question["id"], "result": result});
    assert_eq!(client.post(&body).await.status, 202);
}

/// The answer that a server got to its question.
fn is_answer(seen: &Seen) -> bool {
    seen.method == http::Method::POST && seen.rpc.is_none() && seen.id.is_some()
}

fn question(id: &Value, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

/// A call that runs, on whose stream the test says what its server says.
async fn running(server: &HttpServer, client: &Client, name: &str) -> (Feed, Stream) {
    let (feed, answer) = Answer::fed();
    server.once(rpc("tools/call"), answer);
    let answer = client.post(&request("call", "tools/call", tool(name, json!({})))).await;
    (feed, answer.stream())
}

async fn next(stream: &mut Stream) -> Value {
    stream.message().await.expect("a message")
}

/// case-H11: every question goes to the stream of its call, as its server wrote it but for the id, and its answer
/// goes back under the server's own id, whatever that was.
#[tokio::test]
async fn a_question_goes_to_the_stream_of_its_call_and_its_answer_back() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new().http("u1", server.url()).stdio("u2", &[]).start().await;
    let client = session_with(&gateway, all_capabilities()).await;
    let (feed, mut stream) = running(&server, &client, "mcp_u1_echo").await;
    for (n, id) in [json!(1), json!("text"), json!(0), json!("é")].into_iter().enumerate() {
        for (m, (method, params)) in questions().into_iter().enumerate() {
            feed.send(message(&question(&id, method, &params))).await;
            let asked = next(&mut stream).await;
            assert_eq!((&asked["method"], &asked["params"]), (&json!(method), &params));
            assert!(asked["id"].is_u64(), "an id of the gateway: {asked}");
            let reply = json!({"n": n, "m": m, "_meta": {"k": 1.0}});
            answer(&client, &asked, reply.clone()).await;
            let replies = server.await_requests(n * questions().len() + m + 1, is_answer).await;
            let got = replies.last().expect("an answer").json();
            assert_eq!(got, json!({"jsonrpc": "2.0", "id": id, "result": reply}));
        }
    }
    feed.send(result(r#"{"content":[]}"#)).await;
    assert!(next(&mut stream).await["result"].is_object());

    for (method, params) in questions() {
        let asking = tool("mcp_u2_ask", json!({"method": method, "params": params}));
        let mut stream = client.post(&request(1, "tools/call", asking)).await.stream();
        let asked = next(&mut stream).await;
        assert_eq!((&asked["method"], &asked["params"]), (&json!(method), &params));
        let body =
            json!({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -1, "message": "no", "data": [1]}});
        assert_eq!(client.post(&body).await.status, 202);
        let result = next(&mut stream).await;
        assert_eq!(value(&result)["error"], body["error"], "{result}");
    }
}

/// case-H11: two sessions whose servers ask under one id each answer their own; what one answers to the other's
/// question reaches nobody.
#[tokio::test]
async fn questions_of_two_sessions_under_one_id_stay_apart() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new().http("u1", server.url()).stdio("u2", &[]).start().await;
    let a = session_with(&gateway, all_capabilities()).await;
    let b = session_with(&gateway, all_capabilities()).await;
    let (feed_a, mut of_a) = running(&server, &a, "mcp_u1_echo").await;
    let (feed_b, mut of_b) = running(&server, &b, "mcp_u1_echo").await;
    let asked = |who: &str| question(&json!(1), "elicitation/create", &json!({"message": who}));
    feed_a.send(message(&asked("a"))).await;
    feed_b.send(message(&asked("b"))).await;
    let (for_a, for_b) = (next(&mut of_a).await, next(&mut of_b).await);
    assert_eq!((&for_a["params"]["message"], &for_b["params"]["message"]), (&json!("a"), &json!("b")));
    let reply = |who: &str| json!({"action": "accept", "content": {"who": who}});
    answer(&b, &json!({"id": 999_999}), reply("nobody")).await;
    answer(&b, &for_b, reply("b")).await;
    answer(&a, &for_a, reply("a")).await;
    answer(&a, &for_a, reply("a again")).await;
    let got = server.await_requests(2, is_answer).await;
    let sessions: Vec<_> = server
        .requests()
        .into_iter()
        .filter(|seen| seen.is("tools/call"))
        .map(|seen| seen.header("mcp-session-id").map(str::to_owned))
        .collect();
    for seen in got {
        let who = seen.json()["result"]["content"]["who"].clone();
        let own = if who == "a" { &sessions[0] } else { &sessions[1] };
        assert_eq!(seen.header("mcp-session-id"), own.as_deref(), "{who}");
        assert_eq!(seen.id.as_deref(), Some("1"));
    }
    drop((feed_a, feed_b));

    let asking = |who: &str| {
        let arguments = json!({"id": 1, "method": "elicitation/create", "params": {"message": who}});
        request(1, "tools/call", tool("mcp_u2_ask", arguments))
    };
    let mut of_a = a.post(&asking("a")).await.stream();
    let mut of_b = b.post(&asking("b")).await.stream();
    let (for_a, for_b) = (next(&mut of_a).await, next(&mut of_b).await);
    answer(&b, &for_b, reply("b")).await;
    answer(&a, &for_a, reply("a")).await;
    assert_eq!(value(&next(&mut of_a).await)["result"], reply("a"));
    assert_eq!(value(&next(&mut of_b).await)["result"], reply("b"));
    assert_eq!(server.count(is_answer), 2);
}

/// case-H11: two servers of one session that count alike do not mix their calls up.
#[tokio::test]
async fn questions_of_two_servers_of_one_session_stay_with_their_calls() {
    let (u1, u2) = (HttpServer::start().await, HttpServer::start().await);
    let gateway = TestGateway::new().http("u1", u1.url()).http("u2", u2.url()).start().await;
    let client = session_with(&gateway, all_capabilities()).await;
    let (feed_1, mut of_1) = running(&u1, &client, "mcp_u1_echo").await;
    let (feed_2, mut of_2) = running(&u2, &client, "mcp_u2_echo").await;
    for (feed, stream, who) in [(&feed_2, &mut of_2, "two"), (&feed_1, &mut of_1, "one")] {
        feed.send(message(&question(&json!(1), "elicitation/create", &json!({"message": who})))).await;
        let asked = next(stream).await;
        assert_eq!(asked["params"]["message"], who);
        answer(&client, &asked, json!({"action": "decline"})).await;
    }
    for server in [&u1, &u2] {
        assert_eq!(server.await_request(is_answer).await.json()["result"]["action"], "decline");
    }
}

/// case-H11: a caller that did not declare the capability is not asked; the server hears so at once, and the call
/// goes on.
#[tokio::test]
async fn a_caller_without_the_capability_is_not_asked() {
    for (declared, refused) in [
        (json!({}), vec![0, 1, 2, 3, 4, 5]),
        (json!({"elicitation": {}}), vec![0, 1, 4, 5]),
        (json!({"elicitation": {"url": {}}, "roots": {}}), vec![0, 1, 2, 3]),
        (json!({"sampling": {}}), vec![1, 2, 3, 4, 5]),
    ] {
        let gateway = TestGateway::new().stdio("u1", &[]).start().await;
        let client = session_with(&gateway, declared.clone()).await;
        assert!(call(&client, 0, "mcp_u1_echo", json!({})).await["result"].is_object());
        for (n, (method, params)) in questions().into_iter().enumerate() {
            if !refused.contains(&n) {
                continue;
            }
            let begun = Instant::now();
            let result = call(&client, n, "mcp_u1_ask", json!({"method": method, "params": params})).await;
            assert!(begun.elapsed() < Duration::from_millis(100), "{:?}", begun.elapsed());
            assert_eq!(value(&result)["error"]["code"], -32601, "{declared} {method} -> {result}");
        }
        let result = call(&client, 9, "mcp_u1_ask", json!({"method": "foo/bar", "params": {}})).await;
        assert_eq!(value(&result)["error"]["code"], -32601, "{result}");
    }
}

/// case-H11: a server's ping is answered by the gateway, whatever runs.
#[tokio::test]
async fn a_servers_ping_is_answered_by_the_gateway() {
    let server = HttpServer::start().await;
    let (feed, stream) = Answer::fed();
    server.on(http(http::Method::GET), stream);
    let gateway = TestGateway::new().http("u1", server.url()).stdio("u2", &[]).start().await;
    let client = session_with(&gateway, json!({})).await;
    let result = call(&client, 1, "mcp_u2_ask", json!({"method": "ping", "params": {}})).await;
    assert_eq!(value(&result)["result"], json!({}));
    client.call(1, "tools/list", json!({})).await;
    feed.send(message(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#)).await;
    let got = server.await_request(is_answer).await;
    assert_eq!(got.json(), json!({"jsonrpc": "2.0", "id": "p", "result": {}}));
}

/// case-H11: when the session ends while its caller is asked, the server gets an error, over both transports.
#[tokio::test]
async fn the_end_of_a_session_answers_open_questions_with_an_error() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = session_with(&gateway, all_capabilities()).await;
    let (feed, mut stream) = running(&server, &client, "mcp_u1_echo").await;
    feed.send(message(&question(&json!("q"), "elicitation/create", &json!({"message": "?"})))).await;
    let asked = next(&mut stream).await;
    assert_eq!(client.delete().await, 204);
    let got = server.await_request(is_answer).await;
    assert_eq!(got.id.as_deref(), Some("\"q\""));
    assert!(got.json()["error"]["code"].is_i64(), "{}", got.text());
    server.await_request(http(http::Method::DELETE)).await;
    let rest = stream.rest().await;
    let last = rest.last().expect("the call's end");
    assert_eq!((&last["id"], &last["error"]["code"]), (&json!("call"), &json!(-32603)), "{rest:?}");
    let late = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {}});
    assert_eq!(client.post(&late).await.status, 404);
}

/// case-H11: a caller that takes only JSON cannot be asked in mid-call; the server hears so at once. If it has a
/// GET open, it is asked there.
#[tokio::test]
async fn a_caller_that_takes_only_json_is_asked_on_its_get_or_not_at_all() {
    let gateway = TestGateway::new().stdio("u1", &[]).start().await;
    let client = session_with(&gateway, all_capabilities()).await;
    let json_only = client.clone().header("accept", "application/json");
    assert!(call(&json_only, 0, "mcp_u1_echo", json!({})).await["result"].is_object());
    let arguments = json!({"method": "roots/list", "params": {}});
    let begun = Instant::now();
    let result = call(&json_only, 1, "mcp_u1_ask", arguments.clone()).await;
    assert!(begun.elapsed() < Duration::from_millis(200), "{:?}", begun.elapsed());
    assert!(value(&result)["error"]["code"].is_i64(), "{result}");

    let mut get = client.open_get().await;
    let asking = call(&json_only, 2, "mcp_u1_ask", arguments);
    let answering = async {
        let asked = next(&mut get).await;
        assert_eq!(asked["method"], "roots/list");
        answer(&client, &asked, json!({"roots": []})).await;
    };
    let (result, ()) = join(asking, answering).await;
    assert_eq!(value(&result)["result"], json!({"roots": []}));
}

/// case-H11: a question outside any call goes to the GET; if there is none yet it waits for one, without polling.
#[tokio::test]
async fn a_question_outside_any_call_goes_to_the_get() {
    let server = HttpServer::start().await;
    let (feed, stream) = Answer::fed();
    server.on(http(http::Method::GET), stream);
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = session_with(&gateway, all_capabilities()).await;
    client.call(1, "tools/list", json!({})).await;
    feed.send(message(&question(&json!(1), "roots/list", &json!({})))).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let mut get = client.open_get().await;
    let asked = next(&mut get).await;
    assert_eq!(asked["method"], "roots/list");
    answer(&client, &asked, json!({"roots": [{"uri": "file:///a"}]})).await;
    let got = server.await_request(is_answer).await;
    assert_eq!(got.json()["result"]["roots"][0]["uri"], "file:///a");
    feed.send(message(&question(&json!(2), "roots/list", &json!({})))).await;
    let asked = next(&mut get).await;
    answer(&client, &asked, json!({"roots": []})).await;
    server.await_requests(2, is_answer).await;
}

/// case-H11: some libraries send what a call asks on the standalone stream; with no GET of the caller it goes to
/// the call.
#[tokio::test]
async fn a_question_on_the_servers_stream_finds_a_caller_without_a_get() {
    let server = HttpServer::start().await;
    let (feed, stream) = Answer::fed();
    server.on(http(http::Method::GET), stream);
    let gate = Gate::new();
    server.on(rpc("tools/call"), Answer::events([hold_until(&gate), result(r#"{"content":[]}"#)]));
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = session_with(&gateway, all_capabilities()).await;
    let asking = request(1, "tools/call", tool("mcp_u1_echo", json!({})));
    let asking = client.post(&asking);
    let asked = async {
        server.await_request(rpc("tools/call")).await;
        feed.send(message(&question(&json!(1), "elicitation/create", &json!({"message": "?"})))).await;
    };
    let (stream, ()) = join(asking, asked).await;
    let mut stream = stream.stream();
    let asked = next(&mut stream).await;
    answer(&client, &asked, json!({"action": "cancel"})).await;
    assert_eq!(server.await_request(is_answer).await.json()["result"]["action"], "cancel");
    gate.open();
    assert!(next(&mut stream).await["result"].is_object());
}

/// case-H11: an answer that comes when the call is over is taken and dropped.
#[tokio::test]
async fn an_answer_that_comes_too_late_is_dropped() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = session_with(&gateway, all_capabilities()).await;
    let (feed, mut stream) = running(&server, &client, "mcp_u1_echo").await;
    feed.send(message(&question(&json!("q"), "roots/list", &json!({})))).await;
    let asked = next(&mut stream).await;
    feed.send(result(r#"{"content":[]}"#)).await;
    let rest = stream.rest().await;
    assert!(rest.last().is_some_and(|m| m["result"].is_object()), "{rest:?}");
    // Before the result the caller is told that it need not answer any more.
    assert_eq!(
        (&rest[0]["method"], &rest[0]["params"]["requestId"]),
        (&json!("notifications/cancelled"), &asked["id"])
    );
    let refused = server.await_request(is_answer).await.json();
    assert!(refused["error"].is_object(), "{refused}");
    answer(&client, &asked, json!({"roots": []})).await;
    for stray in [json!(1), json!("x"), json!(-1), json!("4294967297")] {
        answer(&client, &json!({ "id": stray }), json!({})).await;
    }
    assert_eq!(server.count(is_answer), 1);
}

/// case-H11: a server that takes its question back is heard: the caller is told under the id it knows, and an
/// answer that comes all the same reaches nobody.
#[tokio::test]
async fn a_question_can_be_taken_back() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new().http("u1", server.url()).stdio("u2", &[]).start().await;
    let client = session_with(&gateway, all_capabilities()).await;
    let (feed, mut stream) = running(&server, &client, "mcp_u1_echo").await;
    feed.send(message(&question(&json!("q"), "roots/list", &json!({})))).await;
    let asked = next(&mut stream).await;
    feed.send(message(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}}"#))
        .await;
    let told = next(&mut stream).await;
    assert_eq!(told["method"], "notifications/cancelled");
    assert_eq!(told["params"]["requestId"], asked["id"]);
    answer(&client, &asked, json!({"roots": []})).await;
    feed.send(result(r#"{"content":[]}"#)).await;
    assert!(next(&mut stream).await["result"].is_object());
    assert_eq!(server.count(is_answer), 0, "a question that was taken back gets no answer");

    let arguments = json!({"method": "roots/list", "params": {}});
    let taken = client.post(&request(1, "tools/call", tool("mcp_u2_take_back", arguments))).await;
    let messages = taken.stream().rest().await;
    assert_eq!(messages[0]["method"], "roots/list", "{messages:?}");
    assert_eq!(messages[1]["params"]["requestId"], messages[0]["id"], "{messages:?}");
    assert!(messages[2]["result"].is_object(), "{messages:?}");
}

/// case-H11, case-H07: progress of the caller on a question reaches its server under the server's own token.
#[tokio::test]
async fn progress_on_a_question_reaches_its_server() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new().http("u1", server.url()).stdio("u2", &[]).start().await;
    let client = session_with(&gateway, all_capabilities()).await;
    let (feed, mut stream) = running(&server, &client, "mcp_u1_echo").await;
    let progress = |token: &Value, n: u64| {
        let params = json!({"progressToken": token, "progress": n, "x": 1.0});
        json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
    };
    for token in [json!("its token"), json!(1)] {
        let params = json!({"messages": [], "maxTokens": 1, "_meta": {"progressToken": token, "y": 2}});
        feed.send(message(&question(&json!(1), "sampling/createMessage", &params))).await;
        let asked = next(&mut stream).await;
        let given = &asked["params"]["_meta"]["progressToken"];
        assert_ne!(*given, token);
        assert_eq!(asked["params"]["_meta"]["y"], 2);
        assert_eq!(client.post(&progress(given, 1)).await.status, 202);
        let seen = server.await_request(|seen| seen.is("notifications/progress")).await;
        assert!(seen.text().contains("1.0"), "{}", seen.text());
        let last = server.requests().into_iter().filter(|seen| seen.is("notifications/progress"));
        let last = last.last().expect("progress").json();
        assert_eq!(last["params"], json!({"progressToken": token, "progress": 1, "x": 1.0}));
        answer(&client, &asked, json!({})).await;
        assert_eq!(client.post(&progress(given, 2)).await.status, 202);
    }
    // Without a token of the server none is made up, and the caller's own words reach nobody.
    feed.send(message(&question(
        &json!(1),
        "sampling/createMessage",
        &json!({"messages": [], "maxTokens": 1}),
    )))
    .await;
    let asked = next(&mut stream).await;
    assert!(asked["params"].get("_meta").is_none());
    assert_eq!(client.post(&progress(&asked["id"], 1)).await.status, 202);
    answer(&client, &asked, json!({})).await;
    server.await_requests(3, is_answer).await;
    assert_eq!(server.count(rpc("notifications/progress")), 2);

    let params = json!({"messages": [], "maxTokens": 1, "_meta": {"progressToken": "child's"}});
    let asking = tool("mcp_u2_ask", json!({"method": "sampling/createMessage", "params": params}));
    let mut stream = client.post(&request(1, "tools/call", asking)).await.stream();
    let asked = next(&mut stream).await;
    client.post(&progress(&asked["params"]["_meta"]["progressToken"], 5)).await;
    answer(&client, &asked, json!({})).await;
    next(&mut stream).await;
    let heard = call(&client, 2, "mcp_u2_heard", json!({})).await;
    let heard = value(&heard).as_array().expect("a list").clone();
    assert!(heard.iter().any(|m| m["params"]["progressToken"] == "child's"), "{heard:?}");
}

/// case-H11: a caller that never answers: the server gets an error after `timeouts.input`, the caller is told, and
/// the call goes on.
#[tokio::test]
async fn a_question_that_is_never_answered_ends_in_time() {
    let gateway = TestGateway::new()
        .stdio("u1", &[])
        .adjust(|s| {
            s.timeouts.input = Duration::from_millis(600);
            s.timeouts.idle = Duration::from_millis(250);
        })
        .start()
        .await;
    let client = session_with(&gateway, all_capabilities()).await;
    assert!(call(&client, 0, "mcp_u1_echo", json!({})).await["result"].is_object());
    let asking = tool("mcp_u1_ask", json!({"method": "elicitation/create", "params": {"message": "?"}}));
    let begun = Instant::now();
    let mut stream = client.post(&request(1, "tools/call", asking)).await.stream();
    let asked = next(&mut stream).await;
    let told = next(&mut stream).await;
    assert_eq!(told["params"]["requestId"], asked["id"], "{told}");
    let end = next(&mut stream).await;
    // While the question waited, the idle limit rested.
    assert!(begun.elapsed() >= Duration::from_millis(600), "{:?}", begun.elapsed());
    assert!(value(&end)["error"]["code"].is_i64(), "{end}");
}

/// case-H11: a slow answer within the limit is an answer, though it took longer than the call's idle limit.
#[tokio::test]
async fn the_idle_limit_rests_while_the_caller_is_asked() {
    let gateway = TestGateway::new()
        .stdio("u1", &[])
        .adjust(|s| s.timeouts.idle = Duration::from_millis(250))
        .start()
        .await;
    let client = session_with(&gateway, all_capabilities()).await;
    assert!(call(&client, 0, "mcp_u1_echo", json!({})).await["result"].is_object());
    let asking = tool("mcp_u1_ask", json!({"method": "elicitation/create", "params": {"message": "?"}}));
    let mut stream = client.post(&request(1, "tools/call", asking)).await.stream();
    let asked = next(&mut stream).await;
    tokio::time::sleep(Duration::from_millis(800)).await;
    answer(&client, &asked, json!({"action": "accept"})).await;
    assert_eq!(value(&next(&mut stream).await)["result"]["action"], "accept");
}

/// case-H11: a call that is cancelled takes its question with it.
#[tokio::test]
async fn a_cancelled_call_takes_its_question_with_it() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = session_with(&gateway, all_capabilities()).await;
    let (feed, mut stream) = running(&server, &client, "mcp_u1_echo").await;
    feed.send(message(&question(&json!("q"), "roots/list", &json!({})))).await;
    next(&mut stream).await;
    let note =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "call"}});
    client.post(&note).await;
    let refused = server.await_request(is_answer).await.json();
    assert!(refused["error"].is_object() && refused["id"] == "q", "{refused}");
    let rest = stream.rest().await;
    assert!(rest.iter().all(|m| m["id"] != "call"), "no response after cancel: {rest:?}");
}

/// case-H11: a question that a child asked for one of several calls outlives the others.
#[tokio::test]
async fn a_childs_question_outlives_the_other_calls() {
    let gateway = TestGateway::new().stdio("u1", &[]).start().await;
    let client = session_with(&gateway, all_capabilities()).await;
    assert!(call(&client, 0, "mcp_u1_echo", json!({})).await["result"].is_object());
    let sleeping = request("older", "tools/call", tool("mcp_u1_sleep", json!({"ms": 500})));
    let mut older = client.post(&sleeping).await.stream();
    let asking = tool("mcp_u1_ask", json!({"method": "roots/list", "params": {}}));
    let newer = request("newer", "tools/call", asking);
    let newer = client.post(&newer);
    // stdio does not say whose question it is: it is taken for the oldest call's.
    let (newer, asked) = join(newer, next(&mut older)).await;
    assert_eq!(asked["method"], "roots/list");
    assert!(next(&mut older).await["result"].is_object(), "the older call ends");
    answer(&client, &asked, json!({"roots": []})).await;
    let end = newer.stream().rest().await;
    assert_eq!(value(end.last().expect("a result"))["result"], json!({"roots": []}), "{end:?}");
}

/// case-H11: over a link that many share: over HTTP a question finds its call's caller, over stdio nobody is asked.
#[tokio::test]
async fn over_a_shared_link_only_attributable_questions_are_asked() {
    let gateway = TestGateway::new()
        .stdio("u2", &[])
        .adjust(|s| s.isolation = Isolation::Shared { size: 1 })
        .start()
        .await;
    let client = session_with(&gateway, all_capabilities()).await;
    let result = call(&client, 1, "mcp_u2_ask", json!({"method": "roots/list", "params": {}})).await;
    assert_eq!(value(&result)["error"]["code"], -32601, "{result}");
    let heard = call(&client, 2, "mcp_u2_heard", json!({})).await;
    assert_eq!(value(&heard)[0]["capabilities"], json!({}), "nothing was offered");
    until("it was counted", async || {
        gateway.sample(r#"mcpgate_upstream_unattributed_total{server="u2"}"#) >= 1.0
    })
    .await;

    let server = HttpServer::start().await;
    let gateway = TestGateway::new()
        .http("u1", server.url())
        .adjust(|s| s.isolation = Isolation::Shared { size: 1 })
        .start()
        .await;
    let a = session_with(&gateway, all_capabilities()).await;
    let b = session_with(&gateway, all_capabilities()).await;
    let (feed_a, mut of_a) = running(&server, &a, "mcp_u1_echo").await;
    let (feed_b, mut of_b) = running(&server, &b, "mcp_u1_echo").await;
    for (feed, stream, client, id) in [(&feed_a, &mut of_a, &a, 1), (&feed_b, &mut of_b, &b, 2)] {
        feed.send(message(&question(&json!(id), "roots/list", &json!({})))).await;
        let asked = next(stream).await;
        assert_eq!(asked["method"], "roots/list");
        answer(client, &asked, json!({"roots": [], "id": id})).await;
    }
    for seen in server.await_requests(2, is_answer).await {
        assert_eq!(seen.json()["result"]["id"], seen.json()["id"]);
    }
    assert_eq!(server.count(rpc("initialize")), 1);
}

/// Nothing grows without a bound: a server that asks and asks gets errors.
#[tokio::test]
async fn a_server_that_asks_too_much_gets_errors() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = gateway.client("/mcp").initialize_with(REVISION, all_capabilities()).await;
    let (feed, mut stream) = running(&server, &client, "mcp_u1_echo").await;
    for n in 0..80 {
        feed.send(message(&question(&json!(n), "roots/list", &json!({})))).await;
    }
    let refused = server.await_requests(16, is_answer).await;
    assert!(refused.iter().all(|seen| seen.json()["error"].is_object()));
    for _ in 0..64 {
        let asked = next(&mut stream).await;
        answer(&client, &asked, json!({"roots": []})).await;
    }
    let all = server.await_requests(80, is_answer).await;
    assert_eq!(all.iter().filter(|seen| seen.json()["result"].is_object()).count(), 64);
}
