//! What hears a server when it speaks on its own: the seam between links and the layers above.

use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use crate::protocol::envelope::{Notification, Request};
use crate::protocol::error::Code;
use crate::protocol::object::quoted;
use crate::protocol::revision::Era;
use crate::store::ServerState;

/// Hears what a server sends while a call runs, or outside any call.
///
/// A link calls these from its reader, in the order the server wrote, so they must not block or wait.
pub trait Listener: Send + Sync {
    /// The server sent a notification. Progress of a call always goes to that call's listener; what else
    /// arrives on the HTTP stream of a call goes there too; everything else goes to the link's listener.
    fn notification(&self, message: Notification);

    /// The server asks something. `reply` must be used; dropped, it answers with an error.
    fn request(&self, message: Request, reply: Reply);

    /// The server's stream of this call stands at the event with this id; what is handed over next came with it.
    fn at(&self, _cursor: &str) {}

    /// The server's standalone stream stands at the event with this id, which was handed over.
    fn standalone_at(&self, _cursor: &str) {}

    /// The server closed the HTTP stream of this call on purpose and asked to be polled (`retry:`); the link
    /// resumes it, and the caller may be told the same.
    fn polled(&self, _retry: Option<Duration>) {}

    /// Everything that arrived together was handed over: what waits for more to come need wait no longer.
    fn settled(&self) {}

    /// The server refused something that a server of the era `remembered` would take: it is asked, once for all who
    /// doubt, and what it speaks now is the answer; none if nobody asks (T66).
    fn ask_era(&self, _remembered: Era) -> BoxFuture<'static, Option<Era>> {
        std::future::ready(None).boxed()
    }

    /// Whether the server can say anything outside calls has turned out; over stdio it always can.
    fn heard(&self, _heard: Heard) {}

    /// A session began at an HTTP server: what another replica needs to go on with it. The link waits for this before it
    /// uses the session.
    fn begun(&self, _state: ServerState) -> BoxFuture<'_, ()> {
        std::future::ready(()).boxed()
    }

    /// The link had to begin anew (lost upstream session): subscriptions and log level must be sent again.
    fn renewed(&self) {}
}

/// Whether an HTTP server of the legacy era can say anything outside calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// It offers a standalone stream for that (T25).
    OnStream,
    /// It offers none.
    Never,
}

/// The way back for the answer to one question of a server.
pub struct Reply {
    id: Box<str>,
    send: Option<Box<dyn FnOnce(Said) + Send + Sync>>,
}

/// A whole response message; or that there is none.
pub type Said = Result<Bytes, Refused>;

/// Why a question has no answer of its caller: nobody was asked, or nobody answered.
#[derive(Clone, Debug)]
pub struct Refused {
    /// The JSON-RPC code that the server gets.
    pub code: i32,
    /// One sentence that may leave the process.
    pub message: String,
}

// === impl Reply ===

impl Reply {
    /// A way back to the request with this raw id; `send` takes the whole response message and must not block.
    pub fn new(id: &str, send: impl FnOnce(Bytes) + Send + Sync + 'static) -> Self {
        let own: Box<str> = id.into();
        Self::told(id, move |said| send(said.unwrap_or_else(|refused| refused.to_message(&own))))
    }

    /// The same for who must tell an answer, be it an error, from there being none.
    pub fn told(id: &str, tell: impl FnOnce(Said) + Send + Sync + 'static) -> Self {
        Self { id: id.into(), send: Some(Box::new(tell)) }
    }

    /// The server's own id of its request, raw.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Sends a whole response message; its id must be [`Reply::id`].
    pub fn send(mut self, response: Bytes) {
        if let Some(send) = self.send.take() {
            send(Ok(response));
        }
    }

    /// Answers with an error.
    pub fn refuse(mut self, code: i32, message: &str) {
        self.refusal(Refused { code, message: message.to_owned() });
    }

    /// Says nothing: the server took its question back, or is another one by now.
    pub fn forget(mut self) {
        self.send = None;
    }

    fn refusal(&mut self, refused: Refused) {
        if let Some(send) = self.send.take() {
            send(Err(refused));
        }
    }
}

// === impl Refused ===

impl Refused {
    /// Whoever was to answer is not there any more.
    pub fn gone() -> Self {
        Self { code: Code::Internal.number(), message: "the caller is gone".to_owned() }
    }

    fn to_message(&self, id: &str) -> Bytes {
        let (code, message) = (self.code, quoted(&self.message));
        format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{message}}}}}"#).into()
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.refusal(Refused::gone());
    }
}
