//! Replicas in the test's process, over one store in its memory.

use std::sync::Arc;
use std::time::Duration;

use mcpgate::gateway::{Company, Joining};
use mcpgate::settings::{ClusterKey, ClusterSettings};
use mcpgate::store::Stores;
use mcpgate::store::seal::SealKey;
use tokio::net::TcpListener;

use crate::client::Client;
use crate::cut_store::Way;
use crate::gateway::{Setup, TestGateway};

/// How long a lease is held without a heartbeat.
pub(crate) const LEASE: Duration = Duration::from_millis(500);

/// The store and the keys that replicas share.
pub(crate) struct Cluster {
    pub(crate) store: Stores,
    key: SealKey,
    lease: Duration,
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
        Self { store: Stores::memory(), key: SealKey::fresh(), lease: LEASE }
    }

    /// One whose leases outlast a busy machine's pauses, for tests in which no owner may change.
    pub(crate) fn steady() -> Self {
        Self { lease: LEASE * 4, ..Self::new() }
    }

    /// Starts a replica; it may adopt sessions when this returns.
    pub(crate) async fn replica(&self, setup: Setup) -> Replica {
        self.replica_of(setup, [0; 32]).await
    }

    /// The same, whose config has this hash.
    pub(crate) async fn replica_of(&self, setup: Setup, config_hash: [u8; 32]) -> Replica {
        let way = Way::to(&self.store);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let keys = vec![self.key.clone()];
        let shared = ClusterSettings {
            listen: listener.local_addr().unwrap(),
            advertise: address.clone(),
            keys: vec![ClusterKey::of(*self.key.expose())],
            lease: self.lease,
        };
        // What one replica seals, another opens.
        let setup = setup.with(|settings| settings.cluster = Some(shared));
        let joining = Joining { address, listener, keys, lease: self.lease, config_hash };
        let company = Company::join(way.stores(), joining).unwrap();
        let tenure = company.tenure();
        let gateway = setup.start_among(company).await;
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
    /// Waits until `others` go by what this replica holds at this moment.
    pub(crate) async fn tells(&self, others: &[&Self]) {
        self.way.until_told().await;
        futures_util::future::join_all(others.iter().map(|other| other.way.until_heard())).await;
    }

    /// The same caller at this replica: with its session, at another address.
    pub(crate) fn caller(&self, client: &Client) -> Client {
        client.clone().via(self.gateway.address)
    }
}
