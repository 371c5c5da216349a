//! Calls that take too long, and what counts as a sign of life.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::{request, tool};
use crate::gateway::TestGateway;
use crate::http_server::{Answer, Gate, HttpServer, hold, hold_until, message, pause, result, rpc};
use crate::kit::{call, failure, session, value};

fn progress(seen: &crate::http_server::Seen, n: u64) -> crate::http_server::Step {
    let token = seen.id.as_deref().expect("an id");
    message(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{n}}}}}"#
    ))
}

/// case-H05: a call without an answer is an error in time, with its id, at HTTP 200; its server is told by the
/// server's own id; what comes later is dropped.
#[tokio::test]
async fn a_call_that_takes_too_long_is_an_error_in_time() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new()
        .http("u1", server.url())
        .adjust(|s| s.timeouts.idle = Duration::from_millis(300))
        .stdio("u2", &[])
        .adjust(|s| s.timeouts.idle = Duration::from_millis(300))
        .start()
        .await;
    let client = session(&gateway).await;
    assert!(call(&client, 0, "mcp_u2_echo", json!({})).await["result"].is_object());
    let gate = Gate::new();
    for slow in [
        Answer::result(r#"{"content":[]}"#).after(&gate),
        Answer::events([hold_until(&gate), result(r#"{"content":[]}"#)]),
        Answer::events([hold()]),
    ] {
        server.once(rpc("tools/call"), slow);
        let begun = Instant::now();
        let answer = client.post(&request("late", "tools/call", tool("mcp_u1_echo", json!({})))).await;
        assert_eq!(answer.status, 200);
        let answer = answer.response().await;
        assert!(begun.elapsed() < Duration::from_millis(900), "{:?}", begun.elapsed());
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("late"), &json!(-32603)));
        let said = failure(&answer);
        assert_eq!(
            (&said["reason"], &said["server"], &said["layer"]),
            (&json!("timed_out"), &json!("u1"), &json!("call"))
        );
    }
    let calls = server.requests().into_iter().filter(|seen| seen.is("tools/call"));
    let calls: Vec<_> = calls.map(|seen| seen.json()["id"].clone()).collect();
    let told = server.await_requests(3, rpc("notifications/cancelled")).await;
    let told: Vec<_> = told.iter().map(|seen| seen.json()["params"]["requestId"].clone()).collect();
    assert_eq!(told, calls);
    gate.open();

    let answer = call(&client, 7, "mcp_u2_sleep", json!({"ms": 700})).await;
    assert_eq!(failure(&answer)["reason"], "timed_out", "{answer}");
    let heard = call(&client, 8, "mcp_u2_heard", json!({})).await;
    let heard =
        value(&heard).as_array().expect("a list").iter().find(|m| m["method"] == "notifications/cancelled");
    assert!(heard.is_some_and(|m| m["params"]["requestId"].is_u64()), "{heard:?}");
    // Its answer comes when nobody waits any more, and spoils nothing.
    crate::kit::until("the late answer came", async || {
        gateway.sample(r#"mcpgate_upstream_late_responses_total{server="u2"}"#) == 1.0
    })
    .await;
    assert!(call(&client, 9, "mcp_u2_echo", json!({})).await["result"].is_object());
}

/// case-H05: progress puts the idle limit off, whether the caller asked for it or not.
#[tokio::test]
async fn progress_puts_the_idle_limit_off() {
    let server = HttpServer::start().await;
    server.on_each(rpc("tools/call"), |seen| {
        let mut steps = Vec::new();
        for n in 1..=6 {
            steps.extend([pause(Duration::from_millis(150)), progress(seen, n)]);
        }
        steps.push(result(r#"{"content":[]}"#));
        Answer::events(steps)
    });
    let gateway = TestGateway::new()
        .http("u1", server.url())
        .adjust(|s| s.timeouts.idle = Duration::from_millis(400))
        .start()
        .await;
    let client = session(&gateway).await;
    let begun = Instant::now();
    let mut asking = request(1, "tools/call", tool("mcp_u1_echo", json!({})));
    asking["params"]["_meta"] = json!({"progressToken": "t"});
    let answer = client.post(&asking).await.response().await;
    assert!(answer["result"].is_object(), "{answer}");
    assert!(begun.elapsed() > Duration::from_millis(800));
}

/// case-H05: the total limit is put off by nothing.
#[tokio::test]
async fn progress_does_not_put_the_total_limit_off() {
    let server = HttpServer::start().await;
    server.on_each(rpc("tools/call"), |seen| {
        let steps = (1..=100).flat_map(|n| [pause(Duration::from_millis(50)), progress(seen, n)]);
        Answer::events(steps.collect::<Vec<_>>())
    });
    let gateway = TestGateway::new()
        .http("u1", server.url())
        .adjust(|s| {
            s.timeouts.idle = Duration::from_millis(300);
            s.timeouts.total = Duration::from_millis(700);
        })
        .start()
        .await;
    let client = session(&gateway).await;
    let begun = Instant::now();
    let mut asking = request(1, "tools/call", tool("mcp_u1_echo", json!({})));
    asking["params"]["_meta"] = json!({"progressToken": "t"});
    let answer = client.post(&asking).await.response().await;
    assert_eq!(failure(&answer)["reason"], "timed_out", "{answer}");
    assert!(begun.elapsed() >= Duration::from_millis(700) && begun.elapsed() < Duration::from_millis(1500));
    assert!(answer["error"]["message"].as_str().is_some_and(|m| m.contains("timeouts.total")), "{answer}");
}

/// case-H05: the limits are each server's own, and hold for every method that goes there.
#[tokio::test]
async fn each_server_has_limits_of_its_own() {
    let server = crate::kit::server_with(r#"{"tools":{},"prompts":{},"resources":{}}"#).await;
    server.on(rpc("prompts/list"), Answer::result(r#"{"prompts":[{"name":"p"}]}"#));
    server.on(rpc("resources/list"), Answer::result(r#"{"resources":[{"uri":"x://a","name":"a"}]}"#));
    server.on(rpc("resources/templates/list"), Answer::result(r#"{"resourceTemplates":[]}"#));
    let gateway = TestGateway::new()
        .http("quick", server.url())
        .adjust(|s| s.timeouts.idle = Duration::from_millis(200))
        .http("slow", server.url())
        .start()
        .await;
    let gate = Gate::new();
    for method in ["tools/call", "prompts/get", "resources/read", "vendor/method"] {
        server.on(move |seen| seen.is(method), Answer::result("{}").after(&gate));
    }
    for (method, params) in [
        ("tools/call", tool("echo", json!({}))),
        ("prompts/get", json!({"name": "p"})),
        ("resources/read", json!({"uri": "x://a"})),
        ("vendor/method", json!({})),
    ] {
        let client = gateway.client("/servers/quick/mcp").initialize("2025-06-18").await;
        let answer = client.call(1, method, params).await;
        assert_eq!(failure(&answer)["reason"], "timed_out", "{method} -> {answer}");
    }
    let client = gateway.client("/servers/slow/mcp").initialize("2025-06-18").await;
    let waiting = client.call(1, "tools/call", tool("echo", json!({})));
    let opened = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        gate.open();
    };
    let (answer, ()) = futures_util::future::join(waiting, opened).await;
    assert!(answer["result"].is_object(), "{answer}");
}
