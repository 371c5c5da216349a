//! What one forwarded call costs: 300 bytes there and back over the hop, both sides in this process.
//!
//! `cargo bench --bench hop [-- CONCURRENCY SECONDS]`. Prints processor time of client and server together per call,
//! from `/proc`, so that only Linux tells it.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program for people, which stops where it fails"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use axum::Router;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::Request;
use http_body_util::BodyExt as _;
use mcpgate::http::peer::{
    Acquaintance, ClientLimits, Hop, Identity, KeyHash, PeerAddress, PeerClient, PeerListener, Peers,
    Replica, ServeLimits, Stop, Strangers,
};
use tokio::net::TcpListener;
use tokio_util::task::TaskTracker;

/// Knows everyone.
struct Everyone;

impl Peers for Everyone {
    fn known_as(&self, _: KeyHash) -> BoxFuture<'_, Acquaintance> {
        Box::pin(async { Acquaintance::Peer })
    }
}

fn main() {
    // cargo adds `--bench`.
    let mut numbers = std::env::args().skip(1).filter_map(|argument| argument.parse().ok());
    let (concurrency, seconds) = (numbers.next().unwrap_or(32), numbers.next().unwrap_or(5));
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(measure(concurrency, Duration::from_secs(seconds)));
}

async fn measure(concurrency: u64, time: Duration) {
    let tasks = TaskTracker::new();
    let (ours, theirs) = (Arc::new(Identity::generate().unwrap()), Arc::new(Identity::generate().unwrap()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let replica = Replica::parse("6f0e3c1a-2b4d-4e5f-8a9b-0c1d2e3f4a5b").unwrap();
    let to = PeerAddress {
        replica: replica.clone(),
        address: listener.local_addr().unwrap(),
        key_hash: theirs.key_hash(),
    };
    let router = Router::new().fallback(|request: axum::extract::Request| async move {
        let body = request.into_body().collect().await.unwrap().to_bytes();
        ([("content-type", "application/json"), ("x-request-id", "4f2a-1")], body)
    });
    let peers = PeerListener {
        identity: theirs,
        peers: Arc::new(Everyone),
        router,
        limits: ServeLimits::default(),
        strangers: Arc::new(Strangers::default()),
        tasks: tasks.clone(),
    };
    tasks.spawn(peers.serve(listener, Stop::default()));
    let client = PeerClient::new(ours, ClientLimits::default(), tasks.clone());
    let calls = Arc::new(AtomicU64::new(0));
    for caller in 0..concurrency {
        let (client, to, calls) = (client.clone(), to.clone(), calls.clone());
        let hop = Hop {
            edge_peer: None,
            replica: replica.clone(),
            epoch: Some(1),
            hops: 1,
            from: Replica::parse("0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d").unwrap(),
        };
        let request = request(caller);
        tasks.spawn(async move {
            loop {
                // It fails when the program ends.
                let Ok(answer) = client.send(&to, &hop, (&request).into()).await else { return };
                assert_eq!(answer.into_body().collect().await.unwrap().to_bytes().len(), 300);
                calls.fetch_add(1, Relaxed);
            }
        });
    }
    tokio::time::sleep(time / 4).await;
    let (began, calls_before, cpu_before) = (Instant::now(), calls.load(Relaxed), cpu());
    tokio::time::sleep(time).await;
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let done = (calls.load(Relaxed) - calls_before) as f64;
    println!(
        "hop: {concurrency} at once, {:.0} calls/s, {:.1} us of processor time per call",
        done / began.elapsed().as_secs_f64(),
        (cpu() - cpu_before) / done
    );
}

/// What a session's call carries.
fn request(caller: u64) -> Request<Bytes> {
    Request::post("/mcp")
        .header("host", "mcp.example.com")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("authorization", format!("Bearer 0123456789abcdef0123456789abcdef{caller:04}"))
        .header("mcp-session-id", format!("6f0e3c1a-2b4d-4e5f-8a9b-0c1d2e3f{caller:04}"))
        .header("mcp-protocol-version", "2025-11-25")
        .header("user-agent", "bench/1.0")
        .body(Bytes::from(vec![b'x'; 300]))
        .unwrap()
}

/// Microseconds that all threads of this process ran, by the scheduler's count.
fn cpu() -> f64 {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let ran = threads.filter_map(|thread| {
        let text = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<f64>().ok()
    });
    ran.sum::<f64>() / 1000.0
}
