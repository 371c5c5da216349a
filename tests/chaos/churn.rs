//! Callers that come and go by the thousand leave nothing behind.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::binary::Binary;
use crate::client::tool;
use crate::http_server::HttpServer;
use crate::kept_alive::{KeptAlive, Session};
use crate::process::children;

/// Sessions that begin, call and end.
const CYCLES: usize = 5000;
/// Sessions that nobody ends.
const ABANDONED: usize = 1000;
/// Sessions with a child process, all at the same time.
const CHILDREN: usize = 200;
/// Callers at the same time.
const CALLERS: usize = 20;

/// How much more memory a second round may leave.
const LEEWAY: u64 = 10 << 20;
/// How long the gateway may take to let go of what a round needed.
const SETTLED: Duration = Duration::from_secs(30);
/// How long both rounds may take.
const LIMIT: Duration = Duration::from_secs(120);

/// What a round left behind.
#[derive(Debug)]
struct Left {
    descriptors: usize,
    memory: u64,
}

/// case-A07: no process, no descriptor, no session is left, and the second round leaves no more than the
/// first.
#[tokio::test(flavor = "multi_thread")]
async fn callers_that_come_and_go_leave_nothing() {
    let server = HttpServer::start().await;
    let config = format!(
        "mcpServers:\n  http: {{ url: '{}' }}\n  demo: {{ command: mcpgate, args: [demo-server], pool: {{ max: {CHILDREN} }} }}\nsessions: {{ idle: 10s }}\n",
        server.url()
    );
    let gateway = Binary::serve(&config).await;
    // Some descriptors are there from the start but opened a moment after it is told.
    gateway.metric("mcpgate_sessions_active").await;
    let mut caller = KeptAlive::connect(gateway.address, "/servers/demo/mcp").await;
    let session = caller.initialize().await;
    call(&mut caller, &session, tool("count_words", json!({"text": "one"}))).await;
    caller.delete(&session).await;
    drop(caller);
    gateway.await_metric("mcpgate_upstream_processes", 0.0).await;
    let before = Left::of(&gateway);
    let began = Instant::now();
    let first = round(&gateway, &server, before.descriptors).await;
    let second = round(&gateway, &server, before.descriptors).await;
    println!("before {before:?}, first {first:?}, second {second:?}, in {:?}", began.elapsed());
    assert!(began.elapsed() < LIMIT, "it took {:?}", began.elapsed());
    let created = gateway.metric("mcpgate_sessions_created_total").await;
    assert_eq!(created, 1.0 + 2.0 * (CYCLES + ABANDONED + CHILDREN) as f64);
    assert!(second.memory < first.memory + LEEWAY, "first {first:?}, second {second:?}");
}

async fn round(gateway: &Binary, server: &HttpServer, descriptors: usize) -> Left {
    let began = Instant::now();
    // They expire while the others come and go.
    in_parallel(gateway, "/servers/http/mcp", ABANDONED, async |caller| {
        let session = caller.initialize().await;
        call(caller, &session, tool("echo", json!({}))).await;
    })
    .await;
    println!("{ABANDONED} abandoned after {:?}", began.elapsed());

    in_parallel(gateway, "/servers/http/mcp", CYCLES, async |caller| {
        let session = caller.initialize().await;
        call(caller, &session, tool("echo", json!({}))).await;
        caller.delete(&session).await;
    })
    .await;
    println!("{CYCLES} cycles after {:?}", began.elapsed());

    let count = || tool("count_words", json!({"text": "one two three"}));
    let sessions = in_parallel(gateway, "/servers/demo/mcp", CHILDREN, async |caller| {
        let session = caller.initialize().await;
        call(caller, &session, count()).await;
        session
    })
    .await;
    println!("{CHILDREN} children after {:?}", began.elapsed());
    gateway.await_metric("mcpgate_upstream_processes", CHILDREN as f64).await;
    let mut caller = KeptAlive::connect(gateway.address, "/servers/demo/mcp").await;
    for session in &sessions {
        call(&mut caller, session, count()).await;
        caller.delete(session).await;
    }
    drop(caller);

    gateway.await_metric("mcpgate_sessions_active", 0.0).await;
    gateway.await_metric("mcpgate_upstream_processes", 0.0).await;
    settled("processes", 0, || children(gateway.process.id()).len()).await;
    settled("sessions of the server", 0, || server.sessions().len()).await;
    settled("descriptors", descriptors, || Left::of(gateway).descriptors).await;
    println!("settled after {:?}", began.elapsed());
    Left::of(gateway)
}

/// Does something `times` times, by several callers that each keep their connection.
async fn in_parallel<T>(
    gateway: &Binary,
    path: &str,
    times: usize,
    act: impl AsyncFn(&mut KeptAlive) -> T,
) -> Vec<T> {
    let caller = async || {
        let mut caller = KeptAlive::connect(gateway.address, path).await;
        let mut done = Vec::new();
        for _ in 0..times / CALLERS {
            done.push(act(&mut caller).await);
        }
        done
    };
    join_all((0..CALLERS).map(|_| caller())).await.into_iter().flatten().collect()
}

async fn call(caller: &mut KeptAlive, session: &Session, params: Value) {
    let answer = caller.call(session, params).await;
    assert!(answer.contains(r#""content":"#), "{answer}");
}

/// Waits until no more than `wanted` of something are left.
async fn settled(what: &str, wanted: usize, count: impl Fn() -> usize) {
    let began = Instant::now();
    while count() > wanted {
        assert!(began.elapsed() < SETTLED, "{what}: {} are left, not {wanted}", count());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

// === impl Left ===

impl Left {
    fn of(gateway: &Binary) -> Self {
        let process = format!("/proc/{}", gateway.process.id());
        let status = std::fs::read_to_string(format!("{process}/status")).unwrap();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let kib: u64 = resident.trim().trim_end_matches(" kB").parse().unwrap();
        Self { descriptors: std::fs::read_dir(format!("{process}/fd")).unwrap().count(), memory: kib << 10 }
    }
}
