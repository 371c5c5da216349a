//! Session records: the trait and its memory implementation.

use std::pin::Pin;
use std::time::SystemTime;

use super::record::ReplicaId;
use super::{Epoch, Record, SessionKey};

/// What a store method returns.
pub type Stored<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Why the store did not do it.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum StoreError {
    /// There is no such record; it was ended or never made.
    #[error("no such session record")]
    Gone,
    /// Another owner has the session; the writer drops its live parts.
    #[error("the session has another owner")]
    Fenced,
    /// The store cannot be reached: 503 for who needs it.
    #[error("the session store is unreachable")]
    Unreachable,
}

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
    /// Activity, coalesced by the writer.
    Touched(SystemTime),
}

/// Keeps session records.
pub trait SessionStore: Send + Sync {
    /// Writes a new record; it must be stored before the session's id leaves the process.
    fn create(&self, key: SessionKey, record: Record) -> Stored<'_, ()>;
    /// Reads a record.
    fn load(&self, key: SessionKey) -> Stored<'_, Option<Record>>;
    /// Changes a record of this epoch.
    fn change(&self, key: SessionKey, epoch: Epoch, change: Change) -> Stored<'_, ()>;
    /// Takes the session over from the owner and epoch last read; of two adopters one wins.
    fn adopt(&self, key: SessionKey, from: Epoch, by: ReplicaId) -> Stored<'_, Epoch>;
    /// Gives the session up: owner none, next epoch.
    fn release(&self, key: SessionKey, epoch: Epoch) -> Stored<'_, ()>;
    /// Ends the session: removes the record; needs no epoch. `None` if it was gone.
    fn remove(&self, key: SessionKey) -> Stored<'_, Option<Record>>;
}

/// Records in this process's memory.
#[derive(Debug, Default)]
pub struct MemorySessions {
    records: std::sync::Mutex<std::collections::HashMap<SessionKey, Record>>,
}

// === impl MemorySessions ===

impl MemorySessions {
    fn current<'m>(
        records: &'m mut std::collections::HashMap<SessionKey, Record>,
        key: &SessionKey,
        epoch: Epoch,
    ) -> Result<&'m mut Record, StoreError> {
        let record = records.get_mut(key).ok_or(StoreError::Gone)?;
        if record.epoch == epoch { Ok(record) } else { Err(StoreError::Fenced) }
    }
}

fn ready<'a, T: Send + 'a>(result: Result<T, StoreError>) -> Stored<'a, T> {
    Box::pin(std::future::ready(result))
}

impl SessionStore for MemorySessions {
    fn create(&self, key: SessionKey, record: Record) -> Stored<'_, ()> {
        super::lock(&self.records).insert(key, record);
        ready(Ok(()))
    }

    fn load(&self, key: SessionKey) -> Stored<'_, Option<Record>> {
        ready(Ok(super::lock(&self.records).get(&key).cloned()))
    }

    fn change(&self, key: SessionKey, epoch: Epoch, change: Change) -> Stored<'_, ()> {
        let mut records = super::lock(&self.records);
        let result = Self::current(&mut records, &key, epoch).map(|record| match change {
            Change::Initialized => record.initialized = true,
            Change::LogLevel(level) => record.log_level = Some(level),
            Change::Subscribe(uri) => {
                record.subscriptions.insert(uri);
            }
            Change::Unsubscribe(uri) => {
                record.subscriptions.remove(&uri);
            }
            Change::Touched(at) => record.touched = at,
        });
        ready(result)
    }

    fn adopt(&self, key: SessionKey, from: Epoch, by: ReplicaId) -> Stored<'_, Epoch> {
        let mut records = super::lock(&self.records);
        let result = Self::current(&mut records, &key, from).map(|record| {
            record.epoch = record.epoch.next();
            record.owner = Some(by);
            record.epoch
        });
        ready(result)
    }

    fn release(&self, key: SessionKey, epoch: Epoch) -> Stored<'_, ()> {
        let mut records = super::lock(&self.records);
        let result = Self::current(&mut records, &key, epoch).map(|record| {
            record.epoch = record.epoch.next();
            record.owner = None;
        });
        ready(result)
    }

    fn remove(&self, key: SessionKey) -> Stored<'_, Option<Record>> {
        ready(Ok(super::lock(&self.records).remove(&key)))
    }
}
