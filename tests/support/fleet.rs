//! Several gateways as people run them: processes of the program over one real Redis.
//!
//! ```ignore
//! let fleet = Fleet::start(&server).await;
//! let [a, b, c] = fleet.three().await;
//! a.process.signal(Signal::KILL);
//! ```
#![allow(dead_code, reason = "each test area uses a part of it")]

use std::net::SocketAddr;
use std::time::Duration;

use http::StatusCode;

use crate::binary::Binary;
use crate::redis_server::RedisServer;

/// How long a replica of a fleet holds its lease without a heartbeat, if nothing else is wanted.
pub(crate) const LEASE: Duration = Duration::from_secs(1);

/// The secret that replicas share: base64 of 32 bytes.
pub(crate) const KEY: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";
/// Another one.
pub(crate) const OTHER_KEY: &str = "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=";

/// What replicas share.
pub(crate) struct Fleet {
    pub(crate) redis: RedisServer,
    /// What their config says of servers and the like.
    config: String,
    lease: Duration,
}

/// How one replica differs from the others.
#[derive(Clone, Debug)]
pub(crate) struct Berth {
    /// For callers and for operators; port 0 takes a free one.
    pub(crate) ports: [SocketAddr; 2],
    /// What its config says of where Redis is.
    pub(crate) redis: String,
    pub(crate) key: &'static str,
}

/// What a config says of a Redis at this port.
pub(crate) fn at(port: u16) -> String {
    format!("url: 'redis://127.0.0.1:{port}'")
}

// === impl Fleet ===

impl Fleet {
    /// A fleet without replicas yet; `config` is theirs but for the store and the cluster.
    pub(crate) async fn start(config: impl Into<String>) -> Self {
        Self::over(RedisServer::start().await, config)
    }

    /// The same over a Redis of the test's own.
    pub(crate) fn over(redis: RedisServer, config: impl Into<String>) -> Self {
        Self { redis, config: config.into(), lease: LEASE }
    }

    /// The same with a longer lease, for replicas that are never killed on a machine that has much to do.
    pub(crate) fn with_lease(self, lease: Duration) -> Self {
        Self { lease, ..self }
    }

    /// Where a replica is if nothing else is wanted.
    pub(crate) fn berth(&self) -> Berth {
        let free = SocketAddr::from(([127, 0, 0, 1], 0));
        Berth { ports: [free, free], redis: at(self.redis.port), key: KEY }
    }

    /// Starts a replica; it may go on with the sessions of others when this returns.
    pub(crate) async fn replica(&self) -> Binary {
        self.replica_at(&self.berth()).await
    }

    /// The same, with what `berth` says.
    pub(crate) async fn replica_at(&self, berth: &Berth) -> Binary {
        let replica = self.starting(berth).await;
        replica.await_readyz(|status, said| status == StatusCode::OK && said.contains("[+]lease")).await;
        replica
    }

    /// The same; it serves when this returns, and may know nothing of the others yet.
    pub(crate) async fn starting(&self, berth: &Berth) -> Binary {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("cluster-keys"), format!("{}\n", berth.key)).unwrap();
        let config = format!(
            "store: {{ redis: {{ {}, timeout: {}ms }} }}\n\
             cluster: {{ listen: '127.0.0.1:0', advertise: '127.0.0.1:0', keys: {{ file: cluster-keys }}, lease: {}ms }}\n{}",
            berth.redis,
            self.lease.as_millis() * 3 / 10,
            self.lease.as_millis(),
            self.config
        );
        Binary::serve_on(berth.ports, folder, &config).await
    }

    /// Starts three replicas at once.
    pub(crate) async fn three(&self) -> [Binary; 3] {
        let (a, b, c) = tokio::join!(self.replica(), self.replica(), self.replica());
        [a, b, c]
    }
}
