//! Answers: the one place where refusals become statuses, headers and bodies.

use std::any::Any;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};

use super::request_id::RequestId;
use crate::protocol::edit::Text;
use crate::protocol::error::{Code, RpcError};
use crate::protocol::header::ACCEL_BUFFERING;

/// A request that is not relayed.
#[derive(Debug)]
pub(super) struct Refused {
    status: StatusCode,
    /// Boxed, so that a refusal that does not happen costs no room in every result.
    error: Box<RpcError>,
    /// The raw JSON-RPC id, once it is known.
    id: Option<Box<str>>,
    extra: Option<Extra>,
}

/// A header that belongs to a status.
#[derive(Debug)]
pub(super) enum Extra {
    /// What an endpoint takes: 405, and a GET that is none of a session.
    Allow,
    /// What an endpoint without sessions takes: 405.
    AllowPost,
    /// What a document takes: 405.
    AllowRead,
    /// 429 and 503, in seconds.
    RetryAfter(u32),
    /// 401 and 403.
    Challenge(HeaderValue),
}

// === impl Refused ===

impl Refused {
    pub(super) fn new(
        status: StatusCode,
        code: Code,
        reason: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self::because(status, RpcError::new(code, reason, message))
    }

    /// The same with an error that says more.
    pub(super) fn because(status: StatusCode, error: RpcError) -> Self {
        Self { status, error: Box::new(error), id: None, extra: None }
    }

    /// The caller's fault: -32600.
    pub(super) fn caller(status: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(status, Code::InvalidRequest, reason, message)
    }

    /// Ours, for now: 503 and -32603.
    pub(super) fn unavailable(reason: &'static str, message: impl Into<String>) -> Self {
        let mut refused = Self::new(StatusCode::SERVICE_UNAVAILABLE, Code::Internal, reason, message);
        refused.error.retryable = true;
        refused.with(Extra::RetryAfter(1))
    }

    #[must_use]
    pub(super) fn with(mut self, extra: Extra) -> Self {
        self.extra = Some(extra);
        self
    }

    #[must_use]
    pub(super) fn of(mut self, id: Option<&str>) -> Self {
        self.id = id.map(Into::into);
        self
    }

    pub(super) fn into_response(self, request_id: &RequestId) -> Response {
        tracing::debug!(
            request.id = request_id.as_str(),
            status = self.status.as_u16(),
            reason = self.error.reason,
            "refused: {}",
            self.error.message
        );
        let body = self.error.to_message(self.id.as_deref(), Some(request_id.as_str()));
        let mut response = json(self.status, body);
        let headers = response.headers_mut();
        match self.extra {
            Some(Extra::Allow) => drop(headers.insert(ALLOW, HeaderValue::from_static("GET, POST, DELETE"))),
            Some(Extra::AllowPost) => drop(headers.insert(ALLOW, HeaderValue::from_static("POST"))),
            Some(Extra::AllowRead) => drop(headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"))),
            Some(Extra::RetryAfter(seconds)) => drop(headers.insert(RETRY_AFTER, seconds.into())),
            Some(Extra::Challenge(challenge)) => drop(headers.insert(WWW_AUTHENTICATE, challenge)),
            None => {}
        }
        response
    }
}

/// One JSON text.
pub(super) fn json(status: StatusCode, body: Bytes) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// One JSON text in two pieces.
pub(super) fn json_text(text: Text) -> Response {
    if text.tail.is_empty() {
        return json(StatusCode::OK, text.head);
    }
    let mut response = Response::new(Body::new(Pieces(text)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A status without a body.
pub(super) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// An event stream; no proxy may change, keep or hold back any of it (T12).
pub(super) fn sse(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response
}

/// The body of a text in two pieces.
struct Pieces(Text);

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
        let next = if self.0.head.is_empty() { &mut self.0.tail } else { &mut self.0.head };
        let piece = std::mem::take(next);
        Poll::Ready((!piece.is_empty()).then(|| Ok(http_body::Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.head.is_empty() && self.0.tail.is_empty()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        http_body::SizeHint::with_exact((self.0.head.len() + self.0.tail.len()) as u64)
    }
}

/// The answer when our own code panicked: the caller hears of it, others notice nothing (case-I13).
pub(super) fn panicked(panic: &(dyn Any + Send), request_id: &RequestId) -> Response {
    let what =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    tracing::error!(request.id = request_id.as_str(), panic = what, "a request panicked");
    let message = "The gateway failed while it served this request; its log says more under the request id.";
    Refused::new(StatusCode::INTERNAL_SERVER_ERROR, Code::Internal, "panicked", message)
        .into_response(request_id)
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::super::request_id::RequestIds;
    use super::*;

    /// case-I13: a panic is a 500 that can be found in the log, and says nothing of the inside.
    #[tokio::test]
    async fn a_panic_is_an_answer() {
        let id = RequestIds::new().next();
        let answer = panicked(&"index out of bounds", &id);
        assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let body = answer.into_body().collect().await.expect("a body").to_bytes();
        let text = String::from_utf8_lossy(&body);
        assert!(text.contains(id.as_str()) && !text.contains("bounds"), "{text}");
    }
}
