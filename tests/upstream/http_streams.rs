//! Streams that break or end early, and the standalone stream.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Method;
use mcpgate::upstream::{Delivery, Farewell};

use crate::http_server::{
    Answer, Gate, HttpServer, Seen, Step, break_off, event, hold, hold_until, http, message, pause, primed,
    raw, reset, result, retry, rpc,
};
use crate::http_support::{Ear, Heard, Plan, Rig};

fn note(n: u32) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"n":{n}}}}}"#)
}

fn resumes(seen: &Seen) -> bool {
    seen.header("last-event-id").is_some()
}

fn polls(ear: &Ear) -> Vec<Option<Duration>> {
    ear.all(|heard| match heard {
        Heard::Polled(retry) => Some(*retry),
        _ => None,
    })
}

/// A server whose `tools/call` streams `first`, and whose resumed streams send `rest`, each with the call's id.
fn script(server: &HttpServer, first: Vec<Step>, rest: impl Fn(&str, usize) -> Answer + Send + 'static) {
    let id = Arc::new(Mutex::new(String::new()));
    let known = Arc::clone(&id);
    let turn = AtomicUsize::new(0);
    server.on_each(rpc("tools/call"), move |seen| {
        *id.lock().unwrap() = seen.id.clone().unwrap();
        Answer::events(first.clone())
    });
    server.on_each(resumes, move |_| rest(&known.lock().unwrap(), turn.fetch_add(1, Ordering::SeqCst)));
}

fn response(id: &str) -> Step {
    event("9", &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"done":true}}}}"#))
}

/// T28, X46: a stream that breaks after an id is resumed there; what came before does not come again.
#[tokio::test]
async fn resumes_a_broken_stream_behind_its_last_event() {
    for end in [break_off(), reset()] {
        let server = HttpServer::start().await;
        script(&server, vec![primed("0"), event("1", &note(1)), event("2", &note(2)), end], |id, _| {
            // A server that repeats what was seen is put up with.
            Answer::events([event("2", &note(2)), event("3", &note(3)), response(id)])
        });
        let rig = Rig::open(server.url()).await;
        let ear = Ear::default().into();
        assert_eq!(rig.call_heard("tools/call", &ear).await.unwrap().result(), Some(r#"{"done":true}"#));
        assert_eq!(ear.notifications(), [note(1), note(2), note(3)]);
        let resume = server.await_request(resumes).await;
        assert_eq!((&resume.method, resume.header("last-event-id")), (&Method::GET, Some("2")));
        assert!(resume.header("mcp-session-id").is_some());
        assert_eq!(server.count(rpc("tools/call")), 1);
        assert_eq!(polls(&ear), [], "a break is no wish to be polled");
    }
}

/// T20, T22: a server that ends its stream on purpose is asked again after the time it named, and the caller told.
#[tokio::test]
async fn polls_a_server_that_asks_for_it() {
    let server = HttpServer::start().await;
    script(&server, vec![primed("0"), retry(60)], |id, turn| match turn {
        0 | 1 => Answer::events([]),
        2 => Answer::events([event("5", &note(5))]),
        _ => Answer::events([response(id)]),
    });
    let rig = Rig::open(server.url()).await;
    let ear = Ear::default().into();
    rig.call_heard("tools/call", &ear).await.unwrap();
    assert_eq!(polls(&ear), vec![Some(Duration::from_millis(60)); 4]);
    let gets = server.await_requests(4, resumes).await;
    let call = server.await_request(rpc("tools/call")).await;
    let cursors: Vec<_> = gets.iter().map(|get| get.header("last-event-id").unwrap()).collect();
    assert_eq!(cursors, ["0", "0", "0", "5"]);
    assert!(gets[0].at - call.at >= Duration::from_millis(60));
    assert!(gets.windows(2).all(|pair| pair[1].at - pair[0].at >= Duration::from_millis(60)));
}

/// A server that asks for no wait at all is not asked in a tight loop.
#[tokio::test]
async fn slows_down_when_polling_brings_nothing() {
    let server = HttpServer::start().await;
    script(&server, vec![primed("0"), retry(0)], |id, turn| {
        if turn < 4 { Answer::events([]) } else { Answer::events([response(id)]) }
    });
    let mut plan = Plan::new(server.url());
    plan.pace.first = Duration::from_millis(100);
    plan.pace.most = Duration::from_millis(100);
    plan.open().await.unwrap().call("tools/call").await.unwrap();
    let gets = server.await_requests(5, resumes).await;
    assert!(gets[4].at - gets[3].at >= Duration::from_millis(100));
}

/// case-H13: a stream that ended without an id cannot be resumed: the outcome is unknown.
#[tokio::test]
async fn does_not_resume_without_an_id() {
    let server = HttpServer::start().await;
    for steps in
        [vec![message(&note(1))], vec![retry(5)], vec![primed("1"), raw("id\ndata: \n\n"), break_off()]]
    {
        server.on(rpc("tools/call"), Answer::events(steps));
        let rig = Rig::open(server.url()).await;
        let failure = rig.call("tools/call").await.unwrap_err();
        assert_eq!((failure.reason, failure.delivery), ("outcome_unknown", Delivery::Unknown));
    }
    assert_eq!(server.count(resumes), 0);
}

/// A server that cannot resume says so once; one that fails is asked a bounded number of times.
#[tokio::test]
async fn gives_up_resuming() {
    for (answer, asked) in [
        (Answer::status(405), 1),
        (Answer::status(404), 1),
        (Answer::status(400), 1),
        (Answer::status(204), 1),
        (Answer::json("{}"), 1),
        (Answer::status(503), 5),
        (Answer::status(409), 5),
        (Answer::hang_up(), 5),
    ] {
        let server = HttpServer::start().await;
        script(&server, vec![primed("1"), break_off()], move |_, _| answer.clone());
        let rig = Rig::open(server.url()).await;
        let failure = rig.call("tools/call").await.unwrap_err();
        assert_eq!((failure.reason, failure.delivery), ("outcome_unknown", Delivery::Unknown));
        assert_eq!(server.count(resumes), asked);
        assert_eq!(server.count(rpc("initialize")), 1, "what ran in a lost session is not run again");
    }
}

/// A server that was away for a moment is found again.
#[tokio::test]
async fn resumes_after_failures() {
    let server = HttpServer::start().await;
    script(&server, vec![primed("1"), break_off()], |id, turn| match turn {
        0 => Answer::status(409),
        1 => Answer::status(502),
        2 => Answer::reset(),
        _ => Answer::events([response(id)]),
    });
    Rig::open(server.url()).await.call("tools/call").await.unwrap();
}

/// case-D03: a server without a standalone stream is asked for it once.
#[tokio::test]
async fn asks_once_where_no_standalone_stream_is_offered() {
    for answer in [Answer::status(405), Answer::status(404), Answer::status(501), Answer::json("{}")] {
        let server = HttpServer::start().await;
        server.on(http(Method::GET), answer);
        let rig = Rig::open(server.url()).await;
        server.await_request(http(Method::GET)).await;
        for _ in 0..30 {
            rig.call("tools/call").await.unwrap();
        }
        assert_eq!(server.count(http(Method::GET)), 1);
        assert_eq!(server.count(rpc("initialize")), 1);
    }
}

/// A server that had the stream and refuses it for a while is asked until it has it again: in one session, and over
/// a lost one.
#[tokio::test]
async fn asks_again_where_a_standalone_stream_was_offered() {
    for answer in [Answer::status(405), Answer::status(404), Answer::status(501), Answer::json("{}")] {
        let server = HttpServer::start().await;
        server.once(http(Method::GET), Answer::events([message(&note(1))]));
        for _ in 0..3 {
            server.once(http(Method::GET), answer.clone());
        }
        let (feed, healed) = Answer::fed();
        server.on(http(Method::GET), healed);
        let rig = Rig::open(server.url()).await;
        rig.ear.notification("\"n\":1").await;
        feed.send(message(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#)).await;
        rig.ear.notification("list_changed").await;
    }
}

/// T25: what comes on the standalone stream goes to the link's listener, and its questions can be answered.
#[tokio::test]
async fn hears_the_standalone_stream() {
    let server = HttpServer::start().await;
    let (feed, answer) = Answer::fed();
    server.on(http(Method::GET), answer);
    let rig = Rig::open(server.url()).await;
    feed.send(message(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#)).await;
    rig.ear.notification("list_changed").await;
    feed.send(message(r#"{"jsonrpc":"2.0","id":"q","method":"roots/list"}"#)).await;
    rig.ear.asked("roots/list").await.refuse(-32601, "no roots");
    server.await_request(|seen| seen.text().contains("no roots")).await;
    // Neither nonsense nor a message over the limit ends the listening.
    feed.send(message("{")).await;
    feed.send(message(&note(1))).await;
    rig.ear.notification("\"n\":1").await;
    feed.send(message(&"x".repeat(2 << 20))).await;
    server.await_requests(2, http(Method::GET)).await;
}

/// B02: a stream that says nothing is kept.
#[tokio::test]
async fn keeps_a_silent_standalone_stream() {
    let server = HttpServer::start().await;
    let gate = Gate::new();
    server.on(http(Method::GET), Answer::events([hold_until(&gate), message(&note(1)), hold()]));
    let rig = Rig::open(server.url()).await;
    for _ in 0..20 {
        rig.call("tools/call").await.unwrap();
    }
    gate.open();
    rig.ear.notification("\"n\":1").await;
    assert_eq!(server.count(http(Method::GET)), 1);
}

/// T28: the standalone stream goes on where it broke, after refusals too.
#[tokio::test]
async fn resumes_the_standalone_stream() {
    let server = HttpServer::start().await;
    let get = || http(Method::GET);
    server.once(get(), Answer::status(409));
    server.once(get(), Answer::reset());
    server.once(get(), Answer::events([event("a", &note(1)), break_off()]));
    server.once(get(), Answer::status(500));
    server.once(get(), Answer::events([event("a", &note(1)), event("b", &note(2)), retry(5)]));
    server.on(get(), Answer::events([event("c", &note(3)), hold()]));
    let rig = Rig::open(server.url()).await;
    rig.ear.notification("\"n\":3").await;
    assert_eq!(rig.ear.notifications(), [note(1), note(2), note(3)]);
    let cursors: Vec<_> = server.requests().into_iter().filter(|seen| seen.method == Method::GET).collect();
    let cursors: Vec<_> = cursors.iter().map(|seen| seen.header("last-event-id")).collect();
    assert_eq!(cursors, [None, None, None, Some("a"), Some("a"), Some("b")]);
}

/// case-D03: a standalone stream that ends at once is asked for ever more slowly.
#[tokio::test]
async fn slows_down_when_the_standalone_stream_ends_at_once() {
    let server = HttpServer::start().await;
    server.on(http(Method::GET), Answer::events([retry(0)]));
    let mut plan = Plan::new(server.url());
    plan.pace.first = Duration::from_millis(40);
    plan.pace.most = Duration::from_secs(60);
    let rig = plan.open().await.unwrap();
    let gets = server.await_requests(4, http(Method::GET)).await;
    for (pair, least) in gets.windows(2).zip([32, 64, 128]) {
        assert!(pair[1].at - pair[0].at >= Duration::from_millis(least), "{least}");
    }
    rig.link.close(Farewell::End).await;
}

/// A session that was lost while nothing was called is noticed by its standalone stream.
#[tokio::test]
async fn notices_a_lost_session_by_the_standalone_stream() {
    let server = HttpServer::start().await;
    server.once(http(Method::GET), Answer::events([event("a", &note(1)), break_off()]));
    server.once(http(Method::GET), Answer::status(404));
    server.on(http(Method::GET), Answer::events([event("b", &note(2)), hold()]));
    let rig = Rig::open(server.url()).await;
    rig.ear.notification("\"n\":2").await;
    assert_eq!(server.count(rpc("initialize")), 2);
    rig.ear.await_heard(|heard| matches!(heard, Heard::Renewed).then_some(())).await;
}

/// A stream that answered leaves its connection for the next call.
#[tokio::test]
async fn uses_the_connection_of_an_answered_stream_again() {
    let server = HttpServer::start().await;
    let end_later = pause(Duration::from_millis(1));
    server.on(rpc("tools/call"), Answer::events([primed("1"), result("{}"), end_later]));
    let rig = Rig::open(server.url()).await;
    server.await_request(http(Method::GET)).await;
    for _ in 0..20 {
        rig.call("tools/call").await.unwrap();
        rig.call("tools/list").await.unwrap();
    }
    let connections: HashSet<usize> = server.requests().iter().map(|seen| seen.connection).collect();
    assert!(connections.len() < 10, "{} connections for 40 calls", connections.len());
}

/// Words for people on a stream are no message, as they are none on a child's stdout: the answer behind them counts.
#[tokio::test]
async fn what_is_no_json_on_a_stream_is_passed_over() {
    let server = HttpServer::start().await;
    let greeting = [raw("data: hello\n\n"), raw("data: 42 of them\n\n")];
    let steps = greeting.into_iter().chain([result(r#"{"done":true}"#)]);
    server.on(rpc("tools/call"), Answer::events(steps.collect::<Vec<_>>()));
    let rig = Rig::open(server.url()).await;
    let ear = Ear::default().into();
    assert_eq!(rig.call_heard("tools/call", &ear).await.unwrap().result(), Some(r#"{"done":true}"#));
}
