//! Replicas of one gateway, as configured.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// How replicas find and trust each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSettings {
    /// Where other replicas come in.
    pub listen: SocketAddr,
    /// What other replicas dial: host and port. With `listen` at port 0 it says so too, and the port that was
    /// bound counts.
    pub advertise: String,
    /// The keys that replicas share, newest first; never none.
    pub keys: Vec<ClusterKey>,
    /// How long a replica that says nothing counts as alive.
    pub lease: Duration,
}

/// Thirty-two secret bytes that all replicas share.
#[derive(Clone, PartialEq, Eq)]
pub struct ClusterKey([u8; 32]);

/// Where other replicas come in, unless the config says otherwise.
pub(super) const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 8081);
/// How long a lease lasts, unless the config says otherwise.
pub(super) const LEASE: Duration = Duration::from_secs(5);

// === impl ClusterKey ===

impl ClusterKey {
    /// The key of these bytes.
    pub fn of(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Its bytes, to be kept secret.
    pub fn expose(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for ClusterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterKey(..)")
    }
}
