//! Server-Sent Events, both ways: a [`Decoder`] fed with bytes as they come, and [`encode`] to write them.

use std::time::Duration;

use bytes::Bytes;

mod decode;
pub mod encode;

pub use decode::{Decoder, TooLarge};

/// One block of an event stream, from blank line to blank line.
///
/// A block without data is an event too if it moves the cursor or the waiting time: a priming event (T21) has
/// an id and no data, a server that asks to be polled may send `retry:` alone (T22).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// The cursor after this event; empty takes an earlier one back.
    pub id: Option<Box<str>>,
    /// The event's type, if it is not the default `message`.
    pub name: Option<Box<str>>,
    /// The payload, its lines joined by a line feed.
    pub data: Bytes,
    /// How long to wait before coming back.
    pub retry: Option<Duration>,
}

/// The most bytes that something may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteLimit(pub usize);

#[cfg(test)]
mod tests;
