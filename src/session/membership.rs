//! This replica among the others: its name, its lease, and how it names sessions in the store.

use std::sync::Arc;

use super::keys::SessionKeys;
use super::tenure::Tenure;
use crate::store::ReplicaId;
use crate::store::leases::Lease;

/// This replica among the others.
#[derive(Clone, Debug)]
pub struct Membership {
    /// Who it is; new at each start.
    pub replica: ReplicaId,
    /// Its lease, as it may count on it.
    pub tenure: Arc<Tenure>,
    /// How it names sessions in the store.
    pub keys: Arc<SessionKeys>,
    /// Whether there may be others.
    pub company: Company,
}

/// Whether there may be other replicas.
#[derive(Clone, Debug)]
pub enum Company {
    /// The store is this process's own: nobody else can own or adopt anything.
    Alone,
    /// Others share the store; what it says of itself in its lease.
    Peers(Box<Lease>),
}

// === impl Membership ===

impl Membership {
    /// That of the only replica.
    pub fn alone() -> Self {
        Self {
            replica: ReplicaId::fresh(),
            tenure: Arc::new(Tenure::alone()),
            keys: Arc::new(SessionKeys::new(&[])),
            company: Company::Alone,
        }
    }

    /// That of one of several, which says `lease` of itself and names sessions with `keys`.
    pub fn among_peers(lease: Lease, tenure: Tenure, keys: Arc<SessionKeys>) -> Self {
        let (replica, tenure) = (lease.replica.clone(), Arc::new(tenure));
        Self { replica, tenure, keys, company: Company::Peers(Box::new(lease)) }
    }
}
