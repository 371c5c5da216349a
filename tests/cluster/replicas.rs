//! Replicas in the test's process, over one store in its memory.

use std::sync::Arc;
use std::time::Duration;

use mcpgate::session::{Membership, SessionKeys, Tenure};
use mcpgate::store::leases::{Counts, Lease};
use mcpgate::store::seal::SealKey;
use mcpgate::store::{ReplicaId, Stores};

use crate::client::Client;
use crate::cut_store::Way;
use crate::gateway::{Setup, TestGateway};

/// How long a lease is held without a heartbeat.
pub(crate) const LEASE: Duration = Duration::from_millis(500);

/// The store and the keys that replicas share.
pub(crate) struct Cluster {
    pub(crate) store: Stores,
    key: SealKey,
}

/// One replica.
pub(crate) struct Replica {
    pub(crate) gateway: TestGateway,
    /// Its way to the store.
    pub(crate) way: Arc<Way>,
}

// === impl Cluster ===

impl Cluster {
    pub(crate) fn new() -> Self {
        Self { store: Stores::memory(), key: SealKey::fresh() }
    }

    /// Starts a replica; it may adopt sessions when this returns.
    pub(crate) async fn replica(&self, setup: Setup) -> Replica {
        let way = Way::to(&self.store);
        let lease = Lease {
            replica: ReplicaId::fresh(),
            address: "127.0.0.1:1".into(),
            key_hash: [0; 32],
            proof: [0; 32],
            formats: (1, 1),
            config_hash: [0; 32],
            counts: Counts::default(),
        };
        let keys = Arc::new(SessionKeys::new(std::slice::from_ref(&self.key)));
        let membership = Membership::among_peers(lease, Tenure::new(LEASE), keys);
        let tenure = membership.tenure.clone();
        let gateway = setup.start_over(way.stores(), membership).await;
        let ready = async {
            while !tenure.may_adopt() || tenure.is_forgetful() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(crate::client::SOON, ready).await.expect("it holds its lease");
        Replica { gateway, way }
    }
}

// === impl Replica ===

impl Replica {
    /// The same caller at this replica: with its session, at another address.
    pub(crate) fn caller(&self, client: &Client) -> Client {
        client.clone().via(self.gateway.address)
    }
}
