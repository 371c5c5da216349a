//! The secrets that replicas know each other by. They can be replaced, and never printed.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::http::peer::{KeyHash, Replica, is_proven};

/// The secrets that replicas know each other by; the first proves, all verify. Clones share them.
#[derive(Clone)]
pub struct ClusterKeys(Arc<ArcSwap<InForce>>);

/// Those of one moment.
pub(super) struct InForce(Box<[[u8; 32]]>);

// === impl ClusterKeys ===

impl ClusterKeys {
    /// These keys.
    pub fn new(keys: impl IntoIterator<Item = [u8; 32]>) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(InForce(keys.into_iter().collect()))))
    }

    /// Takes these keys into force.
    pub fn replace(&self, keys: impl IntoIterator<Item = [u8; 32]>) {
        self.0.store(Arc::new(InForce(keys.into_iter().collect())));
    }

    /// Whether one of them proves that `key_hash` is the key of the replica with this id.
    pub fn prove(&self, replica: &str, key_hash: [u8; 32], proof: &[u8; 32]) -> bool {
        Replica::parse(replica).is_ok_and(|replica| self.0.load().prove(&replica, KeyHash(key_hash), proof))
    }

    /// Those of this moment.
    pub(super) fn in_force(&self) -> Arc<InForce> {
        self.0.load_full()
    }
}

impl fmt::Debug for ClusterKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ClusterKeys").field(&self.0.load().0.len()).finish()
    }
}

// === impl InForce ===

impl InForce {
    /// Whether one of them made this proof.
    pub(super) fn prove(&self, replica: &Replica, key_hash: KeyHash, proof: &[u8; 32]) -> bool {
        is_proven(self.0.iter(), replica, key_hash, proof)
    }
}

impl fmt::Debug for InForce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InForce").field(&self.0.len()).finish()
    }
}
