//! What must outlive a process, behind traits, and the concurrent map that all registries use.
//!
//! Every write for a session carries its epoch and is refused when the epoch is not current or the record is
//! gone; so a session never has two writers. `memory` is the store of a single replica.

pub mod lock;
pub mod record;
pub mod registry;
pub mod sessions;

pub use lock::lock;
pub use record::{Epoch, Record, SessionKey};
pub use registry::Registry;
pub use sessions::{MemorySessions, SessionStore, StoreError};
