//! What the parts of a gateway are built on: its metrics, its keys, and what outlasts all other tasks.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::company::{Peering, Standing};
use super::seal_keys;
use crate::catalog::Endpoint;
use crate::session::SessionKeys;
use crate::settings::{ClusterKey, Settings};
use crate::store::Sealer;
use crate::store::seal::SealKey;
use crate::telemetry::Metrics;

/// What the parts of a gateway are built on.
pub(super) struct Ground {
    pub(super) metrics: Arc<Metrics>,
    pub(super) sealer: Arc<Sealer>,
    /// Goes on until all else has ended.
    pub(super) lasting: TaskTracker,
    /// Cancelled then.
    pub(super) last: CancellationToken,
}

/// Everything that is derived from the keys that replicas share; they rotate.
#[derive(Clone)]
pub(super) struct SharedKeys {
    pub(super) sealer: Arc<Sealer>,
    sessions: Arc<SessionKeys>,
    /// What peers know this replica by.
    peers: Option<Standing>,
}

// === impl Ground ===

impl Ground {
    pub(super) fn of(settings: &Settings) -> Self {
        let servers = settings.servers.iter().map(|s| s.name.as_str());
        let endpoints = Endpoint::all(settings);
        let metrics = Arc::new(Metrics::new(servers, endpoints.iter().map(|e| &*e.path)));
        let sealer = Arc::new(match &settings.cluster {
            // What one replica seals, another opens.
            Some(cluster) => Sealer::new(&seal_keys_of(&cluster.keys)),
            None => seal_keys::sealer(settings.state_dir.as_deref()),
        });
        Self { metrics, sealer, lasting: TaskTracker::new(), last: CancellationToken::new() }
    }
}

// === impl SharedKeys ===

impl SharedKeys {
    pub(super) fn new(sealer: Arc<Sealer>, sessions: Arc<SessionKeys>, peering: Option<&Peering>) -> Self {
        Self { sealer, sessions, peers: peering.map(Peering::standing) }
    }

    /// Takes the keys of a changed config into force, and tells peers what has changed.
    pub(super) fn follow(&self, settings: &Settings) {
        let Some(cluster) = &settings.cluster else { return };
        let keys = seal_keys_of(&cluster.keys);
        self.sealer.replace(&keys);
        self.sessions.replace(&keys);
        if let Some(peers) = &self.peers {
            peers.follow(settings, cluster);
        }
    }
}

/// The keys of a cluster, as those that seal.
pub(super) fn seal_keys_of(keys: &[ClusterKey]) -> Vec<SealKey> {
    keys.iter().filter_map(|key| SealKey::of(key.expose())).collect()
}
