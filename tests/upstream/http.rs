//! A well-behaved Streamable HTTP server: what a link sends it, and what comes back.

use http::Method;
use mcpgate::protocol::revision::Revision;
use mcpgate::upstream::{Delivery, Farewell};

use crate::http_server::{Answer, Gate, HttpServer, Step, hold, hold_until, http, message, raw, result, rpc};
use crate::http_support::{Ear, Heard, Plan, Rig, request, soon};

/// case-D05, T33: the session id and the negotiated version are on every request after `initialize`.
#[tokio::test]
async fn carries_the_session_id_and_version_from_initialized_to_delete() {
    let server = HttpServer::start().await;
    let rig = Rig::open(server.url()).await;
    rig.call("tools/list").await.unwrap();
    rig.link.notify(r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#.into()).await.unwrap();
    server.await_request(http(Method::GET)).await;
    let id = server.sessions().remove(0);
    rig.link.close(Farewell::End).await;

    let requests = server.requests();
    let first = &requests[0];
    assert!(first.is("initialize"), "{first:?}");
    assert_eq!(first.header("mcp-session-id"), None);
    assert_eq!(first.header("mcp-protocol-version"), None);
    assert_eq!(first.json()["params"]["capabilities"]["roots"], serde_json::json!({}));
    assert!(requests[1].is("notifications/initialized"));
    for later in &requests[1..] {
        assert_eq!(later.header("mcp-session-id"), Some(id.as_str()), "{later:?}");
        assert_eq!(later.header("mcp-protocol-version"), Some("2025-11-25"), "{later:?}");
    }
    assert_eq!(requests.last().unwrap().method, Method::DELETE);
    assert_eq!(server.sessions(), [""; 0]);
}

/// T5: each kind of request says what it can read.
#[tokio::test]
async fn accepts_both_forms_for_a_message_and_a_stream_for_a_get() {
    let server = HttpServer::start().await;
    let rig = Rig::open(server.url()).await;
    rig.call("ping").await.unwrap();
    let post = server.await_request(rpc("ping")).await;
    assert_eq!(post.header("accept"), Some("application/json, text/event-stream"));
    assert_eq!(post.header("content-type"), Some("application/json"));
    let get = server.await_request(http(Method::GET)).await;
    assert_eq!(get.header("accept"), Some("text/event-stream"));
}

/// G05: a result passes byte for byte.
#[tokio::test]
async fn gives_a_result_as_it_was_written() {
    let server = HttpServer::start().await;
    let odd = r#"{ "n": 12345678901234567890123, "f":1.0, "z":1,"a":{"x":1e2} }"#;
    server.on(rpc("tools/call"), Answer::result(odd));
    let rig = Rig::open(server.url()).await;
    assert_eq!(rig.call("tools/call").await.unwrap().result(), Some(odd));
}

#[tokio::test]
async fn says_what_the_server_said_of_itself() {
    let server = HttpServer::start().await;
    let hello = r#"{"protocolVersion":"2025-06-18","capabilities":{"x":1.0},"serverInfo":{"name":"n"},"instructions":"Do \"so\"."}"#;
    server.on(rpc("initialize"), Answer::result(hello));
    let introduction = Rig::open(server.url()).await.link.introduction();
    assert_eq!(introduction.revision, Revision::V2025_06_18);
    assert_eq!(&*introduction.capabilities, r#"{"x":1.0}"#);
    assert_eq!(&*introduction.server_info, r#"{"name":"n"}"#);
    assert_eq!(introduction.instructions.as_deref(), Some("Do \"so\"."));
    assert_eq!(
        server.await_request(rpc("notifications/initialized")).await.header("mcp-protocol-version"),
        Some("2025-06-18")
    );
}

/// T7: `initialize` may be answered on a stream too.
#[tokio::test]
async fn begins_a_session_over_an_event_stream() {
    let server = HttpServer::start().await;
    let hello =
        r#"{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"n","version":"1"}}"#;
    server.on(rpc("initialize"), Answer::events([result(hello)]));
    let rig = Rig::open(server.url()).await;
    rig.call("tools/list").await.unwrap();
}

/// case-D07: many calls, one session.
#[tokio::test]
async fn uses_one_session_for_all_calls() {
    let server = HttpServer::start().await;
    let rig = Rig::open(server.url()).await;
    for _ in 0..20 {
        rig.call("tools/call").await.unwrap();
    }
    assert_eq!(server.count(rpc("initialize")), 1);
    assert_eq!(server.count(rpc("tools/call")), 20);
}

/// L7: ids are numbers, carry the epoch, and no two are the same.
#[tokio::test]
async fn never_uses_an_id_twice() {
    let server = HttpServer::start().await;
    let rig = Rig::open(server.url()).await;
    rig.call("ping").await.unwrap();
    rig.call("ping").await.unwrap();
    let mut ids: Vec<u64> =
        server.requests().iter().filter_map(|seen| seen.id.as_ref()?.parse().ok()).collect();
    assert_eq!(ids.len(), 3);
    assert!(ids.iter().all(|id| id >> 32 == 3), "{ids:?}");
    ids.dedup();
    assert_eq!(ids.len(), 3);
}

/// case-D11: any 2xx takes a notification, whatever else the answer says.
#[tokio::test]
async fn takes_any_success_for_a_notification() {
    let answers = [
        Answer::status(202),
        Answer::status(200),
        Answer::status(204),
        Answer::json("null"),
        Answer::json("{}"),
        Answer::body("text/html", "<p>thanks</p>"),
        Answer::events([]),
        Answer::events([hold()]),
        Answer::json("x".repeat(200_000)),
    ];
    for answer in answers {
        let server = HttpServer::start().await;
        server.on(rpc("notifications/initialized"), answer);
        let rig = Rig::open(server.url()).await;
        rig.call("tools/list").await.unwrap();
    }
}

/// case-F11: fixed headers go with every request, and their values are not shown.
#[tokio::test]
async fn sends_the_configured_headers_and_shows_them_nowhere() {
    let server = HttpServer::start().await;
    let plan = Plan::new(server.url()).header("authorization", "Bearer canary").header("x-key", "canary-2");
    let rig = plan.open().await.unwrap();
    rig.call("tools/list").await.unwrap();
    server.await_request(http(Method::GET)).await;
    rig.link.close(Farewell::End).await;
    for seen in server.requests() {
        assert_eq!(seen.header("authorization"), Some("Bearer canary"), "{seen:?}");
        assert_eq!(seen.header("x-key"), Some("canary-2"), "{seen:?}");
    }
    assert!(!format!("{:?}", rig.link).contains("canary"));
}

/// case-A05: a server's session id is not shown.
#[tokio::test]
async fn keeps_the_session_id_to_itself() {
    let server = HttpServer::start().await;
    let rig = Rig::open(server.url()).await;
    server.on(rpc("tools/call"), Answer::status(500));
    let failure = rig.call("tools/call").await.unwrap_err();
    let id = server.sessions().remove(0);
    assert!(!format!("{:?} {failure:?}", rig.link).contains(&id));
}

#[tokio::test]
async fn sends_cookies_back() {
    let server = HttpServer::start().await;
    server.once(rpc("tools/list"), Answer::result("{}").header("set-cookie", "route=b; Path=/"));
    let rig = Rig::open(server.url()).await;
    rig.call("tools/list").await.unwrap();
    rig.call("ping").await.unwrap();
    assert_eq!(server.await_request(rpc("tools/list")).await.header("cookie"), None);
    assert_eq!(server.await_request(rpc("ping")).await.header("cookie"), Some("route=b"));
}

/// case-B01, case-B02: what a server sends before its answer is heard before the answer is written.
#[tokio::test]
async fn hears_each_event_as_it_comes() {
    let server = HttpServer::start().await;
    let gate = Gate::new();
    let note = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"first"}}"#;
    server.on(
        rpc("tools/call"),
        Answer::events([message(note), hold_until(&gate), result(r#"{"done":true}"#)]),
    );
    let rig = Rig::open(server.url()).await;
    let ear = Ear::default().into();
    let call = rig.calling("tools/call", &ear);
    assert_eq!(ear.notification("notifications/message").await, note);
    gate.open();
    assert_eq!(call.answer().await.unwrap().result(), Some(r#"{"done":true}"#));
    assert!(rig.ear.notifications().is_empty(), "the link's listener hears nothing of a call's stream");
}

/// case-B11: an event in many small writes is one message.
#[tokio::test]
async fn puts_an_event_together_from_many_writes() {
    let server = HttpServer::start().await;
    let tools = format!(r#"{{"tools":[{}]}}"#, vec![r#"{"name":"echo","inputSchema":{}}"#; 6000].join(","));
    let expected = tools.clone();
    server.on_each(rpc("tools/list"), move |seen| {
        let id = seen.id.clone().unwrap();
        let event =
            format!("event: message\r\ndata: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{tools}}}\r\n\r\n");
        let steps: Vec<Step> = event.as_bytes().chunks(1000).map(|part| raw(part.to_vec())).collect();
        Answer::events(steps)
    });
    let rig = Rig::open(server.url()).await;
    assert_eq!(rig.call("tools/list").await.unwrap().result(), Some(expected.as_str()));
}

/// T19: a server of 2025-03-26 may send an array.
#[tokio::test]
async fn finds_its_response_in_an_array() {
    let server = HttpServer::start().await;
    server.on_each(rpc("tools/call"), |seen| {
        let id = seen.id.clone().unwrap();
        let note = r#"{"jsonrpc":"2.0","method":"notifications/message"}"#;
        Answer::json(format!(r#"[{note},{{"jsonrpc":"2.0","id":{id},"result":{{"a":1}}}}]"#))
    });
    let rig = Rig::open(server.url()).await;
    let ear = Ear::default().into();
    assert_eq!(rig.call_heard("tools/call", &ear).await.unwrap().result(), Some(r#"{"a":1}"#));
    assert_eq!(ear.notifications().len(), 1);
}

/// L5: a server's ping is answered by the link.
#[tokio::test]
async fn answers_a_ping() {
    let server = HttpServer::start().await;
    let ping = r#"{"jsonrpc":"2.0","id":"p-1","method":"ping"}"#;
    server.on(rpc("tools/call"), Answer::events([message(ping), result("{}")]));
    let rig = Rig::open(server.url()).await;
    rig.call("tools/call").await.unwrap();
    let pong = server.await_request(|seen| seen.id.as_deref() == Some("\"p-1\"")).await;
    assert_eq!(pong.text(), r#"{"jsonrpc":"2.0","id":"p-1","result":{}}"#);
    assert!(pong.header("mcp-session-id").is_some());
}

/// T23: a question on the stream of a call goes to that call; its answer is a POST of its own.
#[tokio::test]
async fn carries_a_question_and_its_answer() {
    let server = HttpServer::start().await;
    let gate = Gate::new();
    let ask = r#"{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{}}"#;
    server.on(rpc("tools/call"), Answer::events([message(ask), hold_until(&gate), result("{}")]));
    let rig = Rig::open(server.url()).await;
    let ear = Ear::default().into();
    let call = rig.calling("tools/call", &ear);
    let reply = ear.asked("elicitation/create").await;
    assert_eq!(reply.id(), "7");
    reply.send(r#"{"jsonrpc":"2.0","id":7,"result":{"action":"accept"}}"#.into());
    server.await_request(|seen| seen.text().contains("accept")).await;
    gate.open();
    call.answer().await.unwrap();
}

/// H11: a question that nobody answers is answered with an error.
#[tokio::test]
async fn refuses_a_question_whose_listener_went_away() {
    let server = HttpServer::start().await;
    let ask = r#"{"jsonrpc":"2.0","id":7,"method":"roots/list"}"#;
    server.on(rpc("tools/call"), Answer::events([message(ask), result("{}")]));
    let rig = Rig::open(server.url()).await;
    let ear = Ear::default().into();
    rig.call_heard("tools/call", &ear).await.unwrap();
    drop(ear.asked("roots/list").await);
    server.await_request(|seen| seen.text().contains("-32603")).await;
}

/// Progress finds its call on whatever stream a server puts it.
#[tokio::test]
async fn takes_progress_from_the_standalone_stream_to_its_call() {
    let server = HttpServer::start().await;
    let (feed, answer) = Answer::fed();
    server.on(http(Method::GET), answer);
    let gate = Gate::new();
    server.on(rpc("tools/call"), Answer::result("{}").after(&gate));
    let rig = Rig::open(server.url()).await;
    let ear = Ear::default().into();
    let call = rig.calling("tools/call", &ear);
    server.await_request(rpc("tools/call")).await;
    let progress = |token: u64| {
        let params = format!(r#"{{"progressToken":{token},"progress":1}}"#);
        message(&format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{params}}}"#))
    };
    feed.send(progress(call.id.0)).await;
    feed.send(progress(1)).await;
    ear.notification("notifications/progress").await;
    rig.ear.notification(r#""progressToken":1,"#).await;
    gate.open();
    call.answer().await.unwrap();
    assert_eq!(ear.notifications().len(), 1);
}

/// T32: a session that is over is ended; one that goes on elsewhere is not.
#[tokio::test]
async fn ends_the_session_only_when_it_is_over() {
    let server = HttpServer::start().await;
    let rig = Rig::open(server.url()).await;
    rig.link.close(Farewell::Leave).await;
    rig.link.close(Farewell::End).await;
    assert!(rig.link.is_down());
    assert_eq!(server.count(http(Method::DELETE)), 0);
    assert_eq!(server.sessions().len(), 1);

    for refusal in [405, 404, 500] {
        let rig = Rig::open(server.url()).await;
        server.once(http(Method::DELETE), Answer::status(refusal));
        soon(rig.link.close(Farewell::End)).await;
        soon(rig.link.close(Farewell::End)).await;
    }
    assert_eq!(server.count(http(Method::DELETE)), 3);
}

/// A server without sessions gets no DELETE.
#[tokio::test]
async fn serves_without_a_session_id() {
    let server = HttpServer::sessionless().await;
    let rig = Rig::open(server.url()).await;
    rig.call("tools/call").await.unwrap();
    rig.link.close(Farewell::End).await;
    assert_eq!(server.count(http(Method::DELETE)), 0);
}

/// H11: closing a link ends the calls that run, in JSON and on streams.
#[tokio::test]
async fn ends_running_calls_when_it_is_closed() {
    let server = HttpServer::start().await;
    server.on(rpc("silent"), Answer::result("{}").after(&Gate::new()));
    server.on(rpc("stream"), Answer::events([hold()]));
    let rig = Rig::open(server.url()).await;
    let ear = Ear::default().into();
    let calls = [rig.calling("silent", &ear), rig.calling("stream", &ear)];
    server.await_request(rpc("silent")).await;
    server.await_request(rpc("stream")).await;
    rig.link.close(Farewell::End).await;
    for call in calls {
        let failure = call.answer().await.unwrap_err();
        assert_eq!((failure.reason, failure.delivery), ("link_closed", Delivery::Unknown));
    }
    let failure = rig.call("tools/list").await.unwrap_err();
    assert_eq!((failure.reason, failure.delivery), ("link_closed", Delivery::NotDelivered));
    assert_eq!(server.sessions(), [""; 0]);
}

/// A call that is dropped closes its stream at the server, and the link goes on.
#[tokio::test]
async fn lets_go_of_a_call_that_nobody_waits_for() {
    let server = HttpServer::start().await;
    server.on(rpc("tools/call"), Answer::events([message(r#"{"jsonrpc":"2.0","method":"x"}"#), hold()]));
    let rig = Rig::open(server.url()).await;
    let ear = Ear::default().into();
    let call = rig.calling("tools/call", &ear);
    ear.notification("\"x\"").await;
    call.drop_it();
    server.await_hang_up(rpc("tools/call")).await;
    rig.call("tools/list").await.unwrap();
}

/// A link that is dropped lets its standalone stream go.
#[tokio::test]
async fn leaves_nothing_behind_when_it_is_dropped() {
    let server = HttpServer::start().await;
    server.on(http(Method::GET), Answer::events([hold()]));
    let rig = Rig::open(server.url()).await;
    server.await_request(http(Method::GET)).await;
    drop(rig.link);
    server.await_hang_up(http(Method::GET)).await;
}

/// Many calls at once find their own answers.
#[tokio::test]
async fn keeps_concurrent_calls_apart() {
    let server = HttpServer::start().await;
    server.on_each(rpc("tools/call"), |seen| {
        Answer::result(&format!(r#"{{"for":{}}}"#, seen.id.clone().unwrap()))
    });
    let rig = Rig::open(server.url()).await;
    let calls = (0..50).map(|_| async {
        let id = rig.link.allot();
        let listener = std::sync::Arc::new(Ear::default());
        let response = rig.link.call(id, request(id, "tools/call").into(), listener).await.unwrap();
        assert_eq!(response.result(), Some(format!(r#"{{"for":{id}}}"#).as_str()));
    });
    soon(futures_util::future::join_all(calls)).await;
    assert!(rig.ear.all(|heard| matches!(heard, Heard::Renewed).then_some(())).is_empty());
}
