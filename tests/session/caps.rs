//! How many sessions there may be, for all and for each.

use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use serde_json::json;

use crate::client::{Client, init, request, tool};
use crate::credentials::api_key;
use crate::gateway::{Setup, TestGateway};
use crate::http_server::{Answer, Gate, HttpServer, rpc};

fn with_keys(names: &[&str]) -> Setup {
    let keys = names.iter().map(|name| api_key(name, &format!("{name}-key"))).collect();
    TestGateway::new().with(|s| s.auth.api_keys = keys)
}

fn of(gateway: &TestGateway, name: &str) -> Client {
    gateway.client("/mcp").header("x-api-key", &format!("{name}-key"))
}

/// case-I05: a principal at its cap gets 429 and when to come back; others notice nothing; DELETE makes room.
#[tokio::test]
async fn a_principal_is_held_to_its_cap_and_others_are_not_touched() {
    let gateway = with_keys(&["ann", "bob"]).with(|s| s.sessions.max_per_principal = 3).start().await;
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(of(&gateway, "ann").initialize("2025-06-18").await);
    }
    for _ in 0..20 {
        let answer = of(&gateway, "ann").post(&init("2025-06-18", json!({}))).await;
        assert_eq!(answer.status, StatusCode::TOO_MANY_REQUESTS);
        let seconds: u32 = answer.header("retry-after").expect("Retry-After").parse().expect("seconds");
        assert!(seconds > 0);
        assert_eq!(answer.header("mcp-session-id"), None);
        let body = answer.json().await;
        assert_eq!((&body["id"], &body["error"]["code"]), (&json!(0), &json!(-32600)));
    }
    of(&gateway, "bob").initialize("2025-06-18").await;
    assert_eq!(held[0].call(1, "ping", json!({})).await["result"], json!({}), "what ann holds goes on");
    assert_eq!(held.remove(0).delete().await, StatusCode::NO_CONTENT);
    of(&gateway, "ann").initialize("2025-06-18").await;
    assert_eq!(gateway.sessions(), 4.0);
}

/// case-I05: the cap of the process is 503; many at once do not pass it together.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_process_is_held_to_its_cap_also_when_many_come_at_once() {
    let gateway = TestGateway::new().with(|s| s.sessions.max = 10).start().await;
    let inits = (0..100).map(|_| {
        let client = gateway.client("/mcp");
        async move {
            let answer = client.post(&init("2025-06-18", json!({}))).await;
            (answer.status, answer.header("retry-after").is_some())
        }
    });
    let answers = futures_util::future::join_all(inits).await;
    let opened = answers.iter().filter(|a| a.0 == StatusCode::OK).count();
    let full = answers.iter().filter(|a| **a == (StatusCode::SERVICE_UNAVAILABLE, true)).count();
    assert_eq!((opened, full), (10, 90));
    assert_eq!(gateway.sessions(), 10.0);
}

/// case-I05: expired sessions give way before anybody is turned away.
#[tokio::test]
async fn expired_sessions_give_way_to_new_ones() {
    let idle = Duration::from_millis(100);
    let gateway = TestGateway::new()
        .with(|s| {
            s.sessions.idle = idle;
            s.sessions.max = 2;
            // Sweeps of their own come every quarter of the shortest; none of them shall be needed.
        })
        .start()
        .await;
    gateway.client("/mcp").initialize("2025-06-18").await;
    gateway.client("/mcp").initialize("2025-06-18").await;
    tokio::time::sleep(idle + idle / 10).await; // what is tried is that time passes
    assert_eq!(gateway.client("/mcp").post(&init("2025-06-18", json!({}))).await.status, StatusCode::OK);
}

/// case-I05: a stranger creates nothing.
#[tokio::test]
async fn who_is_not_let_in_creates_no_session() {
    let gateway = with_keys(&["ann"]).start().await;
    for client in [gateway.client("/mcp"), gateway.client("/mcp").header("x-api-key", "wrong")] {
        assert_eq!(client.post(&init("2025-06-18", json!({}))).await.status, StatusCode::UNAUTHORIZED);
    }
    assert_eq!(gateway.sessions(), 0.0);
}

/// case-I05: being turned away is cheap, however many sessions there are.
#[tokio::test]
async fn a_flood_at_the_cap_is_turned_away_cheaply() {
    let gateway = TestGateway::new().with(|s| s.sessions.max = 2000).start().await;
    let opened = init("2025-06-18", json!({})).to_string();
    let mut raw = crate::raw::Raw::connect(gateway.address).await;
    let headers = "Content-Type: application/json\r\n";
    let mut turned_away = Vec::new();
    for n in 0..2400 {
        let began = Instant::now();
        raw.request("POST /mcp", headers, &opened).await;
        let answer = raw.answer().await;
        assert_eq!(answer.status, if n < 2000 { 200 } else { 503 });
        if n >= 2000 {
            turned_away.push(began.elapsed());
        }
    }
    turned_away.sort();
    let median = turned_away[turned_away.len() / 2];
    assert!(median < Duration::from_millis(5), "{median:?}");
}

/// Requests over `limits.inFlightPerSession` are 429 with their id; those that run go on, and make room.
#[tokio::test]
async fn a_session_is_held_to_its_running_requests() {
    let (server, gate) = (HttpServer::start().await, Gate::new());
    server.on(rpc("tools/call"), Answer::result(r#"{"content":[]}"#).after(&gate));
    let gateway = TestGateway::new()
        .http("u1", server.url())
        .with(|s| {
            s.limits.in_flight_per_session = 2;
            s.streams.grace = Duration::ZERO;
        })
        .start()
        .await;
    let client = gateway.client("/mcp").initialize("2025-06-18").await;
    let call = |id: i32| request(id, "tools/call", tool("mcp_u1_echo", json!({})));
    let running = [client.post(&call(1)).await, client.post(&call(2)).await];
    let busy = client.post(&call(3)).await;
    assert_eq!(busy.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(busy.header("retry-after").is_some());
    assert_eq!(busy.json().await["id"], 3);
    let other = gateway.client("/mcp").initialize("2025-06-18").await;
    assert_eq!(other.call(1, "ping", json!({})).await["result"], json!({}), "another session is not busy");
    gate.open();
    for answer in running {
        assert_eq!(answer.response().await["result"]["content"], json!([]));
    }
    assert_eq!(client.call(4, "ping", json!({})).await["result"], json!({}));
}

/// A GET too many is 503, and told when to come back; one that goes on is not refused, and one that ends makes room.
#[tokio::test]
async fn long_lived_streams_are_held_to_their_cap() {
    let gateway = TestGateway::new().with(|s| s.streams.max = 1).start().await;
    let a = gateway.client("/mcp").initialize("2025-11-25").await;
    let b = gateway.client("/mcp").initialize("2025-11-25").await;
    let mut open = a.open_get().await;
    open.event().await.expect("the priming event");
    let refused = b.send(Method::GET, "").await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(refused.header("retry-after").is_some());
    let refused = refused.json().await;
    let said = &refused["error"]["data"]["mcpgate"];
    assert_eq!((&said["reason"], &said["retryable"]), (&json!("too_many_streams"), &json!(true)));
    let again = a.resume(open.last_id.as_deref().expect("an id")).await;
    assert_eq!(again.status, StatusCode::OK, "it was let in before");
    drop((open, again));
    gateway.until(r#"mcpgate_sse_streams_active{kind="get"}"#, |open| open == 0.0).await;
    b.open_get().await;
}
