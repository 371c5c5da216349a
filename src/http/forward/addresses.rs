//! Where replicas listen, as far as it was proven by a cluster key.

use std::net::SocketAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;

use super::cluster_keys::{ClusterKeys, InForce};
use crate::http::peer::{HopError, KeyHash, NoWay, PeerAddress, Replica};
use crate::session::Peer;

/// Proves what leases say, and remembers what was proven: a call needs it, and it changes with a replica's start.
#[derive(Debug)]
pub(super) struct Addresses {
    keys: ClusterKeys,
    /// At most [`MOST`]; over it all are forgotten, which costs a proof each.
    proven: ArcSwap<Vec<Proven>>,
}

/// What a lease says, and what it comes to.
#[derive(Clone, Debug)]
struct Proven {
    peer: Peer,
    /// The keys that were in force.
    by: Arc<InForce>,
    address: PeerAddress,
}

/// How many are remembered.
const MOST: usize = 256;

// === impl Addresses ===

impl Addresses {
    pub(super) fn new(keys: ClusterKeys) -> Self {
        Self { keys, proven: ArcSwap::default() }
    }

    /// Where a replica listens. To a lease that no cluster key proves nothing is sent.
    ///
    /// # Errors
    /// [`HopError`]
    pub(super) async fn of(&self, peer: &Peer) -> Result<PeerAddress, HopError> {
        let keys = self.keys.in_force();
        let known = |proven: &&Proven| Arc::ptr_eq(&proven.by, &keys) && proven.peer == *peer;
        if let Some(proven) = self.proven.load().iter().find(known) {
            return Ok(proven.address.clone());
        }
        let replica = Replica::parse(&peer.replica.0).map_err(|_| HopError::Unproven)?;
        let key_hash = KeyHash(peer.key_hash);
        if !keys.prove(&replica, key_hash, &peer.proof) {
            return Err(HopError::Unproven);
        }
        if let Ok(address) = peer.address.parse() {
            let address = PeerAddress { replica, address, key_hash };
            self.keep(&Proven { peer: peer.clone(), by: keys, address: address.clone() });
            return Ok(address);
        }
        // A name may come to mean another address.
        let address = resolve(&peer.address).await?;
        Ok(PeerAddress { replica, address, key_hash })
    }

    fn keep(&self, new: &Proven) {
        self.proven.rcu(|proven| {
            let fresh = |old: &&Proven| Arc::ptr_eq(&old.by, &new.by) && old.peer.replica != new.peer.replica;
            let mut kept: Vec<Proven> = match proven.len() {
                0..MOST => proven.iter().filter(fresh).cloned().collect(),
                _ => Vec::new(),
            };
            kept.push(new.clone());
            kept
        });
    }
}

async fn resolve(name: &str) -> Result<SocketAddr, HopError> {
    let connect = |error| HopError::Unreachable(NoWay::Connect(Arc::new(error)));
    let mut found = tokio::net::lookup_host(name).await.map_err(connect)?;
    found.next().ok_or_else(|| connect(std::io::Error::from(std::io::ErrorKind::NotFound)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::peer::{Delivery, proof};
    use crate::session::ReplicaId;

    fn peer(name: &str, key: &[u8; 32]) -> Peer {
        let proof = proof(key, &Replica::parse(name).expect("an id"), KeyHash([9; 32]));
        Peer { replica: ReplicaId(name.into()), address: "127.0.0.1:9".into(), key_hash: [9; 32], proof }
    }

    #[tokio::test]
    async fn what_was_proven_counts_as_long_as_its_key_does() {
        let (one, two) = ([1; 32], [2; 32]);
        let keys = ClusterKeys::new([one]);
        let addresses = Addresses::new(keys.clone());
        for _ in 0..2 {
            assert!(addresses.of(&peer("a", &one)).await.is_ok());
            let error = addresses.of(&peer("a", &two)).await.expect_err("another key made it");
            assert!(matches!(error, HopError::Unproven), "{error}");
            assert!(!error.proves_death(), "its replica may live, with keys that are not here yet");
            assert_eq!(error.delivery(), Delivery::NotDelivered);
        }
        keys.replace([two]);
        assert!(matches!(addresses.of(&peer("a", &one)).await, Err(HopError::Unproven)));
    }

    /// What is kept of cluster keys cannot be printed, in no base.
    #[tokio::test]
    async fn no_cluster_key_is_printed() {
        let key = [0xab; 32];
        let keys = ClusterKeys::new([key]);
        let addresses = Addresses::new(keys.clone());
        assert!(addresses.of(&peer("a", &key)).await.is_ok(), "one is remembered");
        for printed in [format!("{keys:?}"), format!("{addresses:?}"), format!("{addresses:#?}")] {
            let printed = printed.to_lowercase();
            assert!(
                printed.contains("clusterkeys") && !printed.contains("171") && !printed.contains("abab"),
                "{printed}"
            );
        }
    }

    #[tokio::test]
    async fn no_more_is_remembered_than_there_is_room_for() {
        let key = [1; 32];
        let addresses = Addresses::new(ClusterKeys::new([key]));
        for n in 0..MOST * 2 + 3 {
            assert!(addresses.of(&peer(&format!("r{n}"), &key)).await.is_ok());
            assert!(addresses.proven.load().len() <= MOST);
        }
    }
}
