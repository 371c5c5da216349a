//! An owner that stands still behind connections that live: who waits for it through another replica is told in time.

use std::time::{Duration, Instant};

use http::StatusCode;
use rustix::process::Signal;
use serde_json::json;

use crate::binary::Binary;
use crate::client::{request, tool};
use crate::fleet::LEASE;
use crate::http_server::HttpServer;
use crate::processes::{echo, fleet_before, sent};

/// How soon that is: the lease and a second, and what a busy machine takes.
const TOLD: Duration = LEASE.saturating_add(Duration::from_millis(1500));

/// Two replicas, of which the second has connections to the first, and a caller of a session of the first.
async fn paused(server: &HttpServer) -> (Binary, Binary, crate::client::Client, crate::fleet::Fleet) {
    let fleet = fleet_before(server).await;
    let (a, b) = tokio::join!(fleet.replica(), fleet.replica());
    let client = a.client("/mcp").initialize("2025-11-25").await;
    let there = client.via(b.address);
    assert!(echo(&there, 1).await["result"].is_object());
    (a, b, there, fleet)
}

/// case-D01: a call that was sent to it may have run: it ends as `outcome_unknown`, and the session goes on elsewhere.
#[tokio::test]
async fn a_call_to_a_paused_owner_has_an_unknown_outcome_in_time() {
    let server = HttpServer::start().await;
    let (a, b, there, _fleet) = paused(&server).await;
    a.process.signal(Signal::STOP);
    let began = Instant::now();
    let answer = echo(&there, 2).await;
    assert!(began.elapsed() < TOLD, "it took {:?}", began.elapsed());
    assert_eq!(answer["error"]["data"]["mcpgate"]["reason"], "outcome_unknown", "{answer}");
    assert_eq!(answer["id"], 2);
    // The next one is not sent there any more.
    let began = Instant::now();
    assert!(echo(&there, 3).await["result"].is_object());
    assert!(began.elapsed() < Duration::from_secs(1), "it took {:?}", began.elapsed());
    a.process.signal(Signal::CONT);
    a.await_metric("mcpgate_sessions_active", 0.0).await;
    assert!(sent(&server, 2) <= 1, "nothing is sent twice");
    assert_eq!(b.metric("mcpgate_sessions_active").await, 1.0);
}

/// An open stream ends so that its caller comes back, and one that is asked for is opened at the adopter.
#[tokio::test]
async fn streams_of_a_paused_owner_go_on_in_time() {
    let server = HttpServer::start().await;
    let (a, b, there, _fleet) = paused(&server).await;
    let mut open = there.open_get().await;
    a.process.signal(Signal::STOP);
    let began = Instant::now();
    let asked = async {
        let mut again = there.send(http::Method::GET, "").await;
        // It may be told to come back; nothing else is said of it.
        while again.status == StatusCode::SERVICE_UNAVAILABLE && began.elapsed() < TOLD {
            assert!(again.header("retry-after").is_some());
            tokio::time::sleep(Duration::from_millis(50)).await;
            again = there.send(http::Method::GET, "").await;
        }
        (again.status, began.elapsed())
    };
    let ended = async {
        let mut retried = false;
        while let Some(event) = open.event().await {
            retried |= event.retry.is_some();
        }
        (retried, began.elapsed())
    };
    let ((status, opened), (retried, ended)) = tokio::join!(asked, ended);
    assert_eq!(status, StatusCode::OK);
    assert!(retried, "it says when to come back");
    assert!(opened < TOLD && ended < TOLD, "{opened:?}, {ended:?}");
    assert_eq!(b.metric("mcpgate_sessions_active").await, 1.0);
    a.process.signal(Signal::CONT);
}

/// An owner that lives and takes long over a call is waited for, as long as that takes.
#[tokio::test]
async fn a_slow_call_at_a_live_owner_is_waited_for() {
    let server = HttpServer::start().await;
    let (_a, _b, there, _fleet) = paused(&server).await;
    let (feed, answer) = crate::http_server::Answer::fed();
    server.once(crate::http_server::rpc("tools/call"), answer);
    let call = request(4, "tools/call", tool("mcp_u1_echo", json!({"n": 4})));
    let slow = async {
        tokio::time::sleep(LEASE * 3).await;
        feed.send(crate::http_server::result(r#"{"content":[],"late":true}"#)).await;
    };
    let (answer, ()) = tokio::join!(there.post(&call), slow);
    let last = answer.stream().rest().await.pop().unwrap();
    assert_eq!(last["result"]["late"], true, "{last}");
}
