//! One upstream listen: asked for, acknowledged, and taken leave of when it is dropped.

use std::pin::Pin;
use std::sync::Arc;

use tokio::time::Instant;

use super::Standing;
use crate::protocol::envelope::Response;
use crate::protocol::error::Code;
use crate::protocol::listen::Filter;
use crate::protocol::method::Method;
use crate::protocol::object::Object;
use crate::protocol::revision::Era;
use crate::relay::Relay;
use crate::relay::links::Connected;
use crate::relay::listens::ear::Ear;
use crate::upstream::{Failure, Link, Outgoing, UpstreamId};

/// A listen that the server has acknowledged.
pub(super) struct Open {
    call: Call,
    /// What it asks for.
    pub(super) asked: Filter,
    /// What of that the server tells.
    pub(super) accepted: Filter,
    pub(super) since: Instant,
}

/// What a server says to a listen.
pub(super) enum Said {
    /// It tells.
    Yes(Open),
    /// It has nothing to tell, or knows no such method.
    Nothing,
    /// It refuses all of it because of something in it.
    No(Failure),
}

/// A listen at the server. Dropped before its end it is taken leave of: over HTTP by closing the stream, over stdio
/// by saying so (T65).
struct Call {
    relay: Arc<Relay>,
    link: Arc<Link>,
    id: UpstreamId,
    answer: Pin<Box<dyn Future<Output = Result<Response, Failure>> + Send>>,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Running,
    Ended,
}

// === impl Standing ===

impl Standing {
    /// Asks the server at the end of a link for `asked`, and waits until `deadline` for what it says.
    pub(super) async fn ask(
        &self,
        relay: &Arc<Relay>,
        at: &Connected,
        asked: Filter,
        deadline: Instant,
    ) -> Result<Said, Failure> {
        let (link, id) = (at.link.clone(), at.link.allot());
        let params = format!(r#""notifications":{}"#, asked.written());
        let request = Outgoing::own(Era::Modern, id, &Method::Listen, &params, &self.hello());
        let ear = Ear::new(at.origin.clone());
        let answer = {
            let (link, ear) = (link.clone(), ear.clone());
            Box::pin(async move { link.call(id, request, ear).await })
        };
        let mut call = Call { relay: relay.clone(), link, id, answer, stage: Stage::Running };
        let response = tokio::select! {
            biased;
            accepted = ear.acknowledged() => {
                let accepted = asked.and(&accepted);
                return Ok(Said::Yes(Open { call, asked, accepted, since: Instant::now() }));
            }
            response = call.ended() => response?,
            () = tokio::time::sleep_until(deadline) => {
                let limit = self.server.timeouts.list;
                return Err(self.failed("timed_out", &format!("subscriptions/listen was not acknowledged within {limit:?} (timeouts.list)")));
            }
        };
        Ok(match response.error() {
            // It is asked again when it says something else of itself.
            None => Said::Nothing,
            Some(error) if is_unknown_method(error) => Said::Nothing,
            Some(_) => {
                Said::No(self.failed("listen_refused", "subscriptions/listen was answered with an error"))
            }
        })
    }
}

// === impl Open ===

impl Open {
    /// Waits for its end; over HTTP this is what reads it.
    pub(super) async fn ended(&mut self) -> Result<Response, Failure> {
        self.call.ended().await
    }
}

// === impl Call ===

impl Call {
    async fn ended(&mut self) -> Result<Response, Failure> {
        let ended = (&mut self.answer).await;
        self.stage = Stage::Ended;
        ended
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if self.stage == Stage::Running {
            self.relay.tell_server(&self.link, self.id, "no longer wanted");
        }
    }
}

fn is_unknown_method(error: &str) -> bool {
    let code = Object::parse(error).ok().and_then(|e| e.get("code").map(str::to_owned));
    code.is_some_and(|c| c == Code::MethodNotFound.number().to_string())
}
