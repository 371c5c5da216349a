//! Sessions of legacy callers: lifecycle, binding, expiry, and the streams with their replay.
//!
//! Knows no server and no HTTP. What the relay keeps for a session (links, exchanges) is attached to it as the
//! type `A`; this module only makes sure that it ends with the session.

pub mod event;
pub mod id;
pub mod implicit;
pub mod live;
pub mod log;
pub mod notices;
pub mod plain;
pub mod reader;
pub mod sessions;
pub mod stream;
pub mod streams;

pub use event::{EventId, StreamId};
pub use id::SessionId;
pub use live::{Binding, Session};
pub use plain::PlainStreams;
pub use reader::{Reader, Step};
pub use sessions::{EndReason, Sessions};
pub use streams::Streams;
