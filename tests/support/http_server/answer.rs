//! What the server does with a request.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::StreamBody;
use hyper::body::Frame;
use tokio::sync::{Mutex, mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;

use super::State;
use super::seen::Seen;
use super::wire::Wire;

pub(super) type Body = StreamBody<ReceiverStream<io::Result<Frame<Bytes>>>>;

/// What the server does with a request.
#[derive(Clone)]
pub(crate) struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    content: Content,
    after: Option<Gate>,
}

#[derive(Clone)]
enum Content {
    /// A response with the request's id: the members beside it.
    Rpc(String),
    /// A body of known length.
    Whole(Bytes),
    /// The first bytes of a longer body, then the end of the connection.
    Cut(Bytes, usize),
    /// A body that comes in steps.
    Steps(Vec<Step>),
    /// No HTTP at all: bytes, then the end of the connection.
    Bare(Bytes),
    /// Nothing, then a reset.
    Reset,
}

/// One step of a body.
#[derive(Clone)]
pub(crate) enum Step {
    /// Bytes as they are.
    Raw(Bytes),
    /// An event with a response to the request that has these members.
    Members(String),
    /// Waits for the test.
    Until(Gate),
    /// Waits.
    Pause(Duration),
    /// Ends the connection in mid-body.
    Break,
    /// Resets the connection in mid-body.
    Reset,
    /// Never goes on.
    Hold,
    /// Goes on with what the test sends.
    Fed(Arc<Mutex<mpsc::Receiver<Step>>>),
}

/// Something a test opens and an answer waits for.
#[derive(Clone)]
pub(crate) struct Gate(watch::Sender<bool>);

/// The test's end of a stream; dropped, it ends the stream.
pub(crate) struct Feed(mpsc::Sender<Step>);

/// An event with this message.
pub(crate) fn message(data: &str) -> Step {
    raw(format!("data: {data}\n\n"))
}

/// The same with an id.
pub(crate) fn event(id: &str, data: &str) -> Step {
    raw(format!("id: {id}\ndata: {data}\n\n"))
}

/// An event with an id and no data (T21).
pub(crate) fn primed(id: &str) -> Step {
    raw(format!("id: {id}\ndata: \n\n"))
}

/// How long to wait before coming back (T22).
pub(crate) fn retry(milliseconds: u64) -> Step {
    raw(format!("retry: {milliseconds}\n\n"))
}

/// An event with a response whose result this is.
pub(crate) fn result(json: &str) -> Step {
    members(&format!(r#""result":{json}"#))
}

/// An event with a response of these members, whatever they are.
pub(crate) fn members(text: &str) -> Step {
    Step::Members(text.to_owned())
}

/// Bytes as they are.
pub(crate) fn raw(bytes: impl Into<Bytes>) -> Step {
    Step::Raw(bytes.into())
}

/// Waits for the test to open the gate.
pub(crate) fn hold_until(gate: &Gate) -> Step {
    Step::Until(gate.clone())
}

/// Waits for a while.
pub(crate) fn pause(time: Duration) -> Step {
    Step::Pause(time)
}

/// Ends the connection in mid-body.
pub(crate) fn break_off() -> Step {
    Step::Break
}

/// Resets the connection in mid-body.
pub(crate) fn reset() -> Step {
    Step::Reset
}

/// Keeps the stream open and silent.
pub(crate) fn hold() -> Step {
    Step::Hold
}

// === impl Answer ===

impl Answer {
    fn new(status: StatusCode, content: Content) -> Self {
        Self { status, headers: HeaderMap::new(), content, after: None }
    }

    /// The response with this result, as JSON.
    pub(crate) fn result(json: &str) -> Self {
        Self::members(&format!(r#""result":{json}"#))
    }

    /// The response with this error, as JSON.
    pub(crate) fn error(code: i32, message: &str) -> Self {
        let error = serde_json::json!({ "code": code, "message": message });
        Self::members(&format!(r#""error":{error}"#))
    }

    /// A response of these members, whatever they are, as JSON.
    pub(crate) fn members(text: &str) -> Self {
        Self::new(StatusCode::OK, Content::Rpc(text.to_owned())).content_type("application/json")
    }

    /// This text as JSON, whether it is or not.
    pub(crate) fn json(text: impl Into<Bytes>) -> Self {
        Self::new(StatusCode::OK, Content::Whole(text.into())).content_type("application/json")
    }

    /// Any body.
    pub(crate) fn body(content_type: &str, body: impl Into<Bytes>) -> Self {
        Self::new(StatusCode::OK, Content::Whole(body.into())).content_type(content_type)
    }

    /// A status without a body.
    pub(crate) fn status(status: u16) -> Self {
        Self::new(StatusCode::from_u16(status).unwrap(), Content::Whole(Bytes::new()))
    }

    /// A redirect.
    pub(crate) fn redirect(status: u16, location: &str) -> Self {
        Self::status(status).header("location", location)
    }

    /// An event stream.
    pub(crate) fn events(steps: impl IntoIterator<Item = Step>) -> Self {
        let steps = steps.into_iter().collect();
        Self::new(StatusCode::OK, Content::Steps(steps)).content_type("text/event-stream")
    }

    /// An event stream that the test goes on writing.
    pub(crate) fn fed() -> (Feed, Self) {
        Self::fed_after([])
    }

    /// The same behind some steps that it begins with.
    pub(crate) fn fed_after(first: impl IntoIterator<Item = Step>) -> (Feed, Self) {
        let (send, receive) = mpsc::channel(16);
        let fed = Step::Fed(Arc::new(Mutex::new(receive)));
        (Feed(send), Self::events(first.into_iter().chain([fed])))
    }

    /// These bytes instead of an HTTP answer, then the end of the connection.
    pub(crate) fn bare(bytes: impl Into<Bytes>) -> Self {
        Self::new(StatusCode::OK, Content::Bare(bytes.into()))
    }

    /// No answer: the connection ends.
    pub(crate) fn hang_up() -> Self {
        Self::bare(Bytes::new())
    }

    /// No answer: the connection is reset.
    pub(crate) fn reset() -> Self {
        Self::new(StatusCode::OK, Content::Reset)
    }

    /// Only the first `length` bytes of the body, then the end of the connection.
    pub(crate) fn cut(mut self, length: usize) -> Self {
        if let Content::Whole(body) = self.content {
            self.content = Content::Cut(body, length);
        }
        self
    }

    /// The same body with another status.
    pub(crate) fn with_status(mut self, status: u16) -> Self {
        self.status = StatusCode::from_u16(status).unwrap();
        self
    }

    /// The same with one more header.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        self
    }

    fn content_type(mut self, value: &str) -> Self {
        self.headers.insert("content-type", value.parse().unwrap());
        self
    }

    /// The same, once the gate is open.
    pub(crate) fn after(mut self, gate: &Gate) -> Self {
        self.after = Some(gate.clone());
        self
    }
}

// === impl Gate, Feed ===

impl Gate {
    /// A closed gate.
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(false))
    }

    /// Lets all through, now and later.
    pub(crate) fn open(&self) {
        self.0.send_replace(true);
    }

    async fn pass(&self) {
        let _ = self.0.subscribe().wait_for(|open| *open).await;
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

impl Feed {
    /// Does one more step.
    pub(crate) async fn send(&self, step: Step) {
        self.0.send(step).await.ok().unwrap();
    }

    /// The same, if the stream is still open.
    pub(crate) async fn try_send(&self, step: Step) -> bool {
        self.0.send(step).await.is_ok()
    }
}

fn rpc_message(members: &str, seen: &Seen) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{},{members}}}"#, seen.id.as_deref().unwrap_or("null"))
}

/// Does what `answer` says. An error ends the connection.
pub(super) async fn respond(
    answer: Answer,
    seen: Seen,
    state: Arc<State>,
    wire: Arc<Wire>,
) -> io::Result<Response<Body>> {
    if let Some(gate) = &answer.after {
        gate.pass().await;
    }
    let Answer { status, mut headers, content, .. } = answer;
    let content = match content {
        Content::Rpc(members) => Content::Whole(rpc_message(&members, &seen).into()),
        other => other,
    };
    let (send, receive) = mpsc::channel(1);
    let steps = match content {
        Content::Bare(bytes) => {
            wire.say_last(bytes);
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        Content::Reset => {
            wire.reset();
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        Content::Whole(body) => {
            headers.insert("content-length", HeaderValue::from(body.len()));
            vec![Step::Raw(body)]
        }
        Content::Cut(body, length) => {
            headers.insert("content-length", HeaderValue::from(body.len()));
            vec![Step::Raw(body.slice(..length)), Step::Break]
        }
        Content::Steps(steps) => steps,
        Content::Rpc(_) => unreachable!("it was written out above"),
    };
    let end = state.end.clone();
    state.tasks.clone().spawn(end.run_until_cancelled_owned(async move {
        if perform(steps, &seen, &send, &wire).await == Performed::HungUp {
            state.log.hang_up(seen.number);
        }
    }));
    let mut response = Response::new(StreamBody::new(ReceiverStream::new(receive)));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    Ok(response)
}

#[derive(PartialEq, Eq)]
enum Performed {
    All,
    HungUp,
}

async fn perform(
    steps: Vec<Step>,
    seen: &Seen,
    send: &mpsc::Sender<io::Result<Frame<Bytes>>>,
    wire: &Wire,
) -> Performed {
    for step in steps {
        let work = async {
            match step {
                Step::Fed(feed) => {
                    let mut feed = feed.lock().await;
                    while let Some(step) = feed.recv().await {
                        if !step_once(step, seen, send, wire).await {
                            return false;
                        }
                    }
                    true
                }
                step => step_once(step, seen, send, wire).await,
            }
        };
        let went_on = tokio::select! {
            biased;
            went_on = work => went_on,
            () = send.closed() => return Performed::HungUp,
        };
        if !went_on {
            return Performed::All;
        }
    }
    Performed::All
}

/// Does one step; `false` ends the stream.
async fn step_once(
    step: Step,
    seen: &Seen,
    send: &mpsc::Sender<io::Result<Frame<Bytes>>>,
    wire: &Wire,
) -> bool {
    let bytes = match step {
        Step::Raw(bytes) => bytes,
        Step::Members(text) => format!("data: {}\n\n", rpc_message(&text, seen)).into(),
        Step::Until(gate) => {
            gate.pass().await;
            return true;
        }
        Step::Pause(time) => {
            tokio::time::sleep(time).await;
            return true;
        }
        Step::Break => {
            let _ = send.send(Err(io::ErrorKind::ConnectionAborted.into())).await;
            return false;
        }
        Step::Reset => {
            wire.reset();
            let _ = send.send(Err(io::ErrorKind::ConnectionReset.into())).await;
            return false;
        }
        Step::Hold => std::future::pending().await,
        Step::Fed(_) => return true,
    };
    if bytes.is_empty() {
        return true;
    }
    let (mark, length) = (wire.mark(), bytes.len());
    if send.send(Ok(Frame::data(bytes))).await.is_err() {
        return false;
    }
    // Each step is on the wire before the next begins, so that a break cuts behind it.
    wire.written_since(mark, length).await;
    true
}
