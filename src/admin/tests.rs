//! The listener, over a real socket.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use super::*;

struct Served {
    address: std::net::SocketAddr,
    readiness: watch::Sender<Readiness>,
    metrics: Arc<Metrics>,
    tasks: TaskTracker,
    stop: oneshot::Sender<()>,
}

const PATIENCE: Duration = Duration::from_secs(10);

async fn start() -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (readiness, readable) = watch::channel(Readiness::Ready);
    let metrics = Arc::new(Metrics::new(["secret-server"], ["mcp"]));
    let state = State { readiness: readable, metrics: Arc::clone(&metrics), checks: Arc::new(Vec::new) };
    let (stop, stopped) = oneshot::channel::<()>();
    let tasks = TaskTracker::new();
    tasks.spawn(serve(listener, state, tasks.clone(), async move {
        let _ = stopped.await;
    }));
    Served { address, readiness, metrics, tasks, stop }
}

impl Served {
    async fn ask(&self, method: &str, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request = format!("{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        tokio::time::timeout(PATIENCE, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer)
    }

    async fn body(&self, path: &str) -> (u16, String) {
        let (status, answer) = self.ask("GET", path).await;
        (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
    }
}

/// case-J03: liveness is of the process alone, readiness follows the gateway.
#[tokio::test]
async fn it_lives_whatever_happens_and_is_ready_when_it_serves() {
    let served = start().await;
    for (readiness, status, word) in
        [(Readiness::Ready, 200, "ready\n"), (Readiness::Draining, 503, "draining\n")]
    {
        served.readiness.send_replace(readiness);
        assert_eq!(served.body("/readyz").await, (status, word.to_owned()));
        assert_eq!(served.body("/livez").await, (200, "ok\n".to_owned()));
    }
}

/// case-I11: what it says names no server.
#[tokio::test]
async fn readiness_names_no_server() {
    let served = start().await;
    assert_eq!(served.body("/readyz?verbose").await.1, "[+]not draining\nready\n");
    served.readiness.send_replace(Readiness::Draining);
    let (_, page) = served.body("/readyz?x=1&verbose").await;
    assert_eq!(page, "[-]not draining\ndraining\n");
    assert!(!served.body("/version").await.1.contains("secret-server"));
}

#[tokio::test]
async fn metrics_are_the_gateway_s_own() {
    let served = start().await;
    served.metrics.list_failed("secret-server");
    let (status, answer) = served.ask("GET", "/metrics").await;
    assert_eq!(status, 200);
    assert!(answer.contains("content-type: text/plain; version=0.0.4; charset=utf-8"), "{answer}");
    assert!(answer.contains("mcpgate_list_failures_total{server=\"secret-server\"} 1"), "{answer}");
}

#[tokio::test]
async fn nothing_else_is_served() {
    let served = start().await;
    for path in ["/", "/mcp", "/healthz", "/livez/", "/metrics/x", "/..//metrics"] {
        assert_eq!(served.ask("GET", path).await.0, 404, "{path}");
    }
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
        let (status, answer) = served.ask(method, "/metrics").await;
        assert_eq!(status, 405, "{method}");
        assert!(answer.contains("allow: GET, HEAD"), "{answer}");
        assert!(!answer.contains("mcpgate_"), "{answer}");
    }
    let (status, answer) = served.ask("HEAD", "/livez").await;
    assert_eq!(status, 200);
    assert!(answer.ends_with("\r\n\r\n") && answer.contains("content-length: 3"), "{answer}");
}

/// An open connection does not hold up the end.
#[tokio::test]
async fn it_ends_when_told() {
    let served = start().await;
    let idle = TcpStream::connect(served.address).await.unwrap();
    assert_eq!(served.body("/livez").await.0, 200);
    served.stop.send(()).unwrap();
    served.tasks.close();
    tokio::time::timeout(PATIENCE, served.tasks.wait()).await.expect("it ends in time");
    drop(idle);
    assert!(TcpStream::connect(served.address).await.is_err());
}
