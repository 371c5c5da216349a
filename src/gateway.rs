//! The composition root: the only place that knows every layer. Builds, serves, drains.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::auth::{Authenticator, Reach, Unusable, key_client};
use crate::http::{Edge, serve};
use crate::relay::Relay;
use crate::settings::Settings;
use crate::store::MemoryStore;
use crate::telemetry::Metrics;
use crate::upstream::Connector;
use crate::upstream::http::HttpClient;
use crate::upstream::stdio::Guard;

/// How long the last tasks may take to end after everything was told to.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A gateway, ready to serve.
pub struct Gateway {
    settings: Settings,
    relay: Arc<Relay>,
    edge: Arc<Edge>,
    metrics: Arc<Metrics>,
    tasks: TaskTracker,
    draining: CancellationToken,
}

/// Who keeps watch over child processes, in case the gateway is killed.
#[derive(Clone, Debug)]
pub enum Watch {
    /// This program, run with the argument `guard`.
    Program(PathBuf),
    /// Nobody.
    Nobody,
}

/// Why no gateway could be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// No way in, or one that cannot be kept.
    #[error(transparent)]
    Auth(#[from] Unusable),
    /// The HTTP client for keys.
    #[error("the HTTP client for issuers' keys could not be made: {0}")]
    KeyClient(String),
}

// === impl Gateway ===

impl Gateway {
    /// Puts a gateway together for a listener at `listen`. Nothing is started but tasks of its own.
    ///
    /// # Errors
    /// [`BuildError`]
    pub fn build(settings: Settings, listen: SocketAddr, watch: Watch) -> Result<Self, BuildError> {
        let tasks = TaskTracker::new();
        let servers = settings.servers.iter().map(|s| s.name.as_str());
        let endpoints = crate::catalog::Endpoint::all(&settings);
        let metrics = Arc::new(Metrics::new(servers, endpoints.iter().map(|e| &*e.path)));
        let guard = match watch {
            Watch::Program(program) => Guard::new(program, tasks.clone()),
            Watch::Nobody => Guard::none(),
        };
        let key_client = key_client().map_err(|e| BuildError::KeyClient(e.to_string()))?;
        let authenticator = Authenticator::new(
            &settings.auth,
            Reach::from(listen),
            key_client,
            tasks.clone(),
            metrics.clone(),
        )?;
        let connector = Connector::new(HttpClient::new(), guard, tasks.clone(), metrics.clone());
        let store = Arc::new(MemoryStore::default());
        let relay = Relay::new(&settings, store, connector, tasks.clone(), metrics.clone());
        let draining = CancellationToken::new();
        let edge =
            Edge::new(&settings, listen, relay.clone(), authenticator, metrics.clone(), draining.clone());
        Ok(Self { settings, relay, edge, metrics, tasks, draining })
    }

    /// What it counts.
    pub fn metrics(&self) -> Arc<Metrics> {
        self.metrics.clone()
    }

    /// Serves until `stop`, then drains: readiness off, serve on for `shutdown.delay`, let running calls end for
    /// at most `shutdown.drain`, take leave of servers.
    pub async fn serve(self, listener: TcpListener, stop: impl Future<Output = ()>) {
        let closing = CancellationToken::new();
        self.tasks.spawn(self.relay.clone().sweep_until(closing.clone()));
        self.tasks.spawn(self.relay.clone().announce_until(closing.clone()));
        let accepting = serve::serve(
            listener,
            self.edge.router(),
            Arc::new(self.settings.limits.clone()),
            self.tasks.clone(),
            closing.clone(),
        );
        let leave = async {
            stop.await;
            self.draining.cancel();
            self.metrics.draining();
            tokio::time::sleep(self.settings.shutdown.delay).await;
            self.relay.shut_down(self.settings.shutdown.drain).await;
            closing.cancel();
        };
        tokio::join!(accepting, leave);
        self.tasks.close();
        let patience = self.settings.shutdown.children + LAST_WORDS;
        if tokio::time::timeout(patience, self.tasks.wait()).await.is_err() {
            tracing::warn!("some tasks did not end in time");
        }
    }
}
