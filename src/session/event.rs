//! Event ids: which stream of the session, and which place in it.
//!
//! On the wire `epoch.stream-place`, as in `1.4-17`: unique over the session and over owners (T27, case-B09).

use std::fmt;

use crate::store::Epoch;
use crate::store::event_log::LoggedStream;

/// One stream of a session: 0 is the standalone GET, others are numbered as they begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId {
    /// The owner's epoch when the stream began.
    pub epoch: Epoch,
    /// Its number within the epoch.
    pub number: u32,
}

/// The id of one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventId {
    /// Its stream.
    pub stream: StreamId,
    /// Its place; 0 is the priming event.
    pub place: u64,
}

/// A `Last-Event-ID` that none of our streams ever gave out.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("Last-Event-ID is not an id of this session's streams")]
pub struct ForeignEventId;

// === impl StreamId ===

impl From<StreamId> for LoggedStream {
    fn from(StreamId { epoch, number }: StreamId) -> Self {
        Self { epoch, number }
    }
}

impl From<LoggedStream> for StreamId {
    fn from(LoggedStream { epoch, number }: LoggedStream) -> Self {
        Self { epoch, number }
    }
}

// === impl EventId ===

impl EventId {
    /// Reads what [`fmt::Display`] writes, and nothing else.
    ///
    /// # Errors
    /// [`ForeignEventId`]
    pub fn parse(text: &str) -> Result<Self, ForeignEventId> {
        let read = || {
            let (stream, place) = text.split_once('-')?;
            let (epoch, number) = stream.split_once('.')?;
            let stream = StreamId { epoch: Epoch(epoch.parse().ok()?), number: number.parse().ok()? };
            Some(Self { stream, place: place.parse().ok()? })
        };
        // Only the canonical spelling: no plus signs or leading zeros.
        read().filter(|id: &Self| id.to_string() == text).ok_or(ForeignEventId)
    }
}

/// An event id written out, without a trip to the heap: one is written for every event sent.
#[derive(Debug)]
pub(super) struct IdText {
    bytes: [u8; IdText::LONGEST],
    len: usize,
}

// === impl IdText ===

impl IdText {
    /// Two numbers of 32 bits, one of 64, and what stands between them.
    const LONGEST: usize = 10 + 1 + 10 + 1 + 20;

    pub(super) fn of(id: EventId) -> Self {
        use fmt::Write as _;
        let mut text = Self { bytes: [0; Self::LONGEST], len: 0 };
        // The longest id fits.
        let _ = write!(text, "{id}");
        text
    }

    pub(super) fn as_str(&self) -> &str {
        self.bytes.get(..self.len).and_then(|b| std::str::from_utf8(b).ok()).unwrap_or_default()
    }
}

impl fmt::Write for IdText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.len + text.len();
        self.bytes.get_mut(self.len..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}-{}", self.stream.epoch.0, self.stream.number, self.place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_back() {
        let id = EventId { stream: StreamId { epoch: Epoch(2), number: 7 }, place: 41 };
        assert_eq!(id.to_string(), "2.7-41");
        assert_eq!(EventId::parse("2.7-41"), Ok(id));
    }

    #[test]
    fn the_longest_id_fits() {
        let id = EventId { stream: StreamId { epoch: Epoch(u32::MAX), number: u32::MAX }, place: u64::MAX };
        assert_eq!(IdText::of(id).as_str(), id.to_string());
    }

    #[test]
    fn other_spellings_are_foreign() {
        for text in ["", "1-1", "1.1", "01.1-1", "+1.1-1", "1.1-1 ", "a.b-c", "1.1--1"] {
            assert_eq!(EventId::parse(text), Err(ForeignEventId), "{text}");
        }
    }
}
