//! Ids and progress tokens: what the caller chose is given back and never a key.

use std::time::Duration;

use futures_util::future::{join, join_all};
use serde_json::{Value, json};

use crate::client::{Client, request};
use crate::gateway::TestGateway;
use crate::http_server::{Answer, HttpServer, Step, message, pause, result, rpc};
use crate::kit::{call, failure, session, value};
use mcpgate::settings::servers::Isolation;

/// Echoes its arguments after as many milliseconds as they say, on a stream.
fn echoes_late(server: &HttpServer) {
    server.on_each(rpc("tools/call"), |seen| {
        let arguments = seen.json()["params"]["arguments"].clone();
        let wait = Duration::from_millis(arguments["ms"].as_u64().unwrap_or_default());
        let echo = json!({"structuredContent": {"value": arguments}, "content": []});
        Answer::events([pause(wait), result(&echo.to_string())])
    });
}

/// case-H01: two requests of one id at once each get their own answer, in one session and in two, over both
/// transports.
#[tokio::test]
async fn requests_of_one_id_get_their_own_answers() {
    let server = HttpServer::start().await;
    echoes_late(&server);
    let gateway = TestGateway::new()
        .http("u1", server.url())
        .stdio("u2", &[])
        .stdio("u3", &[])
        .adjust(|s| s.isolation = Isolation::Shared { size: 1 })
        .start()
        .await;
    let (a, b) = (session(&gateway).await, session(&gateway).await);
    for tool in ["mcp_u1_echo", "mcp_u2_sleep", "mcp_u3_sleep"] {
        for (first, second) in [(&a, &a), (&a, &b)] {
            let slow = call(first, 1, tool, json!({"ms": 400, "who": "slow"}));
            let quick = call(second, 1, tool, json!({"ms": 30, "who": "quick"}));
            let (slow, quick) = join(slow, quick).await;
            assert_eq!(
                (value(&slow)["who"].as_str(), value(&quick)["who"].as_str()),
                (Some("slow"), Some("quick"))
            );
            assert_eq!((&slow["id"], &quick["id"]), (&json!(1), &json!(1)));
        }
    }
}

/// case-H01: a thousand requests with few ids, of both types, at random times, over several servers.
#[tokio::test]
async fn a_thousand_requests_with_few_ids_get_their_own_answers() {
    let server = HttpServer::start().await;
    echoes_late(&server);
    let gateway = TestGateway::new().http("u1", server.url()).stdio("u2", &[]).start().await;
    let clients = [session(&gateway).await, session(&gateway).await, session(&gateway).await];
    // A fixed sequence of odd numbers, so that a failure can be repeated.
    let mut seed = 7_u64;
    let mut random = move |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let mut calls = Vec::new();
    for n in 0..1000_u64 {
        let id = match random(4) {
            0 => json!(1),
            1 => json!("1"),
            2 => json!(random(3)),
            _ => json!(""),
        };
        let tool = if random(2) == 0 { "mcp_u1_echo" } else { "mcp_u2_sleep" };
        let client = &clients[usize::try_from(random(3)).expect("small")];
        let arguments = json!({"ms": random(60), "n": n});
        calls.push(async move {
            let answer = call(client, id.clone(), tool, arguments.clone()).await;
            (id, arguments, answer)
        });
    }
    // As many at once as a session may have.
    let mut rest = calls.into_iter().peekable();
    while rest.peek().is_some() {
        let some: Vec<_> = rest.by_ref().take(200).collect();
        for (id, arguments, answer) in join_all(some).await {
            assert_eq!((&answer["id"], value(&answer)), (&id, &arguments));
        }
    }
}

/// case-H03: an id that is none is refused with a null or absent id, and the session goes on.
#[tokio::test]
async fn an_id_that_is_none_is_refused() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = session(&gateway).await;
    for id in ["null", "true", "{}", "[1]", "1.5", "1.0", "1e3", "-", "01"] {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"mcp_u1_echo"}}}}"#
        );
        let answer = client.send(http::Method::POST, body).await;
        assert_eq!(answer.status, 400, "{id}");
        let answer = answer.json().await;
        assert!(matches!(answer["error"]["code"].as_i64(), Some(-32600 | -32700)), "{id} -> {answer}");
        assert!(answer["id"].is_null(), "{answer}");
    }
    assert_eq!(server.count(rpc("tools/call")), 0);
    for id in [json!(0), json!(-7), json!(u64::MAX), json!(""), json!("é\"\\"), json!("1.0")] {
        let answer = call(&client, id.clone(), "mcp_u1_echo", json!({})).await;
        assert_eq!(answer["id"], id);
    }
}

/// case-H03: a server that writes our id in another spelling is understood; one that answers for somebody else is
/// an error in time, never a hang.
#[tokio::test]
async fn a_server_that_respells_ids_is_understood() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new()
        .http("u1", server.url())
        .adjust(|s| s.timeouts.idle = Duration::from_millis(400))
        .stdio("u2", &[])
        .adjust(|s| s.timeouts.idle = Duration::from_millis(400))
        .start()
        .await;
    let client = session(&gateway).await;
    for (spelling, understood) in
        [("$ID", true), ("\"$ID\"", true), ("$ID.0", true), ("$ID1", false), ("\"x\"", false), ("{}", false)]
    {
        let text = move |id: &str| {
            let id = spelling.replace("$ID", id);
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}"#)
        };
        server.on_each(rpc("tools/call"), move |seen| Answer::json(text(seen.id.as_deref().expect("an id"))));
        server.on_each(
            |seen| seen.is("tools/call") && seen.text().contains("stream"),
            move |seen| Answer::events([message(&text(seen.id.as_deref().expect("an id")))]),
        );
        let over_json = call(&client, "a", "mcp_u1_echo", json!({})).await;
        let over_stream = call(&client, "b", "mcp_u1_echo", json!({"stream": 1})).await;
        let line = format!("{}\n", text("$ID"));
        let over_stdio = call(&client, "c", "mcp_u2_raw", json!({ "text": line })).await;
        for (id, answer) in [("a", over_json), ("b", over_stream), ("c", over_stdio)] {
            assert_eq!(answer["id"], id);
            assert_eq!(answer["result"].is_object(), understood, "{spelling} -> {answer}");
            if !understood {
                failure(&answer);
            }
        }
    }
}

/// case-H07: progress reaches the call that asked for it, under its caller's token, type and all; whoever gave no
/// token gets none.
#[tokio::test]
async fn progress_comes_under_the_callers_own_token() {
    let server = HttpServer::start().await;
    server.on_each(rpc("tools/call"), |seen| {
        let params = seen.json()["params"].clone();
        let token = &params["_meta"]["progressToken"];
        let step = |n: u64| -> Step {
            let params =
                json!({"progressToken": token, "progress": n, "message": params["arguments"]["who"]});
            message(
                &json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}).to_string(),
            )
        };
        let wait = || pause(Duration::from_millis(50));
        Answer::events([step(1), wait(), step(2), wait(), step(3), result(r#"{"content":[]}"#)])
    });
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let (a, b) = (session(&gateway).await, session(&gateway).await);
    let asked = |client: Client, who: &'static str, token: Option<Value>| async move {
        let mut call = request(1, "tools/call", json!({"name": "mcp_u1_echo", "arguments": {"who": who}}));
        if let Some(token) = token {
            call["params"]["_meta"] = json!({ "progressToken": token });
        }
        let answer = client.post(&call).await;
        let messages =
            if answer.is_stream() { answer.stream().rest().await } else { vec![answer.json().await] };
        (who, messages)
    };
    let calls = join_all([
        asked(a.clone(), "a", Some(json!(1))),
        asked(b.clone(), "b", Some(json!(1))),
        asked(a.clone(), "text", Some(json!("1"))),
        asked(a.clone(), "odd", Some(json!("é \" \\ token"))),
        asked(b.clone(), "none", None),
    ]);
    let tokens = [json!(1), json!(1), json!("1"), json!("é \" \\ token"), Value::Null];
    for ((who, messages), token) in calls.await.into_iter().zip(tokens) {
        let (last, progress) = messages.split_last().expect("a response");
        assert!(last["result"].is_object(), "{last}");
        let expected = if token.is_null() { 0 } else { 3 };
        assert_eq!(progress.len(), expected, "{who}: {progress:?}");
        for (n, step) in progress.iter().enumerate() {
            let params = json!({"progressToken": token, "progress": n + 1, "message": who});
            assert_eq!(step["params"], params);
        }
    }
    // The server never saw a caller's token; where there was none it saw none.
    for seen in server.requests().into_iter().filter(|seen| seen.is("tools/call")) {
        let params = seen.json()["params"].clone();
        let token = &params["_meta"]["progressToken"];
        if params["arguments"]["who"] == "none" {
            assert!(token.is_null());
        } else {
            assert_eq!(Some(token.to_string()), seen.id);
        }
    }
}

/// case-H07: over one shared child, progress of two callers with one token stays apart.
#[tokio::test]
async fn progress_over_a_shared_child_stays_apart() {
    let gateway = TestGateway::new()
        .stdio("u1", &[])
        .adjust(|s| s.isolation = Isolation::Shared { size: 1 })
        .start()
        .await;
    let clients = [session(&gateway).await, session(&gateway).await];
    let calls = (1..=20_u64).map(|steps| {
        let client = &clients[usize::from(steps % 2 == 0)];
        async move {
            let mut call =
                request(1, "tools/call", json!({"name": "mcp_u1_progress", "arguments": {"steps": steps}}));
            call["params"]["_meta"] = json!({"progressToken": "same"});
            (steps, client.post(&call).await.stream().rest().await)
        }
    });
    for (steps, messages) in join_all(calls).await {
        let totals: Vec<_> = messages.iter().filter_map(|m| m["params"]["total"].as_u64()).collect();
        assert_eq!(totals, vec![steps; usize::try_from(steps).expect("small")]);
        assert!(messages.iter().all(|m| m["params"].is_null() || m["params"]["progressToken"] == "same"));
    }
}

/// case-H07: progress for a call that is over, or for a token nobody gave, reaches no caller.
#[tokio::test]
async fn progress_for_nobody_reaches_nobody() {
    let gateway = TestGateway::new().stdio("u1", &[]).start().await;
    let client = session(&gateway).await;
    let mut get = client.open_get().await;
    for token in [json!(1), json!("1"), json!(4_294_967_297_u64), json!(null), json!({}), json!(999)] {
        let arguments =
            json!({"method": "notifications/progress", "params": {"progressToken": token, "progress": 1}});
        let mut body = request(1, "tools/call", json!({"name": "mcp_u1_say", "arguments": arguments}));
        body["params"]["_meta"] = json!({"other": 1});
        let answer = client.post(&body).await;
        let messages =
            if answer.is_stream() { answer.stream().rest().await } else { vec![answer.json().await] };
        assert_eq!(messages.len(), 1, "{messages:?}");
    }
    let nothing = tokio::time::timeout(Duration::from_millis(200), get.message()).await;
    assert!(nothing.is_err(), "{nothing:?}");
}
