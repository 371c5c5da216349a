//! Redis, as one server: every promise of the suite, each on a server of its own.

mod cluster;
mod formats;
mod sealed;
mod sentinel;
mod tls;
mod trouble;
mod weight;

use std::sync::Arc;
use std::time::Duration;

use mcpgate::settings::RedisSettings;
use mcpgate::store::redis::{Connection, StoreState};
use mcpgate::store::seal::SealKey;
use mcpgate::store::{RedisBus, RedisLeases, RedisStore, Sealer};
use mcpgate::telemetry::metrics::Metrics;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::Parts;
use crate::redis_server::RedisServer;

/// What one replica has of the store.
pub(crate) struct Replica {
    pub(crate) connection: Arc<Connection>,
    pub(crate) store: Arc<RedisStore>,
    pub(crate) leases: Arc<RedisLeases>,
    pub(crate) bus: Arc<RedisBus>,
    pub(crate) metrics: Arc<Metrics>,
    _stop: DropGuard,
}

/// How long a test waits for something that is bound to happen.
pub(crate) const SOON: Duration = Duration::from_secs(60);

// === impl Replica ===

impl Replica {
    /// A replica with the one key that all replicas of these tests have.
    pub(crate) fn of(settings: &RedisSettings) -> Self {
        Self::with_keys(settings, &[one_key()])
    }

    pub(crate) fn with_keys(settings: &RedisSettings, keys: &[SealKey]) -> Self {
        let (tasks, stop, metrics) =
            (TaskTracker::new(), CancellationToken::new(), Arc::new(Metrics::default()));
        let connection = Connection::start(settings, metrics.clone(), &tasks, stop.clone());
        let store = Arc::new(RedisStore::new(connection.clone(), Arc::new(Sealer::new(keys))));
        let leases = Arc::new(RedisLeases::new(connection.clone()));
        let bus = RedisBus::start(connection.clone(), &tasks, stop.clone());
        Self { connection, store, leases, bus, metrics, _stop: stop.drop_guard() }
    }

    /// Waits until the store is in such a state.
    pub(crate) async fn is(&self, wanted: impl Fn(&StoreState) -> bool) -> StoreState {
        let mut state = self.connection.state();
        let found = tokio::time::timeout(SOON, state.wait_for(wanted)).await;
        *found.unwrap_or_else(|_| panic!("{:?}", self.connection)).expect("it is kept")
    }

    pub(crate) async fn is_connected(&self) {
        self.is(|state| *state == StoreState::Connected).await;
    }

    /// Waits until it hears what others publish.
    pub(crate) async fn listens(&self) {
        let mut listening = self.bus.listening();
        let heard = tokio::time::timeout(SOON, listening.wait_for(|listening| *listening)).await;
        heard.expect("it listens soon").expect("it is kept");
    }

    /// Its parts, and what they live on.
    pub(crate) fn into_parts(self, server: impl Send + 'static) -> Parts {
        Parts {
            sessions: self.store.clone(),
            log: self.store.clone(),
            leases: self.leases.clone(),
            bus: self.bus.clone(),
            _beneath: Some(Box::new((self, server))),
        }
    }
}

pub(crate) fn one_key() -> SealKey {
    SealKey::of(&[7; 32]).expect("a key")
}

async fn parts() -> Parts {
    let server = RedisServer::start().await;
    let replica = Replica::of(&server.settings());
    replica.is_connected().await;
    replica.into_parts(server)
}

all_promises!(crate::redis::parts().await);
