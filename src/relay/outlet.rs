//! Where the messages for one POST go: nowhere yet, or onto its stream.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tokio::sync::Notify;

use super::answer::Form;
use crate::protocol::edit::one_line;
use crate::session::log::EventKind;
use crate::session::stream::Wake;
use crate::session::{Reader, StreamId, Streams};
use crate::store::lock;

/// Where the messages for one POST go.
#[derive(Debug)]
pub(super) struct Outlet {
    streams: Arc<Streams>,
    form: Form,
    /// The id of the HTTP request, for errors and log lines.
    request_id: Arc<str>,
    state: Mutex<State>,
    begun: Notify,
    /// Whether something was added that its reader was not woken for.
    unsettled: AtomicBool,
}

#[derive(Debug)]
enum State {
    /// Nothing was sent; the answer may still be JSON.
    Pending,
    /// A stream began; its reader waits for the connection to take it.
    Begun { id: StreamId, reader: Option<Reader> },
    /// Nothing can be sent any more: the caller left before anything was, or has its answer as JSON.
    Shut,
}

// === impl Outlet ===

impl Outlet {
    pub(super) fn new(streams: Arc<Streams>, form: Form, request_id: Arc<str>) -> Arc<Self> {
        Arc::new(Self {
            streams,
            form,
            request_id,
            state: Mutex::new(State::Pending),
            begun: Notify::new(),
            unsettled: AtomicBool::new(false),
        })
    }

    /// The id of the HTTP request.
    pub(super) fn request_id(&self) -> &str {
        &self.request_id
    }

    /// The forms of answer that the caller takes.
    pub(super) fn form(&self) -> Form {
        self.form
    }

    /// Sends a message ahead of the result; it turns a pending answer into a stream. `false` if the caller cannot
    /// get it: it accepts only JSON, or has left without an event id.
    pub(super) fn emit(&self, kind: EventKind, message: Bytes) -> bool {
        if self.form == Form::JsonOnly {
            return false;
        }
        match self.begin() {
            Some(id) => self.streams.push(id, kind, one_line(message)),
            None => false,
        }
    }

    /// The same for one of many messages that come right behind each other; [`Outlet::flush`] sends them.
    pub(super) fn emit_soon(&self, kind: EventKind, message: Bytes) {
        if self.form == Form::JsonOnly {
            return;
        }
        if let Some(id) = self.begin() {
            self.unsettled.store(true, Relaxed);
            self.streams.append(id, kind, one_line(message), Wake::Later);
        }
    }

    /// Sends what [`Outlet::emit_soon`] was given.
    pub(super) fn flush(&self) {
        if self.unsettled.swap(false, Relaxed)
            && let Some(id) = self.stream()
        {
            self.streams.wake(id);
        }
    }

    /// Makes the answer a stream, if it is none yet.
    pub(super) fn begin(&self) -> Option<StreamId> {
        let mut state = lock(&self.state);
        match &*state {
            State::Begun { id, .. } => Some(*id),
            State::Shut => None,
            State::Pending => {
                let reader = self.streams.begin_post();
                let id = reader.stream();
                *state = State::Begun { id, reader: Some(reader) };
                self.begun.notify_one();
                Some(id)
            }
        }
    }

    /// Waits until the answer has become a stream.
    pub(super) async fn begun(&self) {
        self.begun.notified().await;
    }

    /// The stream's reader, for the connection; at most once.
    pub(super) fn take_reader(&self) -> Option<Reader> {
        match &mut *lock(&self.state) {
            State::Begun { reader, .. } => reader.take(),
            State::Pending | State::Shut => None,
        }
    }

    /// The responses are there. Gives the stream that they go to; without one the answer is JSON, and nothing can be
    /// sent ahead of it any more.
    pub(super) fn settle(&self) -> Option<Reader> {
        let mut state = lock(&self.state);
        match &mut *state {
            State::Begun { reader, .. } => reader.take(),
            State::Pending | State::Shut => {
                *state = State::Shut;
                None
            }
        }
    }

    /// The caller has left.
    pub(super) fn abandon(&self) {
        let mut state = lock(&self.state);
        match &mut *state {
            State::Pending => *state = State::Shut,
            // A reader that was never taken was never read: dropping it tells the stream so.
            State::Begun { reader, .. } => drop(reader.take()),
            State::Shut => {}
        }
    }

    /// Puts a final response on the stream, if there is one.
    pub(super) fn push_response(&self, response: Bytes) {
        if let Some(id) = self.stream() {
            self.streams.push(id, EventKind::Response, one_line(response));
        }
    }

    /// All responses were given: the stream is complete.
    pub(super) fn complete(&self) {
        if let Some(id) = self.stream() {
            self.streams.complete(id);
        }
    }

    /// The server asked to be polled: the caller is asked the same, where its revision knows that.
    pub(super) fn ask_to_poll(&self) {
        if let Some(id) = self.stream()
            && self.streams.can_poll()
        {
            self.streams.ask_to_poll(id);
        }
    }

    fn stream(&self) -> Option<StreamId> {
        match &*lock(&self.state) {
            State::Begun { id, .. } => Some(*id),
            State::Pending | State::Shut => None,
        }
    }
}
