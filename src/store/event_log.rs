//! The log of a session's streams: one ordered list per session, written by its owner and read by an adopter only.
//!
//! Callers are served from the owner's memory (`session::log`). What is stored is what an adopter needs to replay
//! streams, and to say of each call that died with its owner that its outcome is unknown.

use bytes::Bytes;

use super::{Epoch, SessionKey, Stored};

/// The place of an entry in its session's log. The owner counts them; a later epoch is behind all of an earlier one,
/// so that entries of an owner that was replaced are refused by the order alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId {
    /// The owner's epoch.
    pub epoch: Epoch,
    /// Its number within the epoch.
    pub number: u64,
}

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Its place.
    pub id: EntryId,
    /// What it says.
    pub what: Logged,
}

/// A stream of the session, by the epoch it began in and its number there; number 0 is the standalone GET.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LoggedStream {
    /// The epoch it began in.
    pub epoch: Epoch,
    /// Its number.
    pub number: u32,
}

/// What an entry says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Logged {
    /// An adopter's first act: from here on earlier owners are refused.
    Adopted,
    /// A stream began.
    Began {
        /// The stream.
        stream: LoggedStream,
        /// The caller's request ids, raw; several for a batch, none for the standalone GET.
        requests: Vec<Box<str>>,
        /// The JSON-RPC method of the first.
        method: Box<str>,
        /// The server it went to, if it went to one.
        server: Option<Box<str>>,
    },
    /// An event of a stream.
    Event {
        /// The stream.
        stream: LoggedStream,
        /// Its place there.
        place: u64,
        /// The message.
        payload: Bytes,
        /// The server's own event id, if it came with one: an adopter resumes the server's stream there.
        cursor: Option<Box<str>>,
        /// For a server's request: where its answer goes.
        question: Option<Question>,
    },
    /// A stream is complete.
    Ended {
        /// The stream.
        stream: LoggedStream,
    },
}

/// A server's request to the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The server whose link it came on.
    pub server: Box<str>,
    /// The server's id of it, raw.
    pub id: Box<str>,
}

/// Keeps the logs of sessions. A log ends with its session's record.
pub trait EventLog: Send + Sync {
    /// Adds entries, all or none. `Gone` without a record; `Fenced` if their epoch is not the record's, or they are
    /// not in order behind what is there.
    fn append(&self, key: SessionKey, entries: Vec<LogEntry>) -> Stored<'_, ()>;
    /// Takes out what the owner keeps no longer; its bounds are the log's. Refused as `append` is.
    fn forget(&self, key: SessionKey, epoch: Epoch, entries: Vec<EntryId>) -> Stored<'_, ()>;
    /// Reads up to `most` entries behind `after`, or from the start.
    fn read(&self, key: SessionKey, after: Option<EntryId>, most: usize) -> Stored<'_, Vec<LogEntry>>;
}
