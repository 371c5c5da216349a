//! How a modern request is answered, and what happens when its caller leaves: closing is cancelling.

use std::time::{Duration, Instant};

use http::StatusCode;
use serde_json::{Value, json};

use crate::client::tool;
use crate::gateway::TestGateway;
use crate::http_server::{Answer, Gate, HttpServer, hold, hold_until, message, result, rpc};
use crate::kit::{auto, modern};

const LOG: &str =
    r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#;
const DONE: &str = r#"{"content":[{"type":"text","text":"done"}]}"#;

fn echo() -> Value {
    let mut call = tool("mcp_u1_echo", json!({}));
    call["_meta"] = json!({"io.modelcontextprotocol/logLevel": "debug"});
    call
}

/// F15: JSON while nothing need be sent ahead, a stream from the first message on; each in the form that is taken.
#[tokio::test]
async fn the_answer_has_the_form_that_its_caller_takes() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let caller = modern(&gateway, "/mcp");
    for (accept, talkative, streams, messages) in [
        ("application/json, text/event-stream", false, false, 1),
        ("application/json, text/event-stream", true, true, 2),
        ("application/json", false, false, 1),
        ("application/json", true, false, 1),
        ("text/event-stream", false, true, 1),
        ("text/event-stream", true, true, 2),
        ("*/*", false, false, 1),
    ] {
        let steps = if talkative { vec![message(LOG), result(DONE)] } else { vec![result(DONE)] };
        server.on(rpc("tools/call"), Answer::events(steps));
        let call = caller.request("r", "tools/call", echo());
        let answer = caller.mirrored(&call).header("accept", accept).post(&call).await;
        assert_eq!((answer.status, answer.is_stream()), (StatusCode::OK, streams), "{accept} {talkative}");
        let all = if streams {
            let mut stream = answer.stream();
            let mut all = Vec::new();
            while let Some(event) = stream.event().await {
                assert!(event.id.is_none() && event.retry.is_none(), "nobody can come back: {event:?}");
                all.push(serde_json::from_slice::<Value>(&event.data).unwrap());
            }
            all
        } else {
            vec![answer.json().await]
        };
        assert_eq!(all.len(), messages, "{accept} {talkative} {all:?}");
        let last = all.last().unwrap();
        assert_eq!((&last["id"], &last["result"]["content"][0]["text"]), (&json!("r"), &json!("done")));
    }
}

/// F15: a silent answer becomes a stream when its connection could be taken for dead; for a caller of JSON it waits.
#[tokio::test]
async fn a_silent_answer_becomes_a_stream_in_time() {
    let (server, gate) = (HttpServer::start().await, Gate::new());
    server.on(rpc("tools/call"), Answer::events([hold_until(&gate), result(DONE)]));
    let short = Duration::from_millis(50);
    let gateway =
        TestGateway::new().http("u1", server.url()).with(|s| s.streams.keep_alive = short).start().await;
    let caller = modern(&gateway, "/mcp");
    let call = caller.request(1, "tools/call", echo());
    for accept in ["application/json, text/event-stream", "text/event-stream"] {
        let answer = caller.mirrored(&call).header("accept", accept).post(&call).await;
        assert!(answer.is_stream(), "{accept}");
    }
    let client = caller.mirrored(&call).header("accept", "application/json");
    let waiting = client.post(&call);
    let open = async {
        server.await_requests(3, rpc("tools/call")).await;
        tokio::time::sleep(short * 2).await; // what is tried is that time passes
        gate.open();
    };
    let (answer, ()) = tokio::join!(waiting, open);
    assert_eq!(answer.json().await["result"]["content"][0]["text"], "done");
}

/// T54, X42: who closes the stream, or leaves before anything was answered, has cancelled: a legacy server is told by
/// its own id, soon.
#[tokio::test]
async fn leaving_cancels_at_a_legacy_server() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let caller = modern(&gateway, "/mcp");
    caller.call(0, "tools/list", json!({})).await;
    for (n, accept, talkative) in [
        (1, "application/json, text/event-stream", true),
        (2, "application/json, text/event-stream", false),
        (3, "application/json", false),
        (4, "text/event-stream", true),
        (5, "text/event-stream", false),
    ] {
        let steps = if talkative { vec![message(LOG), hold()] } else { vec![hold()] };
        server.on(rpc("tools/call"), Answer::events(steps));
        let call = caller.request(n, "tools/call", echo());
        let client = caller.mirrored(&call).header("accept", accept);
        let began = if talkative {
            let mut stream = client.post(&call).await.stream();
            assert_eq!(stream.message().await.unwrap()["method"], "notifications/message");
            drop(stream);
            Instant::now()
        } else {
            let asking = async { client.post(&call).await.status };
            let seen = async { server.await_requests(n, rpc("tools/call")).await };
            tokio::select! {
                status = asking => panic!("answered with {status}"),
                _ = seen => {}
            }
            Instant::now()
        };
        let told = server.await_requests(n, rpc("notifications/cancelled")).await;
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
        let calls = server.await_requests(n, rpc("tools/call")).await;
        assert_eq!(told[n - 1].json()["params"]["requestId"], calls[n - 1].json()["id"], "{accept}");
    }
    gateway.until("mcpgate_sse_streams_active{kind=\"post\"}", |open| open == 0.0).await;
    server.on(rpc("tools/call"), Answer::result(DONE));
    assert_eq!(caller.call(9, "tools/call", echo()).await["result"]["content"][0]["text"], "done");
    assert_eq!(server.count(rpc("notifications/cancelled")), 5, "the last one was not cancelled");
}

/// T54, X51: at a modern server closing is cancelling too.
#[tokio::test]
async fn leaving_cancels_at_a_modern_server() {
    let server = HttpServer::modern().await;
    let gateway = TestGateway::new().http("u1", server.url()).adjust(auto).start().await;
    let caller = modern(&gateway, "/mcp");
    server.on(rpc("tools/call"), Answer::events([message(LOG), hold()]));
    let call = caller.request(1, "tools/call", echo());
    let mut stream = caller.post(&call).await.stream();
    assert!(stream.message().await.is_some());
    drop(stream);
    server.await_hang_up(rpc("tools/call")).await;
    assert_eq!(server.count(rpc("notifications/cancelled")), 0);
}
