//! Where the messages for one POST go: nowhere yet, or onto its stream.
//!
//! That of a modern caller may be turned from one POST to the next, while the call that speaks through it goes on.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tokio::sync::Notify;

use super::answer::Form;
use super::parked::ForModern;
use crate::protocol::edit::one_line;
use crate::session::journal::{About, Origin};
use crate::session::log::EventKind;
use crate::session::stream::Wake;
use crate::session::{PlainStreams, Reader, StreamId, Streams};
use crate::store::lock;

/// Where the messages for one POST go.
#[derive(Debug)]
pub(super) struct Outlet {
    aim: Mutex<Aim>,
    begun: Notify,
    /// Whether something was added that its reader was not woken for.
    unsettled: AtomicBool,
    modern: Option<ForModern>,
}

/// Which streams that of a POST is one of.
#[derive(Debug)]
pub(super) enum Among {
    /// Those of its session.
    Session(Arc<Streams>),
    /// It is alone; nobody can come back to it.
    Alone(PlainStreams),
}

/// The POST that messages are for.
#[derive(Debug)]
struct Aim {
    streams: Among,
    form: Form,
    /// The id of the HTTP request, for errors and log lines.
    request_id: Arc<str>,
    /// What its stream is about, for the journal.
    about: About,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Nothing was sent; the answer may still be JSON.
    Pending,
    /// A stream began; its reader waits for the connection to take it.
    Begun { streams: Arc<Streams>, id: StreamId, reader: Option<Reader> },
    /// Nothing can be sent any more: the caller left before anything was, or has its answer.
    Shut,
}

/// The stream of a POST that has its answer, to put that on.
#[derive(Debug)]
pub(super) struct Left {
    streams: Arc<Streams>,
    id: StreamId,
    /// For the connection, if it does not have it yet.
    pub(super) reader: Option<Reader>,
}

// === impl Outlet ===

impl Outlet {
    pub(super) fn new(streams: Among, form: Form, request_id: Arc<str>) -> Arc<Self> {
        Arc::new(Self::with(streams, form, request_id, None))
    }

    /// One for a modern caller.
    pub(super) fn modern(
        streams: PlainStreams,
        form: Form,
        request_id: Arc<str>,
        modern: ForModern,
    ) -> Arc<Self> {
        Arc::new(Self::with(Among::Alone(streams), form, request_id, Some(modern)))
    }

    fn with(streams: Among, form: Form, request_id: Arc<str>, modern: Option<ForModern>) -> Self {
        let aim = Aim { streams, form, request_id, about: About::default(), state: State::Pending };
        Self { aim: Mutex::new(aim), begun: Notify::new(), unsettled: AtomicBool::new(false), modern }
    }

    /// What else there is for a modern caller.
    pub(super) fn for_modern(&self) -> Option<&ForModern> {
        self.modern.as_ref()
    }

    /// Turns to the caller's next POST.
    pub(super) fn turn_to(&self, streams: PlainStreams, form: Form, request_id: Arc<str>) {
        let (streams, about) = (Among::Alone(streams), About::default());
        *lock(&self.aim) = Aim { streams, form, request_id, about, state: State::Pending };
    }

    /// What the stream will be about, if there will be one.
    pub(super) fn is_about(&self, about: About) {
        lock(&self.aim).about = about;
    }

    /// The one request goes to this server. Those of a batch may go to several.
    pub(super) fn goes_to(&self, server: &str) {
        let about = &mut lock(&self.aim).about;
        if about.requests.len() == 1 {
            about.server = Some(server.into());
        }
    }

    /// The POST gets its answer; what comes before the next one finds no way to the caller. Gives its stream, which
    /// there is if it has begun or the caller takes nothing else.
    pub(super) fn leave(&self) -> Option<Left> {
        let mut aim = lock(&self.aim);
        if aim.form == Form::SseOnly {
            aim.begin(&self.begun);
        }
        match std::mem::replace(&mut aim.state, State::Shut) {
            State::Begun { streams, id, reader } => Some(Left { streams, id, reader }),
            State::Pending | State::Shut => None,
        }
    }

    /// The id of the HTTP request.
    pub(super) fn request_id(&self) -> Arc<str> {
        lock(&self.aim).request_id.clone()
    }

    /// The forms of answer that the caller takes.
    pub(super) fn form(&self) -> Form {
        lock(&self.aim).form
    }

    /// Sends a message ahead of the result; it turns a pending answer into a stream. `false` if the caller cannot
    /// get it: it accepts only JSON, or has left without an event id.
    pub(super) fn emit(&self, kind: EventKind, message: Bytes, origin: Origin) -> bool {
        match self.way() {
            Some((streams, id)) => streams.append(id, kind, one_line(message), Wake::Now, origin),
            None => false,
        }
    }

    /// The same for one of many messages that come right behind each other; [`Outlet::flush`] sends them.
    pub(super) fn emit_soon(&self, kind: EventKind, message: Bytes, origin: Origin) -> bool {
        match self.way() {
            Some((streams, id)) => {
                self.unsettled.store(true, Relaxed);
                streams.append(id, kind, one_line(message), Wake::Later, origin)
            }
            None => false,
        }
    }

    /// Sends what [`Outlet::emit_soon`] was given.
    pub(super) fn flush(&self) {
        if self.unsettled.swap(false, Relaxed)
            && let Some((streams, id)) = lock(&self.aim).stream()
        {
            streams.wake(id);
        }
    }

    /// Makes the answer a stream, if it is none yet.
    pub(super) fn begin(&self) -> Option<StreamId> {
        lock(&self.aim).begin(&self.begun)
    }

    /// Waits until the answer has become a stream.
    pub(super) async fn begun(&self) {
        // The permit may be an earlier POST's.
        while !matches!(lock(&self.aim).state, State::Begun { .. }) {
            self.begun.notified().await;
        }
    }

    /// The stream's reader, for the connection; at most once.
    pub(super) fn take_reader(&self) -> Option<Reader> {
        match &mut lock(&self.aim).state {
            State::Begun { reader, .. } => reader.take(),
            State::Pending | State::Shut => None,
        }
    }

    /// The responses are there. Gives the stream that they go to; without one the answer is JSON, and nothing can be
    /// sent ahead of it any more.
    pub(super) fn settle(&self) -> Option<Reader> {
        let state = &mut lock(&self.aim).state;
        match state {
            State::Begun { reader, .. } => reader.take(),
            State::Pending | State::Shut => {
                *state = State::Shut;
                None
            }
        }
    }

    /// The caller has left.
    pub(super) fn abandon(&self) {
        let state = &mut lock(&self.aim).state;
        match state {
            State::Pending => *state = State::Shut,
            // A reader that was never taken was never read: dropping it tells the stream so.
            State::Begun { reader, .. } => drop(reader.take()),
            State::Shut => {}
        }
    }

    /// Puts a final response on the stream, if there is one.
    pub(super) fn push_response(&self, response: Bytes) {
        let stream = lock(&self.aim).stream();
        if let Some((streams, id)) = stream {
            streams.push(id, EventKind::Response, one_line(response));
        }
    }

    /// All responses were given: the stream is complete.
    pub(super) fn complete(&self) {
        let stream = lock(&self.aim).stream();
        if let Some((streams, id)) = stream {
            streams.complete(id);
        }
    }

    /// The server asked to be polled: the caller is asked the same, where its revision knows that.
    pub(super) fn ask_to_poll(&self) {
        let stream = lock(&self.aim).stream();
        if let Some((streams, id)) = stream
            && streams.can_poll()
        {
            streams.ask_to_poll(id);
        }
    }

    /// The stream that a message goes to, begun if need be.
    fn way(&self) -> Option<(Arc<Streams>, StreamId)> {
        let mut aim = lock(&self.aim);
        if aim.form == Form::JsonOnly {
            return None;
        }
        aim.begin(&self.begun)?;
        aim.stream()
    }
}

// === impl Aim ===

impl Aim {
    fn begin(&mut self, begun: &Notify) -> Option<StreamId> {
        match &self.state {
            State::Begun { id, .. } => Some(*id),
            State::Shut => None,
            State::Pending => {
                let streams = match &self.streams {
                    Among::Session(streams) => streams.clone(),
                    Among::Alone(plain) => plain.open(),
                };
                let reader = streams.begin_post(std::mem::take(&mut self.about));
                let id = reader.stream();
                self.state = State::Begun { streams, id, reader: Some(reader) };
                begun.notify_one();
                Some(id)
            }
        }
    }

    fn stream(&self) -> Option<(Arc<Streams>, StreamId)> {
        match &self.state {
            State::Begun { streams, id, .. } => Some((streams.clone(), *id)),
            State::Pending | State::Shut => None,
        }
    }
}

// === impl Left ===

impl Left {
    /// Puts the answer on the stream, which is complete with it.
    pub(super) fn answer(&self, response: Bytes) {
        self.streams.push(self.id, EventKind::Response, one_line(response));
        self.streams.complete(self.id);
    }
}
