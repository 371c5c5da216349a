//! Session records: who owns a session, and what another replica needs to go on with it.
//!
//! Written by the owner (`session::sessions`), taken over by an adopter.

use super::record::ServerState;
use super::{Epoch, Record, ReplicaId, SessionKey, Stored};

/// One change of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// `notifications/initialized` came.
    Initialized,
    /// `logging/setLevel`.
    LogLevel(Box<str>),
    /// `resources/subscribe`.
    Subscribe(String),
    /// `resources/unsubscribe`.
    Unsubscribe(String),
    /// The state at a server, or that there is none any more.
    Server(Box<str>, Option<ServerState>),
    /// Where the standalone stream of a server's session stands. It is of no use beside the state of another session.
    Cursor(Box<str>, StreamCursor),
    /// Activity just now, coalesced by the writer.
    Touched,
}

/// Where the standalone stream of a session at a server stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamCursor {
    /// The id of the session there.
    pub session: Option<Box<str>>,
    /// The id of the last event.
    pub at: Box<str>,
}

/// Keeps session records.
pub trait SessionStore: Send + Sync {
    /// Writes a new record; it must be stored before the session's id leaves the process. `Fenced` if there is one
    /// of this key already.
    fn create(&self, key: SessionKey, record: Record) -> Stored<'_, ()>;
    /// Reads a record.
    fn load(&self, key: SessionKey) -> Stored<'_, Option<Record>>;
    /// Changes a record of this epoch.
    fn change(&self, key: SessionKey, epoch: Epoch, change: Change) -> Stored<'_, ()>;
    /// Takes the session over from the epoch last read, which stands for its owner: each owner has its own. Gives
    /// the new epoch; of two adopters one wins, the other is `Fenced`.
    fn adopt(&self, key: SessionKey, from: Epoch, by: ReplicaId) -> Stored<'_, Epoch>;
    /// Gives the session up: owner none, next epoch.
    fn release(&self, key: SessionKey, epoch: Epoch) -> Stored<'_, ()>;
    /// Ends the session: removes record and log; needs no epoch. `None` if it was gone. Nothing brings it back:
    /// every other write needs a record.
    fn remove(&self, key: SessionKey) -> Stored<'_, Option<Record>>;

    /// Ends up to `most` sessions whose time is over by the store's clock, and gives each to one caller only, who
    /// takes leave of its servers.
    fn take_expired(&self, most: usize) -> Stored<'_, Vec<(SessionKey, Record)>>;

    /// The current epoch of each, in their order; `None` where there is no record.
    fn epochs(&self, keys: Vec<SessionKey>) -> Stored<'_, Vec<Option<Epoch>>>;
}
