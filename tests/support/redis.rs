//! Real Redis servers on free loopback ports: one, a watched pair, a cluster. They end with the test.
//!
//! ```ignore
//! let server = RedisServer::start().await;
//! let settings = server.settings();
//! server.pause(); // it is there and answers nothing
//! ```
#![allow(dead_code, reason = "each test area uses a part of it")]

use std::net::TcpListener;
use std::time::Duration;

use mcpgate::settings::RedisSettings;
use mcpgate::settings::store::{Login, RedisNode, RedisServers, SentinelSettings, Wire};
use redis::Value;
use rustix::process::Signal;
use tempfile::TempDir;

use crate::process::{Process, command};

/// How long a test waits for something that is bound to happen.
const SOON: Duration = Duration::from_secs(60);
/// How long a command may take, but where a test is about that: the machine may be busy.
const TIMEOUT: Duration = Duration::from_secs(5);

/// One server, which keeps nothing on disk: started again it is empty.
pub(crate) struct RedisServer {
    process: Option<Process>,
    pub(crate) port: u16,
    folder: TempDir,
    options: Vec<String>,
}

/// A master, its replica, and a sentinel that watches them.
pub(crate) struct WatchedRedis {
    pub(crate) master: RedisServer,
    pub(crate) replica: RedisServer,
    pub(crate) sentinel: RedisServer,
}

/// A cluster of three masters.
pub(crate) struct RedisCluster {
    pub(crate) nodes: Vec<RedisServer>,
}

/// A port that nobody has at the moment.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).and_then(|bound| bound.local_addr()).unwrap().port()
}

// === impl RedisServer ===

impl RedisServer {
    /// A server in the clear, without a password.
    pub(crate) async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// A server with further options; with `--port 0` among them only what they say is listened on.
    pub(crate) async fn start_with(options: &[&str]) -> Self {
        let port = free_port();
        let mut server = Self {
            process: None,
            port,
            folder: tempfile::tempdir().unwrap(),
            options: options.iter().map(|option| (*option).to_owned()).collect(),
        };
        server.begin().await;
        server
    }

    /// Starts again, empty, what was stopped.
    pub(crate) async fn begin(&mut self) {
        let port = self.port.to_string();
        let mut redis = command("redis-server");
        redis.arg("--dir").arg(self.folder.path()).args([
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--port",
            &port,
        ]);
        redis.args(&self.options);
        let process = Process::start(&mut redis);
        process.line(|line| line.contains("Ready to accept connections").then_some(())).await;
        self.process = Some(process);
    }

    /// Kills it: connections break, new ones are refused.
    pub(crate) async fn stop(&mut self) {
        if let Some(process) = self.process.take() {
            process.signal(Signal::KILL);
            process.ended(SOON).await;
        }
    }

    /// It is there, takes connections, and answers nothing.
    pub(crate) fn pause(&self) {
        self.process.as_ref().unwrap().signal(Signal::STOP);
    }

    /// It goes on where it was.
    pub(crate) fn go_on(&self) {
        self.process.as_ref().unwrap().signal(Signal::CONT);
    }

    /// Loses all it holds.
    pub(crate) async fn flush(&self) {
        self.ask(&["FLUSHALL"]).await;
    }

    /// Sends it a command.
    pub(crate) async fn ask(&self, words: &[&str]) -> Value {
        self.try_to_ask(words).await.unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    /// Sends it a command that may fail.
    pub(crate) async fn try_to_ask(&self, words: &[&str]) -> redis::RedisResult<Value> {
        let client = redis::Client::open(("127.0.0.1", self.port))?;
        let mut connection = client.get_multiplexed_async_connection().await?;
        let mut asked = redis::cmd(words[0]);
        asked.arg(&words[1..]);
        asked.query_async(&mut connection).await
    }

    /// Sends it commands until one answers as wanted.
    pub(crate) async fn wait_for(&self, words: &[&str], wanted: &str) {
        let begun = std::time::Instant::now();
        loop {
            let answer = self.try_to_ask(words).await;
            if format!("{answer:?}").contains(wanted) {
                return;
            }
            assert!(begun.elapsed() < SOON, "{words:?} never said {wanted}: {answer:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) fn node(&self) -> RedisNode {
        RedisNode { host: "127.0.0.1".to_owned(), port: self.port, wire: Wire::Plain }
    }

    /// The settings of a gateway that keeps its sessions here.
    pub(crate) fn settings(&self) -> RedisSettings {
        settings(RedisServers::Single { node: self.node(), database: 0 })
    }
}

// === impl WatchedRedis ===

impl WatchedRedis {
    pub(crate) const MASTER: &str = "gate";

    pub(crate) async fn start() -> Self {
        let master = RedisServer::start().await;
        let of = master.port.to_string();
        let replica =
            RedisServer::start_with(&["--replicaof", "127.0.0.1", &of, "--repl-diskless-sync-delay", "0"])
                .await;
        replica.wait_for(&["INFO", "replication"], "master_link_status:up").await;
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let name = Self::MASTER;
        let config = format!(
            "port {port}\nbind 127.0.0.1\ndir {}\nsentinel monitor {name} 127.0.0.1 {of} 1\n\
             sentinel down-after-milliseconds {name} 3000\nsentinel failover-timeout {name} 10000\n",
            folder.path().display()
        );
        let file = folder.path().join("sentinel.conf");
        std::fs::write(&file, config).unwrap();
        let process = Process::start(command("redis-server").arg(&file).arg("--sentinel"));
        process.line(|line| line.contains("+monitor master").then_some(())).await;
        let sentinel = RedisServer { process: Some(process), port, folder, options: Vec::new() };
        sentinel.wait_for(&["SENTINEL", "replicas", name], &replica.port.to_string()).await;
        Self { master, replica, sentinel }
    }

    /// Waits until the sentinel names the replica as the master.
    pub(crate) async fn failed_over(&self) {
        let question = ["SENTINEL", "get-master-addr-by-name", Self::MASTER];
        let port = self.replica.port.to_string();
        let bytes = format!("{:?}", Value::BulkString(port.into_bytes()));
        self.sentinel.wait_for(&question, &bytes).await;
    }

    pub(crate) fn settings(&self) -> RedisSettings {
        settings(RedisServers::Sentinel(SentinelSettings {
            master: Self::MASTER.to_owned(),
            sentinels: vec![RedisNode { port: free_port(), ..self.sentinel.node() }, self.sentinel.node()],
            login: Login::default(),
            wire: Wire::Plain,
        }))
    }
}

// === impl RedisCluster ===

impl RedisCluster {
    pub(crate) async fn start() -> Self {
        let mut nodes = Vec::new();
        let mut buses = Vec::new();
        for _ in 0..3 {
            let bus = free_port().to_string();
            let options =
                ["--cluster-enabled", "yes", "--cluster-port", &bus, "--cluster-node-timeout", "2000"];
            nodes.push(RedisServer::start_with(&options).await);
            buses.push(bus);
        }
        for (node, slots) in nodes.iter().zip([("0", "5460"), ("5461", "10922"), ("10923", "16383")]) {
            node.ask(&["CLUSTER", "ADDSLOTSRANGE", slots.0, slots.1]).await;
        }
        for (node, bus) in nodes.iter().zip(&buses).skip(1) {
            nodes[0].ask(&["CLUSTER", "MEET", "127.0.0.1", &node.port.to_string(), bus]).await;
        }
        for node in &nodes {
            node.wait_for(&["CLUSTER", "INFO"], "cluster_state:ok").await;
            node.wait_for(&["CLUSTER", "INFO"], "cluster_known_nodes:3").await;
        }
        Self { nodes }
    }

    pub(crate) fn settings(&self) -> RedisSettings {
        settings(RedisServers::Cluster(self.nodes.iter().take(2).map(RedisServer::node).collect()))
    }
}

fn settings(servers: RedisServers) -> RedisSettings {
    RedisSettings {
        servers,
        login: Login::default(),
        ca: None,
        prefix: "mcpgate".to_owned(),
        timeout: TIMEOUT,
    }
}
