//! The change bus: what one replica tells all others, this one included.
//!
//! Hints, not facts: messages may be lost, and whoever listens also looks for itself from time to time. Replicas hear
//! here of changed lists, of sessions that ended, moved or are wanted elsewhere, and of revocations.

use tokio::sync::broadcast;

use super::{Epoch, ReplicaId, SessionKey, Stored};

/// One thing that changed somewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    /// A server's lists.
    Catalog {
        /// The server's name.
        server: Box<str>,
        /// Who says so, and needs not be told.
        by: ReplicaId,
    },
    /// A session ended.
    SessionEnded(SessionKey),
    /// A session has another owner.
    Adopted {
        /// The session.
        key: SessionKey,
        /// In which epoch: an owner of an earlier one is none any more.
        epoch: Epoch,
    },
    /// A replica that cannot reach a session's owner asks the owner to release it.
    Wanted(SessionKey),
    /// The credentials of these principals count no more.
    Revoked(Principals),
    /// Those of these count again.
    Restored(Principals),
}

/// Digests of principals, as sessions are bound to them; at most [`MOST_PRINCIPALS`].
pub type Principals = Box<[[u8; 32]]>;

/// How many principals one message names.
pub const MOST_PRINCIPALS: usize = 256;

/// Carries changes between replicas.
pub trait ChangeBus: Send + Sync {
    /// Tells everyone who listens.
    fn publish(&self, changed: Changed) -> Stored<'_, ()>;
    /// Hears what is published from now on. Who falls behind too far loses the oldest, and is told how many.
    fn subscribe(&self) -> broadcast::Receiver<Changed>;
}
