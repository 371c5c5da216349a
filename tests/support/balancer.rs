//! Real load balancers before several replicas, with the configs that the docs show.
//!
//! ```ignore
//! let balancer = Balancer::start(Kind::Haproxy, &replicas).await;
//! let client = balancer.client("/mcp").initialize("2025-11-25").await;
//! ```
#![allow(dead_code, reason = "each test area uses a part of it")]

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use crate::client::Client;
use crate::process::{Process, command};
use crate::redis_server::free_port;

/// One of the three that the docs show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Haproxy,
    Nginx,
    Envoy,
}

/// One that runs.
pub(crate) struct Balancer {
    pub(crate) process: Process,
    pub(crate) address: SocketAddr,
    _folder: TempDir,
}

/// How long one may take to begin.
const SOON: Duration = Duration::from_secs(30);

// === impl Balancer ===

impl Balancer {
    /// Starts one before replicas at these ports: those of callers and of operators. It serves when this returns.
    pub(crate) async fn start(kind: Kind, replicas: &[[SocketAddr; 2]; 3]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let file = folder.path().join(kind.file());
        std::fs::write(&file, kind.config(port, replicas)).unwrap();
        let process = Process::start(&mut kind.program(folder.path(), &file));
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let balancer = Self { process, address, _folder: folder };
        balancer.serves().await;
        balancer
    }

    /// A client of an endpoint behind it.
    pub(crate) fn client(&self, path: &str) -> Client {
        Client::new(self.address, path)
    }

    /// The URL of an endpoint behind it.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Waits until it knows replicas: a GET without a session is 400 there.
    async fn serves(&self) {
        let begun = async {
            loop {
                if tokio::net::TcpStream::connect(self.address).await.is_ok() {
                    let answer = self.client("/mcp").send(http::Method::GET, "").await;
                    if answer.status == http::StatusCode::BAD_REQUEST {
                        return;
                    }
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let begun = tokio::time::timeout(SOON, begun).await;
        assert!(begun.is_ok(), "the load balancer does not serve:\n{}", self.process.said());
    }
}

// === impl Kind ===

impl Kind {
    const fn file(self) -> &'static str {
        match self {
            Self::Haproxy => "haproxy.cfg",
            Self::Nginx => "nginx.conf",
            Self::Envoy => "envoy.yaml",
        }
    }

    /// The config of the docs, with these ports instead of its own.
    fn config(self, port: u16, replicas: &[[SocketAddr; 2]; 3]) -> String {
        let shown = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/loadbalancers").join(self.file());
        let shown = std::fs::read_to_string(shown).unwrap();
        let line = |line: &str| {
            let mut line = line
                // A test has fewer callers, and its machine fewer descriptors.
                .replace("maxconn 20000", "maxconn 2000")
                .replace("worker_connections 20000", "worker_connections 2000")
                .replace("bind :8000", &format!("bind 127.0.0.1:{port}"))
                .replace("listen 8000", &format!("listen 127.0.0.1:{port}"))
                .replace("0.0.0.0, port_value: 8000", &format!("127.0.0.1, port_value: {port}"));
            for ([callers, operators], n) in replicas.iter().zip(1..) {
                let host = format!("10.0.0.{n}");
                if line.contains(&host) {
                    line = line
                        .replace(&host, "127.0.0.1")
                        .replace("8080", &callers.port().to_string())
                        .replace("9090", &operators.port().to_string());
                }
            }
            line + "\n"
        };
        shown.lines().map(line).collect()
    }

    fn program(self, folder: &Path, file: &Path) -> tokio::process::Command {
        match self {
            Self::Haproxy => {
                let mut haproxy = command("haproxy");
                haproxy.arg("-db").arg("-f").arg(file);
                haproxy
            }
            Self::Nginx => {
                let mut nginx = command("nginx");
                let own = format!("daemon off; pid {}/pid; error_log stderr;", folder.display());
                nginx.arg("-p").arg(folder).arg("-c").arg(file).args(["-g", &own, "-e", "stderr"]);
                nginx
            }
            Self::Envoy => {
                let mut envoy =
                    command(std::env::var("MCPGATE_ENVOY").unwrap_or_else(|_| "envoy".to_owned()));
                envoy.args(["--use-dynamic-base-id", "--concurrency", "1", "-l", "warning", "-c"]).arg(file);
                envoy
            }
        }
    }
}
