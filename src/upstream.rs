//! Links to the servers behind the gateway: child processes and Streamable HTTP sessions.
//!
//! Knows no session and no caller: what a server sends up on its own flows through [`Listener`], which the
//! layers above implement. A [`Link`] carries messages that are already written for the server and its era; it makes
//! the JSON-RPC ids ([`UpstreamId`]) but edits nothing.

pub mod connector;
mod discover;
pub mod failure;
pub mod http;
pub mod introduction;
pub mod link;
pub mod listener;
pub mod outgoing;
pub mod pace;
pub mod stdio;

pub use connector::{Connector, Known};
pub use failure::{Delivery, Failure};
pub use introduction::{Hello, Introduction};
pub use link::{Farewell, Link, UpstreamId};
pub use listener::{Heard, Listener, Refused, Reply};
pub use outgoing::{Mirror, Outgoing};
pub use pace::{Backoff, Pace};
