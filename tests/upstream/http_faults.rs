//! Servers that misbehave: each call ends at once with a reason, nothing runs twice, and the link goes on.

use std::time::{Duration, Instant};

use http::Method;
use mcpgate::protocol::error::Layer;
use mcpgate::upstream::{Delivery, Failure};

use crate::http_server::{
    Answer, Gate, HttpServer, Step, break_off, event, hold, http, members, message, primed, raw, reset,
    result, rpc,
};
use crate::http_support::{Ear, Plan, Rig};

/// What a call comes to that is answered so.
async fn failure_of(answer: Answer) -> Failure {
    let server = HttpServer::start().await;
    server.once(rpc("tools/call"), answer);
    let rig = Rig::open(server.url()).await;
    let failure = rig.call("tools/call").await.unwrap_err();
    assert_eq!((failure.server.as_str(), failure.layer), ("scripted", Layer::Transport), "{failure:?}");
    assert_eq!(server.count(rpc("tools/call")), 1, "a call that may have run is not sent again: {failure}");
    assert!(!rig.link.is_down(), "{failure}");
    rig.call("tools/call").await.expect("the link goes on");
    failure
}

/// case-H13: a call that broke after it was sent has an unknown outcome and ran once.
#[tokio::test]
async fn never_sends_a_call_again_that_may_have_run() {
    let whole = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    for answer in [
        Answer::reset(),
        Answer::hang_up(),
        Answer::json(whole).cut(10),
        Answer::events([]),
        Answer::events([break_off()]),
        Answer::events([reset()]),
        Answer::events([message(r#"{"jsonrpc":"2.0","method":"x"}"#), reset()]),
        Answer::bare("HTTP/1.1 200 OK\r\ncontent-len"),
        Answer::bare("no HTTP at all\r\n\r\n"),
    ] {
        let failure = failure_of(answer).await;
        assert_eq!((failure.reason, failure.delivery), ("outcome_unknown", Delivery::Unknown));
    }
}

/// case-H13: a call that could not leave may be sent again.
#[tokio::test]
async fn says_when_a_call_was_surely_not_delivered() {
    let server = HttpServer::start().await;
    let rig = Rig::open(server.url()).await;
    server.on(http(Method::GET), Answer::status(405));
    rig.call("ping").await.unwrap();
    drop(server);
    // The first may meet the connection that ends; then nobody listens any more.
    let _ = rig.call("tools/call").await;
    let failure = rig.call("tools/call").await.unwrap_err();
    assert_eq!((failure.reason, failure.delivery), ("unreachable", Delivery::NotDelivered));
    assert!(failure.message.contains("refused"), "{failure}");
    assert!(!rig.link.is_down(), "it connects anew when the server is back");
}

/// Bad answers have one reason, come at once, and say what was wrong.
#[tokio::test]
async fn names_what_is_wrong_with_an_answer() {
    for (answer, what) in [
        (Answer::status(200), "empty"),
        (Answer::json(""), "empty"),
        (Answer::status(202), "HTTP 202"),
        (Answer::status(204), "HTTP 204"),
        (Answer::body("text/html; charset=utf-8", "<html>"), "neither JSON"),
        (Answer::json("{"), "not valid JSON"),
        (Answer::json("<html>"), "not valid JSON"),
        (Answer::json("null"), "another shape"),
        (Answer::json("[]"), "another shape"),
        (Answer::json(r#"{"result":{}}"#), "another shape"),
        (Answer::json(r#"{"jsonrpc":"2.0","id":99,"result":{}}"#), "not the response"),
        (Answer::json(r#"{"jsonrpc":"2.0","id":null,"result":{}}"#), "another shape"),
        (Answer::json(r#"{"jsonrpc":"2.0","method":"x"}"#), "not the response"),
        (Answer::events([message("{")]), "not valid JSON"),
        (Answer::members(r#""error":"boom""#), "another shape"),
        (Answer::members(r#""error":{"code":"1","message":"x"}"#), "another shape"),
    ] {
        let failure = failure_of(answer).await;
        assert_eq!(failure.reason, "bad_answer");
        assert!(failure.message.contains(what), "{what}: {failure}");
        assert!(!failure.message.contains("http:"), "{failure}");
    }
}

/// case-I07: a stream that stays open behind a spoilt answer is not waited for.
#[tokio::test]
async fn a_spoilt_answer_on_a_stream_fails_its_call_at_once() {
    for spoilt in [r#""error":"boom""#, r#""error":{"code":-1}"#, r#""result":{},"error":null"#] {
        let failure = failure_of(Answer::events([members(spoilt), hold()])).await;
        assert_eq!((failure.reason, failure.delivery), ("bad_answer", Delivery::Unknown), "{spoilt}");
    }
}

/// A byte order mark before an answer does not hide it.
#[tokio::test]
async fn a_byte_order_mark_is_passed_over() {
    let server = HttpServer::start().await;
    server.on_each(rpc("tools/call"), |seen| {
        let id = seen.id.as_deref().unwrap();
        Answer::json(format!("\u{feff}{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}"))
    });
    assert_eq!(Rig::open(server.url()).await.call("tools/call").await.unwrap().result(), Some("{}"));
}

/// case-I07: deep JSON fails its call at once, legal depth passes.
#[tokio::test]
async fn fails_a_call_whose_answer_is_nested_too_deep() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let deep = nested(100_000);
    assert!(failure_of(Answer::result(&deep)).await.message.contains("nested too deep"));
    assert!(failure_of(Answer::events([result(&deep)])).await.message.contains("nested too deep"));
    let server = HttpServer::start().await;
    let fine = nested(200);
    server.on(rpc("tools/call"), Answer::result(&fine));
    assert_eq!(Rig::open(server.url()).await.call("tools/call").await.unwrap().result(), Some(fine.as_str()));
}

#[tokio::test]
async fn holds_a_server_to_its_message_limit() {
    let big = format!("\"{}\"", "x".repeat(1 << 20));
    for answer in [
        Answer::result(&big),
        Answer::events([result(&big)]),
        // An event without end.
        Answer::events(vec![raw(vec![b'x'; 64 << 10]); 40]),
    ] {
        assert_eq!(failure_of(answer).await.reason, "message_too_large");
    }
    let fits = format!("\"{}\"", "x".repeat((1 << 20) - 100));
    for answer in [Answer::result(&fits), Answer::events([result(&fits)])] {
        let server = HttpServer::start().await;
        server.on(rpc("tools/call"), answer);
        assert!(Rig::open(server.url()).await.call("tools/call").await.is_ok());
    }
}

/// T11: an error of JSON-RPC is the answer, whatever status it came with.
#[tokio::test]
async fn takes_an_error_from_any_status() {
    for status in [200, 400, 403, 422, 500, 503] {
        let server = HttpServer::start().await;
        server.on(rpc("tools/call"), Answer::error(-32602, "Unknown tool").with_status(status));
        let response = Rig::open(server.url()).await.call("tools/call").await.unwrap();
        assert_eq!(response.error(), Some(r#"{"code":-32602,"message":"Unknown tool"}"#), "{status}");
    }
    let server = HttpServer::start().await;
    let nameless = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request"}}"#;
    server.on(rpc("tools/call"), Answer::json(nameless).with_status(400));
    assert!(Rig::open(server.url()).await.call("tools/call").await.unwrap().error().is_some());
}

/// A server's 401 is about the gateway's credentials, and says so.
#[tokio::test]
async fn tells_a_refused_credential_from_other_statuses() {
    let nameless = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Unauthorized"}}"#;
    for answer in [
        Answer::status(401).header("www-authenticate", "Bearer resource_metadata=\"https://other/\""),
        Answer::status(403),
        Answer::json(nameless).with_status(401),
    ] {
        let failure = failure_of(answer).await;
        assert_eq!(failure.reason, "upstream_unauthorized");
        assert!(failure.message.contains("`headers`"), "{failure}");
    }
    for status in [400, 406, 429, 500, 502, 503] {
        let failure =
            failure_of(Answer::body("text/html", "<h1>secret stack</h1>").with_status(status)).await;
        assert_eq!(failure.reason, "http_status");
        assert!(
            failure.message.contains(&status.to_string()) && !failure.message.contains("stack"),
            "{failure}"
        );
    }
}

/// case-H03: ids in another spelling are the same number; others are nobody's, and end the call with the stream.
#[tokio::test]
async fn reads_ids_by_their_number() {
    let server = HttpServer::start().await;
    for (spelling, found) in
        [("\"N\"", true), ("N.0", true), ("Ne0", true), ("N.5", false), ("\"\"", false), ("{}", false)]
    {
        for form in ["json", "events"] {
            server.on_each(rpc("tools/call"), move |seen| {
                let id = spelling.replace('N', seen.id.as_deref().unwrap());
                let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
                if form == "json" { Answer::json(text) } else { Answer::events([message(&text)]) }
            });
            let answer = Rig::open(server.url()).await.call("tools/call").await;
            assert_eq!(answer.is_ok(), found, "{spelling} as {form}: {answer:?}");
        }
    }
}

/// case-D09: a redirect on the same origin keeps method, body and headers.
#[tokio::test]
async fn follows_a_redirect_on_the_same_origin() {
    let server = HttpServer::start().await;
    server.on(|seen| seen.path == "/mcp", Answer::redirect(307, "/mcp/"));
    server.on(|seen| seen.path == "/mcp/", Answer::redirect(308, "there?x=1"));
    let plan = Plan::new(server.url()).header("authorization", "Bearer canary");
    let rig = plan.open().await.unwrap();
    rig.call("tools/call").await.unwrap();
    let seen = server.await_request(|seen| seen.is("tools/call") && seen.path == "/mcp/there?x=1").await;
    assert_eq!(seen.method, Method::POST);
    assert_eq!(seen.header("authorization"), Some("Bearer canary"));
    assert!(seen.header("mcp-session-id").is_some());
}

/// case-D09: no other origin is ever spoken to, and no circle is run round for long.
#[tokio::test]
async fn refuses_other_redirects() {
    let other = HttpServer::start().await;
    for (answer, hops) in [
        (Answer::redirect(307, other.url().as_str()), 1),
        (Answer::redirect(308, &format!("//{}/", other.url().authority())), 1),
        (Answer::redirect(302, "/mcp/"), 1),
        (Answer::status(307), 1),
        (Answer::redirect(307, "/mcp"), 4),
    ] {
        let server = HttpServer::start().await;
        let rig = Plan::new(server.url()).header("authorization", "Bearer canary").open().await.unwrap();
        server.on(rpc("tools/call"), answer);
        let failure = rig.call("tools/call").await.unwrap_err();
        assert_eq!(failure.reason, "redirected");
        assert!(!failure.message.contains("127.0.0.1"), "{failure}");
        assert_eq!(server.count(rpc("tools/call")), hops);
    }
    assert!(other.requests().is_empty(), "{:?}", other.requests());
}

/// case-I13: an answer cut at any byte ends the call, never hangs it, and the link goes on.
#[tokio::test]
async fn survives_an_answer_cut_at_every_byte() {
    let server = HttpServer::start().await;
    let rig = Rig::open(server.url()).await;
    let body = "id: 1\r\ndata: {\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}\r\n\r\n";
    let whole = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    for at in 0..=whole.len() {
        server.once(rpc("tools/call"), Answer::bare(whole.as_bytes()[..at].to_vec()));
        let failure = rig.call("tools/call").await.expect_err("the id is not ours");
        assert_eq!(failure.delivery, Delivery::Unknown, "cut at {at}: {failure}");
    }
    rig.call("tools/call").await.unwrap();
}

/// case-I13: events that make no sense do not end the stream they are on.
#[tokio::test]
async fn passes_over_events_that_are_no_messages() {
    let server = HttpServer::start().await;
    let odd: Vec<Step> = [
        raw(": comment\n\n"),
        raw("event: endpoint\ndata: /messages\n\n"),
        raw("nonsense\n\n"),
        message("{}"),
        message("[[],[]]"),
        message(r#"{"jsonrpc":"1.0","id":1,"result":{}}"#),
        message(r#"{"jsonrpc":"2.0","id":12345,"result":{}}"#),
        event("1", r#"{"jsonrpc":"2.0","method":"x"}"#),
        primed("2"),
        result("{}"),
    ]
    .into();
    server.on(rpc("tools/call"), Answer::events(odd));
    let ear = Ear::default().into();
    Rig::open(server.url()).await.call_heard("tools/call", &ear).await.unwrap();
    assert_eq!(ear.notifications().len(), 1);
}

/// A server that floods a link with questions is not answered without bound, and the call still ends.
#[tokio::test]
async fn bounds_the_answers_on_their_way() {
    let server = HttpServer::start().await;
    let gate = Gate::new();
    server.on(|seen| seen.rpc.is_none() && seen.method == Method::POST, Answer::status(202).after(&gate));
    let pings = (0..500).map(|n| message(&format!(r#"{{"jsonrpc":"2.0","id":{n},"method":"ping"}}"#)));
    server.on(rpc("tools/call"), Answer::events(pings.chain([result("{}")])));
    let rig = Rig::open(server.url()).await;
    rig.call("tools/call").await.unwrap();
    let replies = server.await_requests(64, |seen| seen.rpc.is_none() && seen.method == Method::POST).await;
    assert_eq!(replies.len(), 64);
    gate.open();
}

/// The time a fault takes is the server's own.
#[tokio::test]
async fn fails_at_once() {
    let begun = Instant::now();
    failure_of(Answer::json("{")).await;
    assert!(begun.elapsed() < Duration::from_secs(5));
}

/// C09: what goes wrong at the start is told apart.
#[tokio::test]
async fn says_why_a_session_could_not_be_begun() {
    let introduced =
        |version: &str| Answer::result(&format!(r#"{{"protocolVersion":"{version}","capabilities":{{}}}}"#));
    for (answer, layer, reason) in [
        (Answer::error(-32602, "Unsupported"), Layer::Handshake, "initialize_refused"),
        (Answer::error(-32602, "Unsupported").with_status(400), Layer::Handshake, "initialize_refused"),
        (introduced("1999-01-01"), Layer::Handshake, "unsupported_revision"),
        (introduced("2026-07-28"), Layer::Handshake, "unsupported_revision"),
        (Answer::result("[]"), Layer::Handshake, "bad_introduction"),
        (Answer::status(404), Layer::Transport, "http_status"),
        (Answer::status(405), Layer::Transport, "http_status"),
        (Answer::status(401), Layer::Transport, "upstream_unauthorized"),
        (Answer::body("text/html", "<html>"), Layer::Transport, "bad_answer"),
        (Answer::reset(), Layer::Handshake, "connection_broken"),
    ] {
        let server = HttpServer::sessionless().await;
        server.on(rpc("initialize"), answer);
        let failure = Plan::new(server.url()).open().await.err().unwrap();
        assert_eq!((failure.layer, failure.reason), (layer, reason), "{failure}");
        assert_eq!(failure.delivery, Delivery::NotDelivered, "no call was in it: {failure}");
    }
    let server = HttpServer::start().await;
    let mut tls = server.url();
    tls.set_scheme("https").unwrap();
    let failure = Plan::new(tls).open().await.err().unwrap();
    assert_eq!((failure.layer, failure.reason), (Layer::Transport, "unreachable"));
    assert!(failure.message.contains("TLS"), "{failure}");
    let failure = Plan::new("http://127.0.0.1:1/mcp".parse().unwrap()).open().await.err().unwrap();
    assert_eq!((failure.layer, failure.reason), (Layer::Transport, "unreachable"));
    let failure =
        Plan::new("http://127.0.0.1:1/mcp".parse().unwrap()).header("x", "a\nb").open().await.err().unwrap();
    assert_eq!(failure.reason, "bad_settings");
    assert!(!failure.message.contains('\n'), "{failure}");
}

/// A session that was begun in vain is ended.
#[tokio::test]
async fn ends_a_session_whose_handshake_failed() {
    let server = HttpServer::start().await;
    server.on(rpc("notifications/initialized"), Answer::status(500));
    let failure = Plan::new(server.url()).open().await.err().unwrap();
    assert_eq!((failure.layer, failure.reason), (Layer::Handshake, "initialized_refused"));
    server.await_request(http(Method::DELETE)).await;

    let server = HttpServer::start().await;
    server.on(rpc("notifications/initialized"), Answer::status(202).after(&Gate::new()));
    let mut plan = Plan::new(server.url());
    plan.settings.timeouts.start = Duration::from_millis(200);
    let failure = plan.open().await.err().unwrap();
    assert_eq!((failure.layer, failure.reason), (Layer::Handshake, "start_timeout"));
    server.await_request(http(Method::DELETE)).await;
}
