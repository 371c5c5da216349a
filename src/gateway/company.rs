//! Whether this replica is the only one, and what it needs to live among others.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::net::TcpListener;
use tokio_util::task::TaskTracker;

use super::ground::{Ground, seal_keys_of};
use crate::http::forward::{ClusterKeys, Forwarder};
use crate::http::peer::{
    Acquaintance, ClientLimits, Identity, KeyHash, NoIdentity, PeerClient, PeerListener, Peers, Replica,
    ServeLimits, Stop, Strangers, proof,
};
use crate::http::serve::Router;
use crate::session::{Membership, Said, SessionKeys, Tenure};
use crate::settings::{ClusterSettings, Settings, StoreSettings};
use crate::store::leases::{Held, Lease, Leases};
use crate::store::redis::{Connection, RedisBus, RedisLeases, RedisStore, StoreState};
use crate::store::seal::SealKey;
use crate::store::{Registry, ReplicaId, Stores};

/// Where sessions are kept, and who else is there.
pub struct Company {
    pub(super) stores: Stores,
    pub(super) membership: Membership,
    pub(super) peering: Option<Peering>,
    pub(super) store: Option<StoreCondition>,
}

/// What is known of a store that can fail, for those who ask whether this replica is ready.
#[derive(Clone, Debug)]
pub(super) struct StoreCondition(Arc<Connection>);

/// What this replica says and needs among others.
#[derive(Debug)]
pub struct Joining {
    /// Where peers reach it: host and port.
    pub address: String,
    /// The socket that is reached there.
    pub listener: TcpListener,
    /// The secrets that replicas share, the newest first; at least one.
    pub keys: Vec<SealKey>,
    /// How long its lease is held without a heartbeat.
    pub lease: Duration,
    /// Tells its config from others'.
    pub config_hash: [u8; 32],
}

/// The way to and from peers.
pub(super) struct Peering {
    identity: Arc<Identity>,
    this: Replica,
    listener: TcpListener,
    keys: ClusterKeys,
    lease: Duration,
    leases: Arc<dyn Leases>,
    said: Arc<Said>,
}

/// What peers know this replica by, as far as it follows the config.
#[derive(Clone, Debug)]
pub(super) struct Standing {
    keys: ClusterKeys,
    said: Arc<Said>,
    this: Replica,
    key_hash: KeyHash,
}

/// The formats of stored values that this version reads, oldest and newest.
pub const FORMATS: (u16, u16) = (1, 1);

// === impl Company ===

impl Company {
    /// That of the only replica, whose sessions end with it.
    pub fn none() -> Self {
        Self { stores: Stores::memory(), membership: Membership::alone(), peering: None, store: None }
    }

    /// That of one of several replicas, by its settings; connects in the background. Other replicas come in at `listener`.
    ///
    /// # Errors
    /// [`NoIdentity`] if no key could be made.
    pub(super) fn configured(
        settings: &Settings,
        listener: TcpListener,
        ground: &Ground,
    ) -> Result<Self, NoIdentity> {
        let (StoreSettings::Redis(redis), Some(cluster)) = (&settings.store, &settings.cluster) else {
            return Ok(Self::none());
        };
        let connection =
            Connection::start(redis, ground.metrics.clone(), &ground.lasting, ground.last.clone());
        let store = Arc::new(RedisStore::new(connection.clone(), ground.sealer.clone()));
        let stores = Stores {
            sessions: store.clone(),
            log: store,
            leases: Arc::new(RedisLeases::new(connection.clone())),
            bus: RedisBus::start(connection.clone(), &ground.lasting, ground.last.clone()),
        };
        let bound = listener.local_addr().map(|address| address.port()).unwrap_or_default();
        // At port 0 the port that was bound counts.
        let address = match cluster.advertise.rsplit_once(':') {
            Some((host, "0")) => format!("{host}:{bound}"),
            _ => cluster.advertise.clone(),
        };
        let keys = seal_keys_of(&cluster.keys);
        let joining = Joining { address, listener, keys, lease: cluster.lease, config_hash: settings.hash() };
        let joined = Self::join(stores, joining)?;
        Ok(Self { store: Some(StoreCondition(connection)), ..joined })
    }

    /// That of one of several replicas which share `stores`.
    ///
    /// # Errors
    /// [`NoIdentity`] if no key could be made.
    pub fn join(stores: Stores, joining: Joining) -> Result<Self, NoIdentity> {
        let Joining { address, listener, keys, lease, config_hash } = joining;
        let identity = Arc::new(Identity::generate()?);
        let replica = ReplicaId::fresh();
        let this = Replica::parse(&replica.0).map_err(|_| NoIdentity)?;
        let raw: Vec<[u8; 32]> = keys.iter().map(|key| *key.expose()).collect();
        let first = raw.first().ok_or(NoIdentity)?;
        let said = Lease {
            replica,
            address: address.into(),
            key_hash: identity.key_hash().0,
            proof: proof(first, &this, identity.key_hash()),
            formats: FORMATS,
            config_hash,
            held: Held::default(),
        };
        let session_keys = Arc::new(SessionKeys::new(&keys));
        let membership = Membership::among_peers(said, Tenure::new(lease), session_keys);
        let keys = ClusterKeys::new(raw);
        let leases = stores.leases.clone();
        let peering =
            membership.said().map(|said| Peering { identity, this, listener, keys, lease, leases, said });
        Ok(Self { stores, membership, peering, store: None })
    }

    /// This replica's lease, as it may count on it.
    pub fn tenure(&self) -> Arc<Tenure> {
        self.membership.tenure.clone()
    }
}

// === impl StoreCondition ===

impl StoreCondition {
    /// What is wrong with the store, in words; none while it is connected.
    pub(super) fn trouble(&self) -> Option<String> {
        match &*self.0.state().borrow() {
            StoreState::Connected => None,
            StoreState::Connecting => Some("session store not connected yet".to_owned()),
            StoreState::Unreachable { since, why } => {
                Some(format!("session store unreachable for {} s: {why}", since.elapsed().as_secs()))
            }
        }
    }

    /// What an operator should know about it.
    pub(super) fn remarks(&self) -> Vec<String> {
        self.0.remarks().iter().map(ToString::to_string).collect()
    }
}

// === impl Peering ===

impl Peering {
    /// The secrets that peers know each other by.
    pub(super) fn keys(&self) -> ClusterKeys {
        self.keys.clone()
    }

    /// What peers know it by.
    pub(super) fn standing(&self) -> Standing {
        let (keys, said, this) = (self.keys.clone(), self.said.clone(), self.this.clone());
        Standing { keys, said, this, key_hash: self.identity.key_hash() }
    }

    /// The way to the others; a caller that is sent back comes after `retry`.
    pub(super) fn forwarder(&self, retry: Duration) -> Forwarder {
        // Nobody waits for its connections: they are kept open for what may come, and end with the process.
        let limits = ClientLimits::within(self.lease);
        let client = PeerClient::new(self.identity.clone(), limits, TaskTracker::new());
        Forwarder::new(client, self.this.clone(), self.keys.clone(), self.lease, retry)
    }

    /// The leases of all replicas.
    pub(super) fn leases(&self) -> Arc<dyn Leases> {
        self.leases.clone()
    }

    /// This replica.
    pub(super) fn replica(&self) -> ReplicaId {
        ReplicaId(self.this.as_str().into())
    }

    /// Takes forwarded requests to `router` until `stop`.
    pub(super) async fn serve(self, router: Router, tasks: TaskTracker, stop: Stop) {
        let peers =
            Leased { leases: self.leases, keys: self.keys, known: Registry::new(), good_for: self.lease };
        let listener = PeerListener {
            identity: self.identity,
            peers: Arc::new(peers),
            router,
            limits: ServeLimits::default(),
            strangers: Arc::new(Strangers::default()),
            tasks,
        };
        listener.serve(self.listener, stop).await;
    }
}

// === impl Standing ===

impl Standing {
    /// Takes the keys of a changed config into force, and says in the lease what follows from it.
    pub(super) fn follow(&self, settings: &Settings, cluster: &ClusterSettings) {
        let Some(first) = cluster.keys.first() else { return };
        self.keys.replace(cluster.keys.iter().map(|key| *key.expose()));
        // A key that leaves must prove nothing that is still held.
        self.said.follow(proof(first.expose(), &self.this, self.key_hash), settings.hash());
    }
}

/// Knows peers by their leases.
struct Leased {
    leases: Arc<dyn Leases>,
    keys: ClusterKeys,
    /// Until when a key is known to be a peer's; no more than there are replicas.
    known: Registry<[u8; 32], Instant>,
    good_for: Duration,
}

impl Peers for Leased {
    fn known_as(&self, key_hash: KeyHash) -> BoxFuture<'_, Acquaintance> {
        async move {
            if self.known.get(&key_hash.0).is_some_and(|until| Instant::now() < until) {
                return Acquaintance::Peer;
            }
            let all = match self.leases.all().await {
                Ok(all) => all,
                Err(error) => return Acquaintance::NotAsked(error.to_string().into()),
            };
            let its = |lease: &&Lease| lease.key_hash == key_hash.0;
            let proven = |lease: &Lease| self.keys.prove(&lease.replica.0, lease.key_hash, &lease.proof);
            let known = all.iter().find(its).is_some_and(proven);
            self.known.retain(|until| Instant::now() < *until);
            if !known {
                return Acquaintance::Stranger;
            }
            self.known.insert(key_hash.0, Instant::now() + self.good_for);
            Acquaintance::Peer
        }
        .boxed()
    }
}
