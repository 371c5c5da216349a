//! The gateway is told to stop.

use std::time::{Duration, Instant};

use http::StatusCode;
use mcpgate::gateway::{Gateway, Listeners, Stop, Watch};
use mcpgate::settings::Settings;
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::client::{SOON, init, request, tool};
use crate::gateway::TestGateway;
use crate::raw::Raw;

/// Whether a process runs; one that is dead and only waits for init to take notice does not.
fn runs(pid: u64) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// case-J01: streams end at once and say when to come back, calls end in peace, no new sessions begin, children are
/// reaped.
#[tokio::test]
async fn a_stop_ends_streams_at_once_and_calls_in_peace() {
    let gateway = TestGateway::new()
        .stdio("u1", &[])
        .with(|s| {
            s.streams.grace = Duration::from_millis(50);
            s.shutdown.drain = SOON;
        })
        .start()
        .await;
    let client = gateway.client("/mcp").initialize("2025-11-25").await;
    let pids = client.call(1, "tools/call", tool("mcp_u1_spawn", json!({}))).await;
    let pids: Vec<u64> =
        serde_json::from_value(pids["result"]["structuredContent"]["value"].clone()).expect("ids");
    let quiet = gateway.client("/mcp").initialize("2025-11-25").await;
    let (mut get, mut quiet_get) = (client.open_get().await, quiet.open_get().await);
    let call = request(2, "tools/call", tool("mcp_u1_sleep", json!({"ms": 1500})));
    let mut running = client.post(&call).await.stream();
    running.event().await.expect("primed");
    get.event().await.expect("primed");
    quiet_get.event().await.expect("primed");
    let began = Instant::now();
    gateway.begin_to_stop().await;
    for get in [&mut get, &mut quiet_get] {
        let last = get.event().await.expect("a last event");
        assert_eq!((last.retry, last.data.len()), (Some(Duration::from_millis(50)), 0));
        assert!(get.event().await.is_none());
    }
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    let refused = gateway.client("/mcp").post(&init("2025-11-25", json!({}))).await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(refused.header("retry-after").is_some());
    assert_eq!(refused.json().await["error"]["data"]["mcpgate"]["reason"], "draining");
    assert_eq!(client.call(3, "ping", json!({})).await["result"], json!({}), "a session at work goes on");
    let response = running.message().await.expect("the response");
    assert_eq!((&response["id"], response.get("error")), (&json!(2), None));
    assert!(running.event().await.is_none());
    gateway.stopped().await;
    for pid in pids {
        assert!(!runs(pid), "process {pid} is left");
    }
}

/// A call that outlives the drain is told that its outcome is unknown, and nothing waits for it.
#[tokio::test]
async fn a_call_that_outlives_the_drain_is_told_so() {
    for accept in ["application/json", "text/event-stream"] {
        let gateway = TestGateway::new()
            .stdio("u1", &[])
            .with(|s| s.shutdown.drain = Duration::from_millis(200))
            .start()
            .await;
        let client = gateway.client("/mcp").initialize("2025-11-25").await.header("accept", accept);
        client.call(1, "tools/call", tool("mcp_u1_echo", json!({}))).await;
        let call = request(2, "tools/call", tool("mcp_u1_sleep", json!({"ms": 60_000})));
        let (response, ()) = tokio::join!(async { client.post(&call).await.response().await }, async {
            gateway
                .until(r#"mcpgate_sse_streams_active{kind="post"}"#, |n| {
                    n > 0.0 || accept != "text/event-stream"
                })
                .await;
            tokio::time::sleep(Duration::from_millis(50)).await; // the call is on its way
            gateway.stop();
        });
        assert_eq!(response["id"], 2, "{accept}: {response}");
        assert_eq!(response["error"]["data"]["mcpgate"]["reason"], "session_ended", "{accept}: {response}");
        gateway.stopped().await;
    }
}

/// Nothing runs: a stop takes no time, also with connections that lie idle.
#[tokio::test]
async fn a_stop_with_nothing_to_do_is_quick() {
    let gateway = TestGateway::new().with(|s| s.shutdown.drain = SOON).start().await;
    let client = gateway.client("/mcp").initialize("2025-11-25").await;
    let mut raw = Raw::connect(gateway.address).await;
    raw.request("GET /mcp", "", "").await;
    assert_eq!(raw.answer().await.status, 400);
    let _get = client.open_get().await;
    let began = Instant::now();
    gateway.stopped().await;
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}

/// T62: children have the time of `shutdown.children` to end, at a stop and at the end of a session, and no more.
#[tokio::test]
async fn children_have_the_configured_time_to_end() {
    let gateway = TestGateway::new()
        .stdio("u1", &["--ignore-eof", "--ignore-term"])
        .with(|s| s.shutdown.children = Duration::from_millis(200))
        .start()
        .await;
    let ended = gateway.client("/mcp").initialize("2025-11-25").await;
    let left = gateway.client("/mcp").initialize("2025-11-25").await;
    for client in [&ended, &left] {
        client.call(1, "tools/call", tool("mcp_u1_echo", json!({}))).await;
    }
    let began = Instant::now();
    assert_eq!(ended.delete().await, StatusCode::NO_CONTENT);
    gateway.until(r#"mcpgate_upstream_processes{server="u1"}"#, |n| n == 1.0).await;
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    let began = Instant::now();
    gateway.stopped().await;
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}

/// case-J01: a scraper that keeps its connection does not hold the end up, and is answered while calls run on.
#[tokio::test]
async fn an_idle_scraper_does_not_delay_the_end() {
    let mut settings = Settings::default();
    settings.shutdown.delay = Duration::ZERO;
    let bind = async || TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let (callers, admin) = (bind().await, bind().await);
    let (address, scraped) =
        (callers.local_addr().expect("an address"), admin.local_addr().expect("an address"));
    let gateway = Gateway::build(settings, address, Watch::Nobody, None).expect("a gateway");
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    let serving = gateway.serve(Listeners { callers, admin: Some(admin) }, async move {
        stopped.cancelled().await;
        Stop::Announced
    });
    let scraping = async {
        let mut raw = Raw::connect(scraped).await;
        raw.request("GET /readyz", "", "").await;
        assert_eq!(raw.answer().await.status, 200);
        stop.cancel();
        (raw, Instant::now())
    };
    let ((), (_raw, began)) = tokio::join!(serving, scraping);
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
}
