//! What callers see behind each load balancer when a replica is stopped, and when one is killed: the figures of
//! `docs/load-balancers.md`.

use std::time::{Duration, Instant};

use http::StatusCode;
use rustix::process::Signal;
use serde_json::json;

use crate::balancer::{Balancer, Kind};
use crate::client::{Client, request};
use crate::fleet::Fleet;
use crate::http_server::HttpServer;

/// How many requests are sent after a replica left, one after the other.
const REQUESTS: i32 = 30;

/// What became of them.
#[derive(Debug, Default)]
struct Seen {
    good: usize,
    bad: Vec<StatusCode>,
    slowest: Duration,
}

#[tokio::test]
async fn a_replica_leaves_haproxy() {
    leave(Kind::Haproxy, 1).await;
}

#[tokio::test]
async fn a_replica_leaves_nginx() {
    leave(Kind::Nginx, 1).await;
}

#[tokio::test]
async fn a_replica_leaves_envoy() {
    leave(Kind::Envoy, 1).await;
}

/// After SIGTERM every request is answered; after SIGKILL at most `lost` are not, by the load balancer's hand.
async fn leave(kind: Kind, lost: usize) {
    let server = HttpServer::start().await;
    let fleet = Fleet::start(format!(
        "mcpServers: {{ u1: {{ url: '{}' }} }}\nshutdown: {{ delay: 1500ms, drain: 3s, children: 1s }}\n",
        server.url()
    ))
    .await;
    let [first, second, third] = fleet.three().await;
    let ports = [&first, &second, &third].map(|replica| [replica.address, replica.admin]);
    let balancer = Balancer::start(kind, &ports).await;
    let client = balancer.client("/mcp").initialize("2025-11-25").await;
    let mut clients = Vec::new();
    for _ in 0..4 {
        clients.push(balancer.client("/mcp").initialize("2025-11-25").await);
    }
    let mut stream = client.open_get().await;
    first.process.signal(Signal::TERM);
    let stopped = ask(&client).await;
    assert!(first.process.ended(Duration::from_secs(15)).await.0.success());
    let after = ask(&client).await;
    assert!(stopped.bad.is_empty() && after.bad.is_empty(), "SIGTERM: {stopped:?}, then {after:?}");
    second.process.signal(Signal::KILL);
    let killed = Instant::now();
    second.process.ended(Duration::from_secs(5)).await;
    let mut broken = ask(&client).await;
    for client in &clients {
        let more = ask(client).await;
        broken.good += more.good;
        broken.bad.extend(more.bad);
        broken.slowest = broken.slowest.max(more.slowest);
    }
    println!("{kind:?}: SIGTERM {stopped:?}, then {after:?}; SIGKILL {broken:?} in {:?}", killed.elapsed());
    assert!(broken.bad.len() <= lost, "SIGKILL: {broken:?}");
    // Whatever became of its connection, the stream goes on where its caller was.
    while stream.last_id.is_none() {
        assert!(stream.event().await.is_some(), "it begins with an id");
    }
    let resumed = client.resume(stream.last_id.as_deref().unwrap()).await;
    assert_eq!(resumed.status, StatusCode::OK);
}

async fn ask(client: &Client) -> Seen {
    let mut seen = Seen::default();
    for n in 0..REQUESTS {
        let began = Instant::now();
        let answer = client.post(&request(n, "ping", json!({}))).await;
        seen.slowest = seen.slowest.max(began.elapsed());
        match answer.status {
            StatusCode::OK => seen.good += 1,
            status => seen.bad.push(status),
        }
    }
    seen
}
