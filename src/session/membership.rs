//! This replica among the others: its name, its lease, and how it names sessions in the store.

use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};

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
    Peers(Arc<Said>),
}

/// What this replica says of itself in its lease: it follows a changed config, and the next heartbeat writes it.
#[derive(Debug)]
pub struct Said {
    now: ArcSwap<Lease>,
    /// What the store holds, if it holds any.
    written: ArcSwapOption<Lease>,
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
        Self { replica, tenure, keys, company: Company::Peers(Arc::new(Said::new(lease))) }
    }

    /// What it says of itself; none if nobody else hears it.
    pub fn said(&self) -> Option<Arc<Said>> {
        match &self.company {
            Company::Alone => None,
            Company::Peers(said) => Some(said.clone()),
        }
    }
}

// === impl Said ===

impl Said {
    fn new(lease: Lease) -> Self {
        Self { now: ArcSwap::from_pointee(lease), written: ArcSwapOption::empty() }
    }

    /// Says these of itself from now on: what proves its key, and what tells its config from others'.
    pub fn follow(&self, proof: [u8; 32], config_hash: [u8; 32]) {
        let now = self.now.load();
        if now.proof != proof || now.config_hash != config_hash {
            self.now.store(Arc::new(Lease { proof, config_hash, ..Lease::clone(&now) }));
        }
    }

    /// What it says.
    pub(super) fn now(&self) -> Arc<Lease> {
        self.now.load_full()
    }

    /// What it says, if the store holds something else.
    pub(super) fn unwritten(&self) -> Option<Arc<Lease>> {
        let (now, written) = (self.now.load_full(), self.written.load());
        let same = written.as_ref().is_some_and(|written| Arc::ptr_eq(written, &now));
        (!same).then_some(now)
    }

    /// The store took `lease`.
    pub(super) fn wrote(&self, lease: Arc<Lease>) {
        self.written.store(Some(lease));
    }
}
