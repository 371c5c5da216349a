//! The store that several replicas share: Redis, as one server, a master that sentinels watch, or a cluster.
//!
//! A session is a record (a hash), a log (a stream) and a deadline in a sorted set, all on one node. Each write is one
//! script, so that Redis itself checks record and epoch in the step that writes. Redis also tells the time. What is
//! private is sealed with the cluster keys: who reads Redis can neither use a session nor see what was said in it.
//! Time limits of keys are only a net: a session is ended by whoever finds it over, in one step, so that its servers
//! are told.

mod bus;
mod bytes;
mod connection;
mod dial;
mod entry;
mod fields;
mod keys;
mod leases;
mod log;
mod reply;
mod scripts;
mod sessions;
mod state;

use std::sync::Arc;

pub use bus::RedisBus;
pub use connection::Connection;
pub use leases::RedisLeases;
pub use state::{StoreRemark, StoreState, Why};

use super::{Sealer, StoreError};
use crate::telemetry::metrics::StoreOperation;

/// Session records and their logs in Redis.
#[derive(Debug)]
pub struct RedisStore {
    connection: Arc<Connection>,
    sealer: Arc<Sealer>,
}

/// How long a key outlives its session's deadline, should no replica find it over.
const SLACK_MS: &[u8] = b"3600000";

/// What a script says of a write.
const DONE: i64 = 1;
const GONE: i64 = 0;
const FENCED: i64 = -1;

// === impl RedisStore ===

impl RedisStore {
    /// A store over `connection` that seals with `sealer`, which all replicas make from the same keys.
    pub fn new(connection: Arc<Connection>, sealer: Arc<Sealer>) -> Self {
        Self { connection, sealer }
    }

    /// What came of a write.
    fn verdict(&self, operation: StoreOperation, answer: &::redis::Value) -> Result<i64, StoreError> {
        match reply::number(answer) {
            Some(GONE) => Err(StoreError::Gone),
            Some(FENCED) => Err(StoreError::Fenced),
            Some(number) if number >= DONE => Ok(number),
            _ => Err(self.connection.unexpected(operation, Why::Unexpected)),
        }
    }

    /// Counts what could not be read.
    fn noted<T>(&self, operation: StoreOperation, read: Result<T, StoreError>) -> Result<T, StoreError> {
        if matches!(read, Err(StoreError::Unreadable)) {
            self.connection.unreadable(operation);
        }
        read
    }
}
