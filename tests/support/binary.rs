//! The gateway as people run it: the program itself, with a config file.
//!
//! ```ignore
//! let gateway = Binary::serve("mcpServers: { demo: { command: mcpgate, args: [demo-server] } }").await;
//! let client = gateway.client("/mcp").initialize("2025-11-25").await;
//! ```
#![allow(dead_code, reason = "each test area uses a part of it")]

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use http::{Method, StatusCode};
use tempfile::TempDir;
use tokio::process::Command;

use crate::client::Client;
use crate::process::{Process, command};

/// The program.
pub(crate) const MCPGATE: &str = env!("CARGO_BIN_EXE_mcpgate");

/// The program that serves: `MCPGATE_PROGRAM` names another build of it, for figures.
fn program() -> OsString {
    std::env::var_os("MCPGATE_PROGRAM").unwrap_or_else(|| MCPGATE.into())
}

/// How long a test waits for something that is bound to become true.
const SOON: Duration = Duration::from_secs(30);

/// A gateway that runs, with a folder of its own.
pub(crate) struct Binary {
    pub(crate) process: Process,
    pub(crate) address: SocketAddr,
    pub(crate) admin: SocketAddr,
    folder: TempDir,
}

// === impl Binary ===

impl Binary {
    /// Serves with this config, to which free ports and a state folder are added.
    pub(crate) async fn serve(config: &str) -> Self {
        Self::serve_in(tempfile::tempdir().unwrap(), config).await
    }

    /// The same with a folder that already holds what the config names.
    pub(crate) async fn serve_in(folder: TempDir, config: &str) -> Self {
        Self::serve_at("127.0.0.1:0".parse().unwrap(), folder, config).await
    }

    /// The same at an address.
    pub(crate) async fn serve_at(listen: SocketAddr, folder: TempDir, config: &str) -> Self {
        Self::serve_on([listen, "127.0.0.1:0".parse().unwrap()], folder, config).await
    }

    /// The same at two addresses: that of callers and that of operators.
    pub(crate) async fn serve_on(ports: [SocketAddr; 2], folder: TempDir, config: &str) -> Self {
        Self::heard(start(command(program()), ports, folder.path(), config), folder).await
    }

    /// The same with free ports, as the first process of a PID namespace of its own; `process` is `unshare`, its
    /// parent. `None` where namespaces may not be made.
    pub(crate) async fn serve_first(config: &str) -> Option<Self> {
        let unshare = || {
            let mut unshare = command("unshare");
            unshare.args(["--user", "--map-current-user", "--pid", "--fork", "--kill-child", "--"]);
            unshare
        };
        let may = unshare().arg("true").output().await;
        if !may.is_ok_and(|tried| tried.status.success()) {
            return None;
        }
        let (folder, mut program) = (tempfile::tempdir().unwrap(), unshare());
        program.arg(MCPGATE);
        let ports = ["127.0.0.1:0".parse().unwrap(); 2];
        let process = start(program, ports, folder.path(), config);
        Some(Self::heard(process, folder).await)
    }

    /// One that was just started, once it says where it serves.
    async fn heard(process: Process, folder: TempDir) -> Self {
        let (address, admin) = process
            .line(|line| Some((url_after(line, "serving at http://")?, url_after(line, "admin=\"http://")?)))
            .await;
        Self { process, address, admin, folder }
    }

    /// The folder of its config.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A client of one of its endpoints.
    pub(crate) fn client(&self, path: &str) -> Client {
        Client::new(self.address, path)
    }

    /// The URL of one of its endpoints.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The sum of all series of a metric, as `/metrics` shows it.
    pub(crate) async fn metric(&self, name: &str) -> f64 {
        let text = Client::new(self.admin, "/metrics").send(Method::GET, "").await.text().await;
        let of_it = |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{']));
        text.lines().filter(of_it).map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
    }

    /// What a path of the admin listener says.
    pub(crate) async fn says(&self, path: &str) -> (StatusCode, String) {
        let answer = Client::new(self.admin, path).send(Method::GET, "").await;
        (answer.status, answer.text().await)
    }

    /// Waits until `/readyz?verbose` says what is wanted.
    pub(crate) async fn await_readyz(&self, wanted: impl Fn(StatusCode, &str) -> bool) {
        let mut last = (StatusCode::OK, String::new());
        let reached = async {
            loop {
                last = self.says("/readyz?verbose").await;
                if wanted(last.0, &last.1) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let reached = tokio::time::timeout(SOON, reached).await;
        assert!(reached.is_ok(), "/readyz says {last:?}");
    }

    /// Waits until a metric has this value.
    pub(crate) async fn await_metric(&self, name: &str, value: f64) {
        let mut last = f64::NAN;
        let reached = async {
            loop {
                last = self.metric(name).await;
                if (last - value).abs() < 0.5 {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let reached = tokio::time::timeout(SOON, reached).await;
        assert!(reached.is_ok(), "{name} is {last}, not {value}");
    }
}

/// Starts a gateway by `program` and does not wait for it.
fn start(mut program: Command, [listen, admin]: [SocketAddr; 2], folder: &Path, config: &str) -> Process {
    let file = folder.join("mcpgate.yaml");
    let state = folder.join("state");
    let ports = format!("listen: {listen}\nadmin: {{ listen: {admin} }}");
    std::fs::write(&file, format!("{ports}\nstateDir: {}\n{config}\n", state.display())).unwrap();
    program.args(["serve", "--config"]).arg(file).current_dir(folder);
    Process::start(program.env("MCPGATE_LOG", "info").env_remove("MCPGATE_LOG_FORMAT"))
}

fn url_after(line: &str, before: &str) -> Option<SocketAddr> {
    let rest = line.split_once(before)?.1;
    rest.split(['/', '"', ' ']).next()?.parse().ok()
}
