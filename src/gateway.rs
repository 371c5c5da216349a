//! The composition root: the only place that knows every layer. Builds, serves, drains.

mod company;
mod condition;
mod ground;
mod reach;
mod reload;
mod seal_keys;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admin::{self, Readiness};
use crate::http::forward::Forwarder;
use crate::http::{BuildError, Edge, peer, serve};
use crate::relay::Relay;
use crate::settings::Settings;
use crate::telemetry::Metrics;
use crate::upstream::Connector;
use crate::upstream::http::HttpClient;
use crate::upstream::stdio::{Guard, Patience};

pub use company::{Company, FORMATS, Joining};
pub use reload::{Reload, Reloading};

use company::{Peering, StoreCondition};
use ground::{Ground, SharedKeys};
use reach::Reached;

/// How long the last tasks may take to end after everything was told to.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A gateway, ready to serve.
pub struct Gateway {
    settings: Settings,
    keys: SharedKeys,
    relay: Arc<Relay>,
    edge: Arc<Edge>,
    peering: Option<Peering>,
    forwarder: Option<Forwarder>,
    /// What is known of the store, if it can fail.
    store: Option<StoreCondition>,
    metrics: Arc<Metrics>,
    tasks: TaskTracker,
    /// Cancelled when no new sessions are taken.
    draining: CancellationToken,
    /// Cancelled when everything ends.
    closing: CancellationToken,
    /// What goes on until all else has ended: the connection to the store, and the lease there.
    lasting: TaskTracker,
    /// Cancelled then.
    last: CancellationToken,
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
    /// Puts a gateway together for a listener at `listen`. Nothing is started but tasks of its own. `peers` is where
    /// other replicas come in, if the store is one that they share.
    ///
    /// # Errors
    /// [`BuildError`]
    pub fn build(
        settings: Settings,
        listen: SocketAddr,
        watch: Watch,
        peers: Option<TcpListener>,
    ) -> Result<Self, BuildError> {
        let ground = Ground::of(&settings);
        let company = match peers {
            Some(listener) => Company::configured(&settings, listener, &ground)?,
            None => Company::none(),
        };
        Self::put_together(settings, listen, watch, ground, company)
    }

    /// The same for one whose company is made by hand.
    ///
    /// # Errors
    /// [`BuildError`]
    pub fn among(
        settings: Settings,
        listen: SocketAddr,
        watch: Watch,
        company: Company,
    ) -> Result<Self, BuildError> {
        let ground = Ground::of(&settings);
        Self::put_together(settings, listen, watch, ground, company)
    }

    fn put_together(
        settings: Settings,
        listen: SocketAddr,
        watch: Watch,
        ground: Ground,
        company: Company,
    ) -> Result<Self, BuildError> {
        let Ground { metrics, sealer, lasting, last } = ground;
        let Company { stores, membership, peering, store } = company;
        let tasks = TaskTracker::new();
        let guard = match watch {
            Watch::Program(program) => Guard::new(program, tasks.clone()),
            Watch::Nobody => Guard::none(),
        };
        let client = HttpClient::new();
        client.warn_of_missing_roots(&settings.servers);
        let connector = Connector::new(client, guard, tasks.clone(), metrics.clone())
            .with_patience(Patience::within(settings.shutdown.children));
        let keys = SharedKeys::new(sealer, membership.keys.clone(), peering.as_ref());
        let relay = Relay::new(
            &settings,
            stores,
            membership,
            keys.sealer.clone(),
            connector,
            tasks.clone(),
            metrics.clone(),
        );
        let draining = CancellationToken::new();
        let forwarder = peering.as_ref().map(|peering| peering.forwarder(settings.streams.retry));
        let edge = Edge::new(
            &settings,
            listen,
            relay.clone(),
            tasks.clone(),
            metrics.clone(),
            forwarder.clone(),
            draining.clone(),
        )?;
        let closing = CancellationToken::new();
        Ok(Self {
            settings,
            keys,
            relay,
            edge,
            peering,
            forwarder,
            store,
            metrics,
            tasks,
            draining,
            closing,
            lasting,
            last,
        })
    }

    /// What carries its messages, for one who reads the config again.
    pub fn relay(&self) -> Arc<Relay> {
        self.relay.clone()
    }

    /// Where its callers come in, for one who reads the config again.
    pub fn edge(&self) -> Arc<Edge> {
        self.edge.clone()
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
        let Self {
            settings,
            keys,
            relay,
            edge,
            peering,
            forwarder,
            store,
            metrics,
            tasks,
            draining,
            closing,
            lasting,
            last,
        } = self;
        let first = if relay.has_peers() { Readiness::Joining } else { Readiness::Ready };
        let (readiness, shown) = watch::channel(first);
        let readiness = Arc::new(readiness);
        let ended = CancellationToken::new();
        let reached = Reached::default();
        let shown_peers = reached.clone();
        let cluster_keys = peering.as_ref().map(Peering::keys);
        if let Some(keys) = cluster_keys.clone() {
            tasks.spawn(condition::warn_of_strangers(relay.clone(), keys, closing.clone()));
        }
        let watched = async {
            if let Some(listener) = listeners.admin {
                let state = admin::State {
                    readiness: shown,
                    metrics: metrics.clone(),
                    checks: condition::checks(&relay, store, cluster_keys, shown_peers),
                };
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
        if let (Some(peering), Some(forwarder)) = (&peering, forwarder) {
            tasks.spawn(peering.try_peers(forwarder, metrics.clone(), reached, closing.clone()));
        }
        if let Some(peering) = peering {
            hops.spawn(peering.serve(forwarded, hops.clone(), peers.clone()));
        }
        // Apart from all other tasks: the lease is held until everything else has ended.
        let leased = CancellationToken::new();
        let holding = TaskTracker::new();
        if relay.has_peers() {
            holding.spawn(relay.clone().keep_lease_until(leased.clone()));
            tasks.spawn(relay.clone().hear_peers_until(closing.clone()));
            tasks.spawn(condition::ready_when_joined(relay.clone(), readiness.clone()));
        }
        tasks.spawn(relay.clone().announce_until(closing.clone()));
        tasks.spawn(relay.clone().keep_catalog_until(closing.clone()));
        if let Some(dir) = settings.state_dir.clone().filter(|_| settings.cluster.is_none()) {
            tasks.spawn(seal_keys::renew_until(keys.sealer.clone(), dir, closing.clone()));
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
            let deadline = Instant::now() + settings.shutdown.drain;
            edge.send_back();
            relay.shut_down(settings.shutdown.drain).await;
            edge.leave(deadline).await;
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
            last.cancel();
            lasting.close();
            let _ = tokio::time::timeout(LAST_WORDS, lasting.wait()).await;
            ended.cancel();
        };
        tokio::join!(accepting, watched, leaving);
    }
}
