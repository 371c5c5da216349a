//! The gateway's id of one HTTP request: on every answer, in every error of ours, and in the log lines.

use http::HeaderValue;

/// The id of one HTTP request: uuid v7, so that ids sort by time.
#[derive(Clone, Debug)]
pub(super) struct RequestId(HeaderValue);

// === impl RequestId ===

impl RequestId {
    pub(super) fn new() -> Self {
        let mut buffer = uuid::Uuid::encode_buffer();
        let text: &str = uuid::Uuid::now_v7().hyphenated().encode_lower(&mut buffer);
        // Hexadecimal digits and hyphens are a legal header value.
        Self(HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static("")))
    }

    pub(super) fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }

    pub(super) fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}
