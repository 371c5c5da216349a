//! The one reader of a child's stdout: takes it apart into messages and gives each to whom it is for.

mod modern;

use std::sync::Arc;

use bytes::Bytes;
use tokio::process::ChildStdout;

use super::glimpse::glimpse;
use super::lines::{Lines, Next};
use super::number::upstream_id;
use super::stderr::Tail;
use super::throttle::Throttle;
use super::wire::Wire;
use crate::protocol::edit::Edit;
use crate::protocol::envelope::{self, Malformed, Message, Notification, Request, Response};
use crate::protocol::error::Layer;
use crate::protocol::method::Method;
use crate::protocol::object::Object;
use crate::protocol::revision::Era;
use crate::upstream::{Delivery, Listener, Reply};

/// Why nothing more is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutputEnd {
    /// The child closed its output.
    Closed,
    /// It wrote a line over the server's `max_message`.
    TooLong,
}

/// Skipped lines that are logged in ten seconds.
const LOGGED: u32 = 10;
/// What some runtimes write before their first line.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// Messages in one batch of a 2025-03-26 server; a larger one is skipped.
const BATCH: usize = 256;

struct Reader {
    wire: Arc<Wire>,
    listener: Arc<dyn Listener>,
    tail: Arc<Tail>,
    throttle: Throttle,
}

/// Reads until the output ends.
pub(super) async fn run(
    stdout: ChildStdout,
    wire: Arc<Wire>,
    listener: Arc<dyn Listener>,
    tail: Arc<Tail>,
) -> OutputEnd {
    let mut lines = Lines::new(stdout, wire.settings.max_message);
    let mut reader = Reader { wire, listener, tail, throttle: Throttle::new(LOGGED) };
    let mut first = true;
    loop {
        match lines.next().await {
            Ok(Next::Line(line)) if std::mem::take(&mut first) => reader.line(&without_mark(line)),
            Ok(Next::Line(line)) => reader.line(&line),
            Ok(Next::TooLong) => return OutputEnd::TooLong,
            Ok(Next::End) | Err(_) => return OutputEnd::Closed,
        }
    }
}

/// The first line of an output without one byte order mark.
fn without_mark(line: Bytes) -> Bytes {
    if line.starts_with(BYTE_ORDER_MARK) { line.slice(BYTE_ORDER_MARK.len()..) } else { line }
}

// === impl Reader ===

impl Reader {
    fn line(&mut self, line: &Bytes) {
        match line.trim_ascii_start().first() {
            None => {}
            Some(b'{') => self.message(line),
            Some(b'[') if self.wire.revision.get().is_some_and(|r| r.allows_batches()) => self.batch(line),
            Some(_) => self.skip(line),
        }
    }

    fn batch(&mut self, line: &Bytes) {
        match envelope::batch(line, BATCH) {
            Ok(parts) => parts.iter().for_each(|part| self.message(part)),
            Err(_) => self.skip(line),
        }
    }

    fn message(&mut self, line: &Bytes) {
        match Message::parse(line.clone()) {
            Ok(Message::Response(response)) => match response.check_error() {
                Ok(()) => self.response(response),
                Err(malformed) => self.malformed(line, &malformed),
            },
            Ok(message) => self.deliver(message),
            Err(malformed) => self.malformed(line, &malformed),
        }
    }

    fn deliver(&mut self, message: Message) {
        match message {
            Message::Response(response) => self.response(response),
            Message::Notification(progress) if *progress.method() == Method::Progress => {
                self.progress(progress);
            }
            Message::Notification(notification) if self.is_modern() => self.attribute(notification),
            Message::Notification(notification) => self.listener.notification(notification),
            Message::Request(request) if self.is_modern() => self.violation(&request),
            Message::Request(ping) if *ping.method() == Method::Ping => {
                // L5: answered at once, by whoever is nearest.
                self.wire.answer(format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, ping.id()).into());
            }
            Message::Request(request) => self.question(request),
        }
    }

    fn is_modern(&self) -> bool {
        self.wire.revision.get().is_some_and(|revision| revision.era() == Era::Modern)
    }

    fn response(&self, response: Response) {
        let settled = upstream_id(response.id()).is_some_and(|id| self.wire.pending.settle(id, Ok(response)));
        if !settled {
            self.wire.metrics.late_response(self.wire.server());
        }
    }

    fn progress(&self, progress: Notification) {
        let params = progress.params().and_then(|p| Object::parse(p).ok());
        let id = params.and_then(|p| p.get("progressToken").and_then(upstream_id));
        match id.and_then(|id| self.wire.pending.listener(id)) {
            Some(listener) => {
                listener.notification(progress);
                listener.settled();
            }
            // Of a call that is over, which may go on as a task.
            None => self.listener.notification(progress),
        }
    }

    fn question(&self, request: Request) {
        let wire = Arc::clone(&self.wire);
        let reply = Reply::new(request.id(), move |message| wire.answer(message));
        self.listener.request(request, reply);
    }

    /// Text that is no message. If it would have been the answer to a call, the call must hear of it.
    fn malformed(&mut self, line: &Bytes, malformed: &Malformed) {
        let seen = glimpse(line);
        let answered = seen.id.filter(|_| seen.response && !seen.method);
        let Some((span, id)) = answered.and_then(|s| Some((s, upstream_id(s.text(line))?))) else {
            return self.skip(line);
        };
        // case-H03: `1.0` is our 1, though it is no legal id.
        let spelled = id.to_string();
        if span.text(line) != spelled
            && let Ok(Message::Response(response)) =
                Message::parse(Edit::of(line).replace(span, &spelled).finish())
        {
            return self.response(response);
        }
        self.skip(line);
        let message = format!(
            "Server `{}` answered with something that is no JSON-RPC response: {malformed}. The call may have run.",
            self.wire.server()
        );
        let failure = self.wire.failure(Layer::Call, "malformed_response", message, Delivery::Unknown);
        self.wire.pending.settle(id, Err(failure));
    }

    /// Whatever else stands on stdout is passed over: the link goes on (case-C01).
    fn skip(&mut self, line: &[u8]) {
        self.wire.metrics.stdout_skipped(self.wire.server());
        if let Some(hidden) = self.throttle.pass() {
            let line = self.tail.shown(line.get(..4096).unwrap_or(line));
            tracing::debug!(
                server = self.wire.server(),
                hidden,
                line,
                "skipped a line on stdout that is no message"
            );
        }
    }
}
