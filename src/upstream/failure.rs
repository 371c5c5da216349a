//! How a link fails.

use crate::protocol::error::Layer;

/// The reason of a link that was opened for the other era than the server speaks by now.
pub const ERA_CHANGED: &str = "era_changed";

/// A failure of one server, in words that may leave the process.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The server's configured name.
    pub server: String,
    /// Where it failed.
    pub layer: Layer,
    /// One word for programs, such as `child_exited`.
    pub reason: &'static str,
    /// One sentence without URL, secret or stack: what happened and what to do.
    pub message: String,
    /// Whether the request may have run.
    pub delivery: Delivery,
}

/// Whether a request that failed may have run at the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Surely not: it may be sent again.
    NotDelivered,
    /// It may have run; it is never sent again.
    Unknown,
}
