//! The composition root: the only place that knows every layer. Builds, serves, drains.

mod company;
mod reload;
mod seal_keys;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admin::{self, Readiness};
use crate::catalog::Endpoint;
use crate::http::{BuildError, Edge, peer, serve};
use crate::relay::Relay;
use crate::settings::Settings;
use crate::store::Sealer;
use crate::telemetry::Metrics;
use crate::upstream::Connector;
use crate::upstream::http::HttpClient;
use crate::upstream::stdio::{Guard, Patience};

pub use company::{Company, FORMATS, Joining};
pub use reload::{Reload, Reloading};

use company::Peering;

/// How long the last tasks may take to end after everything was told to.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A gateway, ready to serve.
pub struct Gateway {
    settings: Settings,
    sealer: Arc<Sealer>,
    relay: Arc<Relay>,
    edge: Arc<Edge>,
    peering: Option<Peering>,
    metrics: Arc<Metrics>,
    tasks: TaskTracker,
    /// Cancelled when no new sessions are taken.
    draining: CancellationToken,
    /// Cancelled when everything ends.
    closing: CancellationToken,
}

/// Who keeps watch over child processes, in case the gateway is killed.
#[derive(Clone, Debug)]
pub enum Watch {
    /// This program, run with the argument `guard`.
    Program(PathBuf),
    /// Nobody.
    Nobody,
}

/// Why it stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Somebody routes callers here and must see first that readiness is off: `shutdown.delay` holds.
    Announced,
    /// Nobody does.
    Unannounced,
}

/// The sockets it serves on.
#[derive(Debug)]
pub struct Listeners {
    /// For callers.
    pub callers: TcpListener,
    /// For operators.
    pub admin: Option<TcpListener>,
}

// === impl Gateway ===

impl Gateway {
    /// Puts a gateway together for a listener at `listen`. Nothing is started but tasks of its own.
    ///
    /// # Errors
    /// [`BuildError`]
    pub fn build(settings: Settings, listen: SocketAddr, watch: Watch) -> Result<Self, BuildError> {
        Self::among(settings, listen, watch, Company::none())
    }

    /// The same for one that may be one of several.
    ///
    /// # Errors
    /// [`BuildError`]
    pub fn among(
        settings: Settings,
        listen: SocketAddr,
        watch: Watch,
        company: Company,
    ) -> Result<Self, BuildError> {
        let Company { stores, membership, peering } = company;
        let tasks = TaskTracker::new();
        let servers = settings.servers.iter().map(|s| s.name.as_str());
        let endpoints = Endpoint::all(&settings);
        let metrics = Arc::new(Metrics::new(servers, endpoints.iter().map(|e| &*e.path)));
        let guard = match watch {
            Watch::Program(program) => Guard::new(program, tasks.clone()),
            Watch::Nobody => Guard::none(),
        };
        let connector = Connector::new(HttpClient::new(), guard, tasks.clone(), metrics.clone())
            .with_patience(Patience::within(settings.shutdown.children));
        let sealer = Arc::new(seal_keys::sealer(settings.state_dir.as_deref()));
        let relay = Relay::new(
            &settings,
            stores,
            membership,
            sealer.clone(),
            connector,
            tasks.clone(),
            metrics.clone(),
        );
        let draining = CancellationToken::new();
        let forwarder = peering.as_ref().map(|peering| peering.forwarder(&tasks));
        let edge = Edge::new(
            &settings,
            listen,
            relay.clone(),
            tasks.clone(),
            metrics.clone(),
            forwarder,
            draining.clone(),
        )?;
        let closing = CancellationToken::new();
        Ok(Self { settings, sealer, relay, edge, peering, metrics, tasks, draining, closing })
    }

    /// What carries its messages, for one who reads the config again.
    pub fn relay(&self) -> Arc<Relay> {
        self.relay.clone()
    }

    /// What it counts.
    pub fn metrics(&self) -> Arc<Metrics> {
        self.metrics.clone()
    }

    /// Takes changes of the config into force from now on.
    pub fn follow(&self, reload: Reload) -> Reloading {
        reload.start(self, &self.tasks, self.closing.clone())
    }

    /// Serves until `stop`, then drains: readiness off, serve on for `shutdown.delay`, let running calls end for
    /// at most `shutdown.drain`, take leave of servers.
    pub async fn serve(self, listeners: Listeners, stop: impl Future<Output = Stop>) {
        let Self { settings, sealer, relay, edge, peering, metrics, tasks, draining, closing } = self;
        let (readiness, shown) = watch::channel(Readiness::Ready);
        let ended = CancellationToken::new();
        let watched = async {
            if let Some(listener) = listeners.admin {
                let state = admin::State { readiness: shown, metrics: metrics.clone() };
                // Apart from all other tasks: these end last, and a scraper's idle connection holds nothing up.
                let probes = TaskTracker::new();
                admin::serve(listener, state, probes.clone(), ended.cancelled()).await;
                probes.close();
                let _ = tokio::time::timeout(LAST_WORDS, probes.wait()).await;
            }
        };
        tasks.spawn(relay.clone().sweep_until(closing.clone()));
        // Peers are served to the very end: whoever finds nobody here takes this replica for dead.
        let peers = peer::Stop::default();
        let (hops, forwarded) = (TaskTracker::new(), edge.router());
        if let Some(peering) = peering {
            hops.spawn(peering.serve(forwarded, hops.clone(), peers.clone()));
        }
        // Apart from all other tasks: the lease is held until everything else has ended.
        let leased = CancellationToken::new();
        let holding = TaskTracker::new();
        if relay.has_peers() {
            holding.spawn(relay.clone().keep_lease_until(leased.clone()));
            tasks.spawn(relay.clone().hear_peers_until(closing.clone()));
        }
        tasks.spawn(relay.clone().announce_until(closing.clone()));
        tasks.spawn(relay.clone().keep_catalog_until(closing.clone()));
        if let Some(dir) = settings.state_dir.clone() {
            tasks.spawn(seal_keys::renew_until(sealer, dir, closing.clone()));
        }
        let limits = Arc::new(settings.limits.clone());
        let accepting =
            serve::serve(listeners.callers, edge.router(), limits, tasks.clone(), closing.clone());
        let leaving = async {
            let stop = stop.await;
            readiness.send_replace(Readiness::Draining);
            draining.cancel();
            metrics.draining();
            if stop == Stop::Announced {
                tokio::time::sleep(settings.shutdown.delay).await;
            }
            relay.shut_down(settings.shutdown.drain).await;
            closing.cancel();
            tasks.close();
            let patience = settings.shutdown.children + LAST_WORDS;
            if tokio::time::timeout(patience, tasks.wait()).await.is_err() {
                tracing::warn!("some tasks did not end in time");
            }
            leased.cancel();
            peers.finish.cancel();
            hops.close();
            if tokio::time::timeout(LAST_WORDS, hops.wait()).await.is_err() {
                peers.end.cancel();
            }
            holding.close();
            let _ = tokio::time::timeout(LAST_WORDS, holding.wait()).await;
            ended.cancel();
        };
        tokio::join!(accepting, watched, leaving);
    }
}
