//! Why a forwarded request has no answer, and what is surely known of it: the forwarder decides by that whether it
//! may be sent again and whether its owner may be taken for dead.

use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Why a forwarded request has no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum HopError {
    /// Nothing listens at the address: nothing was delivered, and the owner is dead.
    #[error("nothing listens at the replica's address any more")]
    Refused,
    /// Another replica listens at the address: nothing was delivered, and the owner is dead.
    #[error("another process than the replica meant listens at its address")]
    Stranger,
    /// No cluster key in force here proves the replica's lease: nothing was sent, and nothing is known of the owner.
    #[error(
        "no cluster key of this replica proves the other's lease; rotate cluster keys in three steps: the new one behind the old one everywhere, then in front everywhere, then the old one out"
    )]
    Unproven,
    /// Nothing was delivered, and nothing is known of the owner.
    #[error("the replica cannot be reached: {0}")]
    Unreachable(NoWay),
    /// The replica answered that it is not the owner meant, before anything ran.
    #[error("the replica is not the owner of the session")]
    NotOwner,
    /// All streams to the replica are taken, there or here; nothing was delivered.
    #[error("the replica takes no more requests at once")]
    Busy,
    /// The connection broke after the request may have been delivered: it must never be sent again.
    #[error("the connection to the replica broke before its answer: {0}")]
    Broken(Arc<str>),
}

/// Why a replica cannot be reached.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NoWay {
    /// No TCP connection in time.
    #[error("it accepted no connection within {0:?}")]
    ConnectTimeout(Duration),
    /// No TCP connection, for another reason than refusal.
    #[error("no connection: {0}")]
    Connect(Arc<io::Error>),
    /// It accepted, and then took too long to show itself.
    #[error("it did not finish the handshake within {0:?}")]
    HandshakeTimeout(Duration),
    /// It accepted, and then the handshake failed otherwise.
    #[error("the handshake failed: {0}")]
    Handshake(Arc<str>),
    /// It knew our key not to be a peer's, or ended.
    #[error("it closed the connection before it took a request; it may not see this replica's lease")]
    Unwelcome,
    /// It closes its connections.
    #[error("it is closing its connections")]
    Leaving,
    /// This replica is ending.
    #[error("this replica is closing its connections")]
    Ending,
    /// It cannot read how the request was forwarded, and did nothing with it.
    #[error("it does not understand how this replica forwards; bring all replicas to one version")]
    OtherFormat,
    /// The request cannot be written.
    #[error("the request cannot be forwarded: {0}")]
    Unwritable(Arc<str>),
}

/// What is known of a request without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// It surely did not arrive: it may be sent again.
    NotDelivered,
    /// It may have.
    Unknown,
}

// === impl HopError ===

impl HopError {
    /// Whether the request may have been delivered.
    pub fn delivery(&self) -> Delivery {
        match self {
            Self::Broken(_) => Delivery::Unknown,
            Self::Refused
            | Self::Stranger
            | Self::Unproven
            | Self::Unreachable(_)
            | Self::NotOwner
            | Self::Busy => Delivery::NotDelivered,
        }
    }

    /// Whether the replica meant is proven dead, so that its sessions may be adopted at once.
    pub fn proves_death(&self) -> bool {
        matches!(self, Self::Refused | Self::Stranger)
    }
}
