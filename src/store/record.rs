//! What the store knows of a session: enough for another replica to go on with it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

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
    /// What an adopter needs to go on at servers, by their names.
    pub servers: BTreeMap<Box<str>, ServerState>,
    /// How long it may live.
    pub lifetime: Lifetime,
    /// How long ago it began, by the store's clock. One that is written anew after the store lost it brings its age.
    pub age: Duration,
    /// How long ago activity was last written, by the store's clock.
    pub idle_for: Duration,
    /// Who owns it; `None` once released.
    pub owner: Option<ReplicaId>,
    /// How many owners it has had.
    pub epoch: Epoch,
}

/// How long a session may live. The store ends it by its own clock, so that replicas need not agree on the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// Without activity.
    pub idle: Duration,
    /// In any case.
    pub max_age: Duration,
}

/// A session's state at one server.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerState {
    /// The revision negotiated with it.
    pub revision: Box<str>,
    /// The id of the session there, if the server gave one. A secret: it is stored before its first use, and sealed.
    pub session: Option<Box<str>>,
    /// The capabilities it declared, a raw JSON object; an adopter need not ask for them.
    pub capabilities: Box<str>,
    /// Where the session's standalone stream stood when that was last written, if the server gives its events ids. It
    /// may lag behind.
    pub cursor: Option<Box<str>>,
}

impl ReplicaId {
    /// That of a process that starts.
    pub fn fresh() -> Self {
        Self(uuid::Uuid::new_v4().to_string().into())
    }
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

// === impl ServerState ===

impl fmt::Debug for ServerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { revision, session, capabilities, cursor } = self;
        f.debug_struct("ServerState")
            .field("revision", revision)
            .field("session", &session.as_ref().map(|_| format_args!("..")))
            .field("capabilities", capabilities)
            .field("cursor", cursor)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// case-A05: the id of a session at a server is not printed.
    #[test]
    fn no_id_of_a_servers_session_is_printed() {
        let state = ServerState {
            revision: "2025-11-25".into(),
            session: Some("its-secret".into()),
            capabilities: "{}".into(),
            cursor: None,
        };
        let printed = format!("{state:?}");
        assert!(printed.contains("session: Some(..)") && !printed.contains("its-secret"), "{printed}");
    }
}
