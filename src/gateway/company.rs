//! Whether this replica is the only one, and what it needs to live among others.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::net::TcpListener;
use tokio_util::task::TaskTracker;

use crate::http::forward::{ClusterKeys, Forwarder};
use crate::http::peer::{
    ClientLimits, Identity, KeyHash, NoIdentity, PeerClient, PeerListener, Peers, Replica, ServeLimits, Stop,
    Strangers, is_proven, proof,
};
use crate::http::serve::Router;
use crate::session::{Membership, SessionKeys, Tenure};
use crate::store::leases::{Counts, Lease, Leases};
use crate::store::seal::SealKey;
use crate::store::{Registry, ReplicaId, Stores};

/// Where sessions are kept, and who else is there.
pub struct Company {
    pub(super) stores: Stores,
    pub(super) membership: Membership,
    pub(super) peering: Option<Peering>,
}

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
}

/// The formats of stored values that this version reads, oldest and newest.
pub const FORMATS: (u16, u16) = (1, 1);

// === impl Company ===

impl Company {
    /// That of the only replica, whose sessions end with it.
    pub fn none() -> Self {
        Self { stores: Stores::memory(), membership: Membership::alone(), peering: None }
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
            counts: Counts::default(),
        };
        let session_keys = Arc::new(SessionKeys::new(&keys));
        let membership = Membership::among_peers(said, Tenure::new(lease), session_keys);
        let keys = Arc::new(ArcSwap::from_pointee(raw));
        let leases = stores.leases.clone();
        let peering = Some(Peering { identity, this, listener, keys, lease, leases });
        Ok(Self { stores, membership, peering })
    }

    /// This replica's lease, as it may count on it.
    pub fn tenure(&self) -> Arc<Tenure> {
        self.membership.tenure.clone()
    }
}

// === impl Peering ===

impl Peering {
    /// The way to the others.
    pub(super) fn forwarder(&self, tasks: &TaskTracker) -> Forwarder {
        let client = PeerClient::new(self.identity.clone(), ClientLimits::default(), tasks.clone());
        Forwarder::new(client, self.this.clone(), self.keys.clone(), self.lease)
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

/// Knows peers by their leases.
struct Leased {
    leases: Arc<dyn Leases>,
    keys: ClusterKeys,
    /// Until when a key is known to be a peer's; no more than there are replicas.
    known: Registry<[u8; 32], Instant>,
    good_for: Duration,
}

impl Peers for Leased {
    fn is_peer(&self, key_hash: KeyHash) -> BoxFuture<'_, bool> {
        async move {
            if self.known.get(&key_hash.0).is_some_and(|until| Instant::now() < until) {
                return true;
            }
            let Ok(all) = self.leases.all().await else { return false };
            let keys = self.keys.load();
            let its = |lease: &&Lease| lease.key_hash == key_hash.0;
            let known = all.iter().find(its).is_some_and(|lease| {
                Replica::parse(&lease.replica.0)
                    .is_ok_and(|replica| is_proven(keys.iter(), &replica, key_hash, &lease.proof))
            });
            self.known.retain(|until| Instant::now() < *until);
            if known {
                self.known.insert(key_hash.0, Instant::now() + self.good_for);
            }
            known
        }
        .boxed()
    }
}
