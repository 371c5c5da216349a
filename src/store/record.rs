//! What the store knows of a session: enough for another replica to go on with it.

use std::collections::BTreeSet;
use std::time::SystemTime;

/// The store's name of a session. Never the session id itself; who reads the store cannot use a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey(pub [u8; 32]);

/// Counts the owners a session has had; a write of an earlier one is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u32);

/// A running gateway process; new at each start.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReplicaId(pub Box<str>);

/// A session's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Digest of principal, tenant and endpoint.
    pub binding: [u8; 32],
    /// The endpoint's path.
    pub endpoint: Box<str>,
    /// The raw params of `initialize`.
    pub initialize: Box<str>,
    /// The negotiated revision's date.
    pub revision: Box<str>,
    /// Whether `notifications/initialized` came.
    pub initialized: bool,
    /// The log level asked for.
    pub log_level: Option<Box<str>>,
    /// URIs subscribed to.
    pub subscriptions: BTreeSet<String>,
    /// When it began.
    pub created: SystemTime,
    /// Last activity that was written.
    pub touched: SystemTime,
    /// Who owns it; `None` once released.
    pub owner: Option<ReplicaId>,
    /// How many owners it has had.
    pub epoch: Epoch,
}

impl Epoch {
    /// Of a new session.
    pub const FIRST: Self = Self(1);

    /// The next owner's.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}
