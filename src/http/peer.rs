//! The hop: how replicas forward requests of sessions that another replica owns.
//!
//! Replicas speak HTTP/2 over TLS on a listener of their own. Each start makes a new key ([`Identity`]), and both
//! sides pin the other's before anything is sent: the sender by the hash in the owner's lease, the owner by asking
//! [`Peers`]. Knows requests and answers only; which replica owns what, and what follows from a [`HopError`], is
//! the forwarder's to say.

mod client;
mod error;
mod gathered;
mod hop;
mod identity;
mod serve;
mod strangers;
mod tls;
mod together;

use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::future::BoxFuture;

pub use client::body::{HopBody, HopBodyError};
pub use client::limits::ClientLimits;
pub use client::{Outgoing, PeerClient};
pub use error::{Delivery, HopError, NoWay};
pub(super) use hop::strip;
pub use hop::{Hop, MalformedHop, not_owner};
pub use identity::{Identity, KeyHash, NoIdentity, is_proven, proof};
pub use serve::{PeerListener, ServeLimits, Stop};
pub use strangers::Strangers;

/// The id of a replica, as its lease says it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Replica(Arc<str>);

/// This can be no id of a replica.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a replica's id is 1 to {LONGEST} letters, digits, `-`, `_` or `.`")]
pub struct MalformedReplica;

/// The longest id of a replica, in bytes.
const LONGEST: usize = 64;

/// Where a replica is reached, and whose key must be met there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerAddress {
    /// Which replica.
    pub replica: Replica,
    /// Where it listens for its peers.
    pub address: SocketAddr,
    /// The hash of its key.
    pub key_hash: KeyHash,
}

/// Tells peers from strangers, by the leases.
pub trait Peers: Send + Sync {
    /// Whether a live lease whose proof holds names this key. Asked once per connection, within the time limit of
    /// its handshake.
    fn known_as(&self, key_hash: KeyHash) -> BoxFuture<'_, Acquaintance>;
}

/// Whom a key belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acquaintance {
    /// Another replica.
    Peer,
    /// Nobody who holds a lease.
    Stranger,
    /// Unknown: those who keep the leases did not answer, for this reason.
    NotAsked(Box<str>),
}

// === impl Replica ===

impl Replica {
    /// Reads an id.
    ///
    /// # Errors
    /// [`MalformedReplica`] if it could not be written into a header.
    pub fn parse(id: &str) -> Result<Self, MalformedReplica> {
        let fits = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.');
        match id.len() {
            1..=LONGEST if id.bytes().all(fits) => Ok(Self(id.into())),
            _ => Err(MalformedReplica),
        }
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for Replica {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests;
