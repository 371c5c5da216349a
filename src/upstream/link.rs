//! One live connection to a server.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use super::http::HttpLink;
use super::stdio::StdioLink;
use super::{Failure, Introduction, Listener};
use crate::protocol::envelope::Response;

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

/// How a link is taken leave of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Farewell {
    /// The session is over: an HTTP server gets DELETE.
    End,
    /// The session goes on elsewhere: no DELETE.
    Leave,
}

impl Link {
    /// What the server said in `initialize`.
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

    /// Sends the request `message`, whose id and progress token are `id`, and waits for its response.
    ///
    /// # Errors
    /// [`Failure`] when the link cannot carry it or broke; an error the server answers with is a [`Response`].
    ///
    /// # Cancellation
    /// Dropping the future forgets the request: a late response is counted and dropped. It does not tell the
    /// server; send `notifications/cancelled` by [`Link::notify`] for that.
    pub async fn call(
        &self,
        id: UpstreamId,
        message: Bytes,
        listener: Arc<dyn Listener>,
    ) -> Result<Response, Failure> {
        match self {
            Self::Stdio(link) => link.call(id, message, listener).await,
            Self::Http(link) => link.call(id, message, listener).await,
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

    /// Whether it can carry no more calls and must be replaced.
    pub fn is_down(&self) -> bool {
        match self {
            Self::Stdio(link) => link.is_down(),
            Self::Http(link) => link.is_down(),
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
