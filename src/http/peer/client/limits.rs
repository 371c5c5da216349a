//! The bounds of the client side of the hop.

use std::time::Duration;

/// How much of one body a side takes without having been asked for more.
///
/// A connection's window is this times its streams, so that all streams together cannot use it up: one that nobody
/// reads stops after 64 KiB, and the others go on. It is credit, not memory: only what really lies unread is held.
pub(in crate::http::peer) const STREAM_WINDOW: u32 = 64 << 10;

/// How much of everything a client of peers may use.
#[derive(Clone, Debug)]
pub struct ClientLimits {
    /// How long a peer may take to accept a connection.
    pub connect: Duration,
    /// How long it may then take to show its key, to know ours, and to answer a first ping.
    pub handshake: Duration,
    /// Requests at once on one connection, if the peer allows as many; over it a further connection is opened.
    pub streams: u32,
    /// Connections for calls, and as many for streams; over it [`super::super::HopError::Busy`].
    pub connections: usize,
    /// Over so many calls do calls spread, as soon as each has `crowd`: one connection is the work of one core, and
    /// all who use it wait for its lock.
    pub spread: usize,
    /// Calls at once on a connection that make another worth its while.
    pub crowd: usize,
    /// All headers of an answer together, bytes.
    pub headers: u32,
    /// How long a connection without requests is kept.
    pub idle: Duration,
    /// How often a peer is asked whether it is there.
    pub ping: Duration,
    /// How long it may take to answer; then it is taken for gone. A busy peer is not gone, and of all that breaks
    /// with its connection the outcome is unknown.
    pub pong: Duration,
    /// What is kept of an answer that its caller does not take, bytes, beside its window.
    pub kept: usize,
    /// How long a caller may take nothing of its answer.
    pub patience: Duration,
}

// === impl ClientLimits ===

impl ClientLimits {
    /// The bounds where an owner that is silent for a `lease` is taken for dead: whoever waits for it is to know soon
    /// enough to go on elsewhere then, and not before it could have been busy only.
    pub fn within(lease: Duration) -> Self {
        let least = Self::default();
        Self {
            connect: least.connect.min(lease / 4),
            handshake: least.handshake.min(lease / 4),
            ping: least.ping.min(lease / 8),
            pong: least.pong.min(lease * 5 / 8),
            ..least
        }
    }
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(1),
            handshake: Duration::from_secs(2),
            streams: 1024,
            connections: 32,
            spread: 4,
            crowd: 32,
            headers: 128 << 10,
            idle: Duration::from_mins(1),
            ping: Duration::from_secs(2),
            pong: Duration::from_secs(10),
            kept: 192 << 10,
            patience: Duration::from_secs(10),
        }
    }
}
