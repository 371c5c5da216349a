//! One live connection to a server.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::http::HttpLink;
use super::stdio::StdioLink;
use super::{Failure, Introduction, Listener, Outgoing};
use crate::protocol::envelope::Response;
use crate::protocol::revision::Era;

/// One live connection to a server, initialized and ready for calls.
#[derive(Debug)]
pub enum Link {
    /// A child process.
    Stdio(StdioLink),
    /// A session with a Streamable HTTP server.
    Http(HttpLink),
}

/// The gateway's id of one request on one link: a JSON number, never reused there (L7); it serves as the
/// progress token of the same request too. Its upper half is the owner's epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UpstreamId(pub u64);

/// How long it is tried to tell a server that a request is forgotten; nothing depends on it.
const FORGETTING: Duration = Duration::from_secs(5);

/// How a link is taken leave of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Farewell {
    /// The session is over: an HTTP server gets DELETE.
    End,
    /// The session goes on elsewhere: no DELETE.
    Leave,
}

impl Link {
    /// The era it is spoken to in.
    pub fn era(&self) -> Era {
        match self {
            Self::Stdio(link) => link.introduction().revision.era(),
            Self::Http(link) => link.era(),
        }
    }

    /// Whether headers repeat what is in a request's body (T43, T48).
    pub fn mirrors(&self) -> bool {
        match self {
            Self::Stdio(_) => false,
            Self::Http(_) => self.era() == Era::Modern,
        }
    }

    /// What the server said in `initialize` or `server/discover`.
    pub fn introduction(&self) -> Arc<Introduction> {
        match self {
            Self::Stdio(link) => link.introduction(),
            Self::Http(link) => link.introduction(),
        }
    }

    /// A fresh id for a request on this link.
    pub fn allot(&self) -> UpstreamId {
        match self {
            Self::Stdio(link) => link.allot(),
            Self::Http(link) => link.allot(),
        }
    }

    /// Sends a request whose id and progress token are `id`, and waits for its response.
    ///
    /// # Errors
    /// [`Failure`] when the link cannot carry it or broke; an error the server answers with is a [`Response`].
    ///
    /// # Cancellation
    /// Dropping the future forgets the request: a late response is counted and dropped. Where
    /// [`Link::hears_cancellation`], it does not tell the server; [`Link::forget`] does.
    pub async fn call(
        &self,
        id: UpstreamId,
        request: impl Into<Outgoing>,
        listener: Arc<dyn Listener>,
    ) -> Result<Response, Failure> {
        match self {
            Self::Stdio(link) => link.call(id, request, listener).await,
            Self::Http(link) => link.call(id, request.into(), listener).await,
        }
    }

    /// Whether the server must be told that nobody waits for a request any more. A modern HTTP server is told by the
    /// end of its stream (T54).
    pub fn hears_cancellation(&self) -> bool {
        match self {
            Self::Stdio(_) => true,
            Self::Http(_) => self.era() == Era::Legacy,
        }
    }

    /// Sends a notification.
    ///
    /// # Errors
    /// [`Failure`] when the link cannot carry it.
    pub async fn notify(&self, message: Bytes) -> Result<(), Failure> {
        match self {
            Self::Stdio(link) => link.notify(message).await,
            Self::Http(link) => link.notify(message).await,
        }
    }

    /// Tells the server that nobody waits for a request any more, where it must be told; waits a few seconds at most,
    /// since a server that does not read keeps nobody.
    pub async fn forget(&self, id: UpstreamId, why: &str) {
        if !self.hears_cancellation() || self.is_down() {
            return;
        }
        let message = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"{why}"}}}}"#
        );
        let told = tokio::time::timeout(FORGETTING, self.notify(message.into())).await;
        if !matches!(told, Ok(Ok(()))) {
            tracing::debug!("a server could not be told of a cancellation");
        }
    }

    /// Whether it can carry no more calls and must be replaced.
    pub fn is_down(&self) -> bool {
        match self {
            Self::Stdio(link) => link.is_down(),
            Self::Http(link) => link.is_down(),
        }
    }

    /// Cancelled when it is down.
    pub fn ended(&self) -> &CancellationToken {
        match self {
            Self::Stdio(link) => link.ended(),
            Self::Http(link) => link.ended(),
        }
    }

    /// Ends it; calls that run get a [`Failure`]. Idempotent, bounded in time.
    pub async fn close(&self, farewell: Farewell) {
        match self {
            Self::Stdio(link) => link.close().await,
            Self::Http(link) => link.close(farewell).await,
        }
    }
}

impl fmt::Display for UpstreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
