//! Sessions of legacy callers: lifecycle, binding, expiry, and the streams with their replay.
//!
//! Knows no server and no HTTP. What the relay keeps for a session (links, exchanges) is attached to it as the
//! type `A`; this module only makes sure that it ends with the session.

mod adopt;
mod by_store_name;
mod caps;
mod cursors;
mod end_reason;
pub mod event;
pub mod heartbeat;
pub mod id;
pub mod implicit;
pub mod journal;
pub mod keys;
pub mod live;
mod locate;
pub mod log;
pub mod membership;
pub mod notices;
pub mod others;
mod owned;
pub mod plain;
pub mod reader;
mod release;
pub mod restore;
pub mod routes;
pub mod sessions;
pub mod stream;
mod stream_places;
pub mod streams;
pub mod tenure;

pub use adopt::AdoptError;
pub use caps::PrincipalCap;
pub use end_reason::EndReason;
pub use event::{EventId, StreamId};
pub use id::SessionId;
pub use journal::Journal;
pub use keys::SessionKeys;
pub use live::{Arrival, Binding, Session};
pub use locate::{Adoptable, Located, Unlocated};
pub use membership::{Company, Membership, Said};
pub use others::{Others, Tally};
pub use owned::Ownership;
pub use plain::PlainStreams;
pub use reader::{Reader, Step};
pub use restore::Restored;
pub use routes::{Owner, Peer};
pub use sessions::Sessions;
pub use stream_places::{StreamPlace, TooManyStreams};
pub use streams::Streams;
pub use tenure::Tenure;

pub use crate::store::{Epoch, ReplicaId};
