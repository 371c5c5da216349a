//! Three processes of the program over a real Redis: what is killed, stopped or paused takes no session with it.

use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio_util::task::TaskTracker;

use crate::binary::Binary;
use crate::client::{Answer as Answered, Client, Stream, request, tool};
use crate::fleet::{Fleet, LEASE};
use crate::http_server::{Answer, Feed, HttpServer, http, message, result, rpc};

/// How soon a caller knows what became of its call when its replica is killed.
const KNOWN: Duration = LEASE.saturating_add(Duration::from_secs(1));

/// A fleet whose replicas stop quickly.
pub(crate) async fn fleet_before(server: &HttpServer) -> Fleet {
    Fleet::start(format!(
        "mcpServers: {{ u1: {{ url: '{}' }} }}\nshutdown: {{ delay: 200ms, drain: 8s, children: 1s }}\n",
        server.url()
    ))
    .await
}

pub(crate) async fn echo(client: &Client, id: i32) -> Value {
    client.call(id, "tools/call", tool("mcp_u1_echo", json!({"n": id}))).await
}

/// How often the server was sent the call with this number.
pub(crate) fn sent(server: &HttpServer, n: i32) -> usize {
    server.count(|seen| seen.is("tools/call") && seen.param("arguments") == Some(format!("{{\"n\":{n}}}")))
}

/// Begins a call that the test answers; returns once it has said something.
pub(crate) async fn begin(server: &HttpServer, client: &Client, id: i32) -> (Feed, Stream) {
    let (feed, answer) = Answer::fed();
    server.once(rpc("tools/call"), answer);
    let note =
        json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": id}});
    let call = request(id, "tools/call", tool("mcp_u1_echo", json!({"n": id})));
    let ((), answer) = tokio::join!(feed.send(message(&note.to_string())), client.post(&call));
    let mut stream = answer.stream();
    assert_eq!(stream.message().await.unwrap()["params"]["data"], id);
    (feed, stream)
}

/// What is left on a stream that is resumed; the answer's status if there is none.
async fn rest(answer: Answered) -> Vec<Value> {
    assert_eq!(answer.status, StatusCode::OK);
    answer.stream().rest().await
}

fn is_unknown(answer: &Value, id: i32) {
    assert_eq!(answer["id"], id, "{answer}");
    let told = &answer["error"]["data"]["mcpgate"];
    assert_eq!(told["reason"], "outcome_unknown", "{answer}");
}

pub(crate) async fn kill(replica: Binary) -> Instant {
    let killed = Instant::now();
    replica.process.signal(Signal::KILL);
    replica.process.ended(Duration::from_secs(5)).await;
    killed
}

/// case-A01: any of three processes serves any session; one owns it, and its server sees one session.
#[tokio::test]
async fn any_process_serves_any_session() {
    let server = HttpServer::start().await;
    let fleet = fleet_before(&server).await;
    let all = fleet.three().await;
    let client = all[0].client("/mcp").initialize("2025-11-25").await;
    for (replica, n) in all.iter().cycle().take(9).zip(1..) {
        let answer = echo(&client.clone().via(replica.address), n).await;
        assert!(answer["result"].is_object(), "{answer}");
    }
    assert_eq!(server.sessions().len(), 1, "one session at the server");
    assert_eq!(all[1].metric("mcpgate_peer_forwards_total").await, 3.0);
    assert_eq!(client.via(all[2].address).delete().await, StatusCode::NO_CONTENT);
    all[0].await_metric("mcpgate_sessions_active", 0.0).await;
}

/// case-D01: the owner is killed in mid-call. Who resumes elsewhere is told soon that the outcome is unknown, the call
/// is sent once, and the session goes on.
#[tokio::test]
async fn a_call_whose_owner_is_killed_is_not_silent() {
    let server = HttpServer::start().await;
    let fleet = fleet_before(&server).await;
    let [a, b, c] = fleet.three().await;
    let client = a.client("/mcp").initialize("2025-11-25").await;
    let (_feed, mut direct) = begin(&server, &client, 1).await;
    let (_feed, mut hopped) = begin(&server, &client.clone().via(c.address), 2).await;
    let killed = kill(a).await;
    // Through a replica that lives the stream ends well, and says when to come back.
    while hopped.event().await.is_some() {}
    while direct.event().await.is_some() {}
    for (stream, replica, id) in [(direct, &b, 1), (hopped, &c, 2)] {
        let there = client.clone().via(replica.address);
        let rest = rest(there.resume(stream.last_id.as_deref().unwrap()).await).await;
        is_unknown(rest.last().unwrap(), id);
        assert_eq!(sent(&server, id), 1, "nothing is sent again");
    }
    assert!(killed.elapsed() < KNOWN, "it took {:?}", killed.elapsed());
    let answer = echo(&client.via(b.address), 3).await;
    assert!(answer["result"].is_object(), "{answer}");
    assert_eq!(server.sessions().len(), 1, "the server's session goes on");
}

/// A response that was logged is found elsewhere, though its owner was killed before its caller took it.
#[tokio::test]
async fn a_logged_response_outlives_its_owner() {
    let server = HttpServer::start().await;
    let fleet = fleet_before(&server).await;
    let [a, b, _c] = fleet.three().await;
    let client = a.client("/mcp").initialize("2025-11-25").await;
    let (feed, stream) = begin(&server, &client, 1).await;
    let last = stream.last_id.clone().unwrap();
    drop(stream);
    feed.send(result(r#"{"content":[],"found":true}"#)).await;
    // Who resumes here sees that it is there, and so in the log.
    let here = rest(client.resume(&last).await).await;
    let killed = kill(a).await;
    let there = rest(client.via(b.address).resume(&last).await).await;
    assert!(killed.elapsed() < KNOWN, "it took {:?}", killed.elapsed());
    assert_eq!(there, here);
    assert_eq!(there.last().unwrap()["result"]["found"], true);
}

/// case-A01: the owner of an idle session with an open GET is killed: its caller goes on elsewhere where it was, and
/// so does the session at the server.
#[tokio::test]
async fn an_idle_session_with_an_open_stream_goes_on_elsewhere() {
    let server = HttpServer::start().await;
    let (first, answer) = Answer::fed();
    server.once(http(Method::GET), answer);
    let (second, answer) = Answer::fed();
    server.on(http(Method::GET), answer);
    let fleet = fleet_before(&server).await;
    let [a, b, _c] = fleet.three().await;
    let client = a.client("/mcp").initialize("2025-11-25").await;
    echo(&client, 1).await;
    let mut stream = client.open_get().await;
    let note = |n: i32| {
        let note = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": n}});
        message(&note.to_string())
    };
    first.send(note(1)).await;
    assert_eq!(stream.message().await.unwrap()["params"]["data"], 1);
    let killed = kill(a).await;
    while stream.event().await.is_some() {}
    let there = client.via(b.address);
    let answer = there.resume(stream.last_id.as_deref().unwrap()).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert!(killed.elapsed() < KNOWN, "it took {:?}", killed.elapsed());
    let mut stream = answer.stream();
    second.send(note(2)).await;
    assert_eq!(stream.message().await.unwrap()["params"]["data"], 2);
    assert!(echo(&there, 2).await["result"].is_object());
    assert_eq!(server.sessions().len(), 1, "one session at the server");
    assert_eq!(server.count(|seen| seen.is("initialize")), 1);
}

/// A replica that is told to stop lets a running call end; its result is found through another one.
#[tokio::test]
async fn the_result_of_a_draining_replica_is_found_through_another() {
    let server = HttpServer::start().await;
    let fleet = fleet_before(&server).await;
    let [a, b, _c] = fleet.three().await;
    let client = a.client("/mcp").initialize("2025-11-25").await;
    let idle = a.client("/mcp").initialize("2025-11-25").await;
    let (feed, stream) = begin(&server, &client, 1).await;
    let last = stream.last_id.clone().unwrap();
    drop(stream);
    a.process.signal(Signal::TERM);
    let there = client.clone().via(b.address);
    let resumed = there.resume(&last).await;
    // The idle session was let go, and is taken up where its caller comes next.
    a.await_metric("mcpgate_drain_sessions_total", 1.0).await;
    assert!(echo(&idle.via(b.address), 2).await["result"].is_object());
    assert_eq!(resumed.status, StatusCode::OK);
    feed.send(result(r#"{"content":[],"found":true}"#)).await;
    let mut all = rest(resumed).await;
    if all.last().is_none_or(|last| last["id"] != 1) {
        all = rest(there.resume(&last).await).await;
    }
    assert_eq!(all.last().unwrap()["result"]["found"], true, "{all:?}");
    let (status, said) = a.process.ended(Duration::from_secs(8)).await;
    assert_eq!(status.code(), Some(0), "{said}");
    assert!(echo(&there, 3).await["result"].is_object());
    assert_eq!(server.count(|seen| seen.method == Method::DELETE), 0, "no session of the server is ended");
    assert_eq!((sent(&server, 1), server.sessions().len()), (1, 2));
}

/// case-D01: an owner that is paused for longer than its lease finds its session another's when it goes on; nothing
/// is sent twice.
#[tokio::test]
async fn a_paused_owner_is_fenced() {
    let server = HttpServer::start().await;
    let fleet = fleet_before(&server).await;
    let [a, b, _c] = fleet.three().await;
    let client = a.client("/mcp").initialize("2025-11-25").await;
    echo(&client, 1).await;
    a.process.signal(Signal::STOP);
    let paused = Instant::now();
    // It lies in the socket of the paused replica until that goes on.
    let late = TaskTracker::new().spawn({
        let client = client.clone();
        async move {
            let answer = client.post(&request(2, "tools/call", tool("mcp_u1_echo", json!({"n": 2})))).await;
            (answer.status, answer.text().await)
        }
    });
    let there = client.clone().via(b.address);
    // What went to it before anyone could know is unknown, and never runs. What comes later waits for its lease to end.
    let mut n = 100;
    loop {
        let answer = echo(&there, n).await;
        if answer["result"].is_object() {
            break;
        }
        assert!(n == 100 && answer["error"]["data"]["mcpgate"]["reason"] == "outcome_unknown", "{answer}");
        n += 1;
    }
    assert!(paused.elapsed() < KNOWN + LEASE, "it took {:?}", paused.elapsed());
    a.process.signal(Signal::CONT);
    a.await_metric("mcpgate_sessions_active", 0.0).await;
    let (status, said) = late.await.unwrap();
    let ran = said.contains(r#""result""#);
    assert!(ran || status == StatusCode::SERVICE_UNAVAILABLE, "{status}: {said}");
    assert_eq!(sent(&server, 2), usize::from(ran), "{said}");
    assert!(echo(&there, 4).await["result"].is_object(), "the adopter goes on");
    assert!(echo(&client, 5).await["result"].is_object(), "and is found through the one that was paused");
    assert_eq!([n, 4, 5].map(|n| sent(&server, n)), [1, 1, 1]);
    for unknown in 100..n {
        assert_eq!(
            sent(&server, unknown),
            0,
            "call {unknown} came to a replica that was fenced when it went on"
        );
    }
    assert_eq!(b.metric("mcpgate_sessions_active").await, 1.0);
    assert_eq!(server.sessions().len(), 1, "one session at the server");
}

/// case-D01: before 2025-11-25 a stream has no event id until its first message, so nobody could come back to this one:
/// it ends with what became of the call.
#[tokio::test]
async fn a_call_nobody_can_come_back_to_is_told_unknown() {
    let server = HttpServer::start().await;
    let fleet = fleet_before(&server).await;
    let [a, b, _c] = fleet.three().await;
    let client = a.client("/mcp").initialize("2025-06-18").await;
    let (_feed, answer) = Answer::fed();
    server.once(rpc("tools/call"), answer);
    let call = request(7, "tools/call", tool("mcp_u1_echo", json!({"n": 7})));
    // It is a stream once the grace is over.
    let stream = client.via(b.address).post(&call).await.stream();
    kill(a).await;
    let rest = stream.rest().await;
    assert_eq!(rest.len(), 1, "{rest:?}");
    is_unknown(&rest[0], 7);
    assert_eq!(sent(&server, 7), 1);
}
