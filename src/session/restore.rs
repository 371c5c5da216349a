//! Streams as an adopter finds them in the store's log.
//!
//! An earlier owner's last notifications may have gone out without being stored, under places that the log does not
//! show. So what an adopter adds to its streams is numbered from a place far behind all of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use super::event::StreamId;
use super::journal::{About, Journal};
use super::log::{Budget, Entry, EventKind};
use super::stream::{Stream, StreamRole};
use super::streams::{Inner, Streams};
use crate::protocol::envelope::Message;
use crate::protocol::error::{Code, Layer, RpcError};
use crate::protocol::revision::Revision;
use crate::settings::StreamSettings;
use crate::store::event_log::{EntryId, LogEntry, Logged};
use crate::store::{Epoch, lock};

/// How many places each owner has on a stream, as a power of two; a billion times more than are needed.
const PLACES_BITS: u32 = 40;

/// Streams of earlier owners, and what they still owe.
#[derive(Debug)]
pub struct Restored {
    /// The streams, each as far as the log shows it.
    pub streams: Arc<Streams>,
    /// Requests without a response; their streams are open until all of them have one.
    pub unanswered: Vec<Unanswered>,
    /// How many entries of the log made no sense.
    pub skipped: usize,
}

/// A request whose owner is gone and whose response is not in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unanswered {
    /// Where the caller waits for it.
    pub stream: StreamId,
    /// The caller's id of it, raw.
    pub request: Box<str>,
    /// The method of the first request of its POST.
    pub method: Box<str>,
    /// The server it went to, if the log knows.
    pub server: Option<Box<str>>,
    /// Where that server's stream can be resumed, if it is the only request of its POST and there was an event id.
    pub cursor: Option<Box<str>>,
}

/// One stream while the log is read.
struct Found {
    began: EntryId,
    ended: Option<EntryId>,
    about: About,
    events: BTreeMap<u64, Entry>,
    /// The raw ids of its responses.
    answered: Vec<Box<str>>,
    cursor: Option<(u64, Box<str>)>,
}

/// What was found in the log.
#[derive(Default)]
struct Findings {
    streams: BTreeMap<StreamId, Found>,
    /// What made no sense, and is to be taken out.
    skipped: Vec<EntryId>,
    /// What adopters began with. Its place alone keeps earlier owners out, and Redis has a page for even one entry.
    fences: Vec<EntryId>,
}

// === impl Streams ===

impl Streams {
    /// The streams that `entries` tell of, for the owner of `epoch`. `journal` is its own.
    ///
    /// Ages are not stored: each complete stream is kept for a full retention again. A standalone GET that comes
    /// without a `Last-Event-ID` goes on behind what the log shows.
    pub fn restore(
        settings: Arc<StreamSettings>,
        revision: Revision,
        epoch: Epoch,
        budget: Arc<Budget>,
        entries: impl IntoIterator<Item = LogEntry>,
        journal: Journal,
    ) -> Restored {
        let mut findings = Findings::default();
        for entry in entries {
            findings.add(entry);
        }
        let Findings { streams: found, skipped, fences } = findings;
        let streams = Self::new(settings, revision, epoch, budget).with_journal(journal);
        let mut unanswered = Vec::new();
        {
            let mut inner = lock(&streams.inner);
            for (id, found) in found {
                unanswered.extend(found.unanswered(id));
                found.put(id, epoch, &mut inner);
            }
            inner.trim(&streams.settings);
            streams.journal_gone(&mut inner);
        }
        let number = skipped.len();
        if let Some(journal) = streams.journal() {
            journal.forget([skipped, fences].concat());
        }
        Restored { streams: Arc::new(streams), unanswered, skipped: number }
    }
}

// === impl Restored ===

impl Restored {
    /// Answers requests with an error that says that their outcome is unknown (promise 2: no silence). A stream is
    /// complete once none of its requests is left among the unanswered ones.
    pub fn give_up(&mut self, doomed: Vec<Unanswered>) {
        self.unanswered.retain(|kept| !doomed.contains(kept));
        for Unanswered { stream, request, server, .. } in &doomed {
            let error = outcome_unknown(server.as_deref()).to_message(Some(request), None);
            self.streams.push(*stream, EventKind::Response, error);
        }
        for Unanswered { stream, .. } in doomed {
            if !self.unanswered.iter().any(|left| left.stream == stream) {
                self.streams.complete(stream);
            }
        }
    }
}

// === impl Findings ===

impl Findings {
    fn add(&mut self, LogEntry { id, what }: LogEntry) {
        let makes_sense = match what {
            Logged::Adopted => {
                self.fences.push(id);
                true
            }
            Logged::Began { stream, requests, method, server } => {
                let about = About { requests, method, server };
                self.begin(stream.into(), id, about)
            }
            Logged::Event { stream, place, payload, cursor, .. } => self
                .streams
                .get_mut(&stream.into())
                .is_some_and(|found| found.add(id, place, payload, cursor)),
            Logged::Ended { stream } => match self.streams.get_mut(&stream.into()) {
                Some(found) if found.ended.is_none() => {
                    found.ended = Some(id);
                    true
                }
                Some(_) | None => false,
            },
        };
        if !makes_sense {
            self.skipped.push(id);
        }
    }

    fn begin(&mut self, stream: StreamId, id: EntryId, about: About) -> bool {
        // There is one standalone GET, over all owners.
        let is_second_get = stream.number == 0 && self.streams.keys().any(|other| other.number == 0);
        if is_second_get || self.streams.contains_key(&stream) {
            return false;
        }
        let (events, answered) = (BTreeMap::new(), Vec::new());
        self.streams.insert(stream, Found { began: id, ended: None, about, events, answered, cursor: None });
        true
    }
}

// === impl Found ===

impl Found {
    /// Takes an event. Each place counts once, and so does each response: what comes behind is a repetition.
    fn add(&mut self, id: EntryId, place: u64, payload: Bytes, cursor: Option<Box<str>>) -> bool {
        if place == 0 || self.events.contains_key(&place) {
            return false;
        }
        let kind = match Message::parse(payload.clone()) {
            Ok(Message::Response(response)) => {
                if self.answered.iter().any(|answered| **answered == *response.id()) {
                    return false;
                }
                self.answered.push(response.id().into());
                EventKind::Response
            }
            Ok(Message::Request(_)) => EventKind::Request,
            Ok(Message::Notification(_)) => EventKind::Notification,
            Err(_) => return false,
        };
        if let Some(cursor) = cursor
            && self.cursor.as_ref().is_none_or(|(at, _)| *at < place)
        {
            self.cursor = Some((place, cursor));
        }
        self.events.insert(place, Entry { place, kind, payload, id });
        true
    }

    /// What the stream still owes. One that is logged as complete owes nothing: a request that was cancelled has no
    /// response.
    fn unanswered(&self, stream: StreamId) -> Vec<Unanswered> {
        if self.ended.is_some() {
            return Vec::new();
        }
        let About { requests, method, server } = &self.about;
        let missing = requests.iter().filter(|id| !self.answered.contains(id));
        let cursor = self.cursor.as_ref().filter(|_| requests.len() == 1).map(|(_, cursor)| cursor);
        let unanswered = |request: &str| Unanswered {
            stream,
            request: request.into(),
            method: method.clone(),
            server: server.clone(),
            cursor: cursor.cloned(),
        };
        missing.map(|request| unanswered(request)).collect()
    }

    /// Makes it one of the streams of the owner of `epoch`.
    fn put(self, id: StreamId, epoch: Epoch, inner: &mut Inner) {
        let role = if id.number == 0 { StreamRole::Get } else { StreamRole::Post };
        let is_complete =
            self.ended.is_some() || (role == StreamRole::Post && self.unanswered(id).is_empty());
        let mut stream = Stream::new(role, inner.usage.clone());
        stream.log.began = self.began;
        stream.log.ended = self.ended.unwrap_or(stream.log.ended);
        let shown = self.events.keys().next_back().copied().unwrap_or_default();
        self.events.into_values().for_each(|entry| stream.log.push(entry));
        stream.go_on_from(shown, shown.max(first_place(epoch)));
        if is_complete {
            stream.complete(Instant::now());
        }
        if role == StreamRole::Get {
            inner.get = id;
        }
        inner.streams.insert(id, Box::new(stream));
    }
}

/// Behind which place an owner adds to the streams of earlier ones.
pub(super) fn first_place(epoch: Epoch) -> u64 {
    u64::from(epoch.0).min(u64::MAX >> PLACES_BITS) << PLACES_BITS
}

fn outcome_unknown(server: Option<&str>) -> RpcError {
    let at = server.map_or_else(String::new, |server| format!(" to server `{server}`"));
    let message = format!(
        "The gateway process that carried this request{at} is gone; its outcome is unknown. Check what it did before you send it again."
    );
    let error = RpcError::new(Code::Internal, "outcome_unknown", message);
    match server {
        Some(server) => error.at(server, Layer::Gateway),
        None => error,
    }
}

#[cfg(test)]
mod tests;
