//! What must outlive a process, behind traits, and what all registries use: the concurrent map, and one attempt for
//! all who wait.
//!
//! Every write for a session carries its epoch and is refused when the epoch is not current or the record is
//! gone; so a session never has two writers. [`memory`] is the store of a single replica, [`redis`] that of several. All implementations
//! pass one suite, `tests/store`.

pub mod change_bus;
pub mod event_log;
pub mod failure;
pub mod flight;
pub mod leases;
pub mod lock;
pub mod memory;
pub mod record;
pub mod redis;
pub mod registry;
pub mod seal;
pub mod sessions;
pub mod shares;
pub mod stores;

pub use change_bus::ChangeBus;
pub use event_log::EventLog;
pub use failure::{StoreError, Stored};
pub use flight::Flight;
pub use leases::Leases;
pub use lock::lock;
pub use memory::{MemoryBus, MemoryLeases, MemoryStore};
pub use record::{Epoch, Lifetime, Record, ReplicaId, ServerState, SessionKey};
pub use redis::{RedisBus, RedisLeases, RedisStore};
pub use registry::Registry;
pub use seal::Sealer;
pub use sessions::SessionStore;
pub use stores::Stores;
