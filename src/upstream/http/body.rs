//! Bodies of answers: what kind, and all of it up to a bound.

use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::response::Parts;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body, Incoming};
use tokio_util::task::TaskTracker;

use crate::protocol::sse::ByteLimit;

/// How a body has to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// One JSON text.
    Json,
    /// An event stream.
    Events,
    /// Neither: nothing in it is for us.
    Other,
}

/// Why a body could not be read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// It broke off.
    Broken,
    /// It is over the limit.
    TooLarge,
}

// === impl Form ===

impl Form {
    pub(super) fn of(head: &Parts) -> Self {
        // A server that names no type is believed if what it sends is JSON.
        let Some(value) = head.headers.get(CONTENT_TYPE) else { return Self::Json };
        let essence = value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        if essence.eq_ignore_ascii_case(b"application/json") {
            Self::Json
        } else if essence.eq_ignore_ascii_case(b"text/event-stream") {
            Self::Events
        } else {
            Self::Other
        }
    }
}

/// Reads all of a body. One that comes in a single frame, as most do, is not copied.
pub(super) async fn collect(mut body: Incoming, limit: ByteLimit) -> Result<Bytes, Unread> {
    if body.size_hint().lower() > limit.0 as u64 {
        return Err(Unread::TooLarge);
    }
    let first = loop {
        match body.frame().await {
            None => return Ok(Bytes::new()),
            Some(Err(_)) => return Err(Unread::Broken),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    break data;
                }
            }
        }
    };
    if body.is_end_stream() && first.len() <= limit.0 {
        return Ok(first);
    }
    let left = limit.0.checked_sub(first.len()).ok_or(Unread::TooLarge)?;
    let rest = match Limited::new(body, left).collect().await {
        Ok(rest) => rest.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => return Err(Unread::TooLarge),
        Err(_) => return Err(Unread::Broken),
    };
    if rest.is_empty() {
        return Ok(first);
    }
    Ok([first, rest].concat().into())
}

/// Lets go of a body nobody wants. Over HTTP/1.1 its connection can be used again only once the body ended, so a
/// short one is read away in the background; a long or slow one costs the connection.
pub(super) fn discard(body: Incoming, tasks: &TaskTracker) {
    const LIMIT: ByteLimit = ByteLimit(64 << 10);
    const PATIENCE: Duration = Duration::from_secs(1);
    if !body.is_end_stream() {
        tasks.spawn(async move { tokio::time::timeout(PATIENCE, collect(body, LIMIT)).await.is_ok() });
    }
}
