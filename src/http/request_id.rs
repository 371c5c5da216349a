//! The gateway's id of one HTTP request: on every answer, in every error of ours, and in the log lines.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use http::HeaderValue;

/// Makes ids that no other process makes: half of them is drawn at random at the start, half counts.
#[derive(Debug)]
pub(super) struct RequestIds {
    process: u64,
    next: AtomicU64,
}

/// The id of one HTTP request: 16 hexadecimal digits of the process, a hyphen, and a count.
#[derive(Clone, Debug)]
pub(super) struct RequestId(HeaderValue);

// === impl RequestIds ===

impl RequestIds {
    pub(super) fn new() -> Self {
        let (process, _) = uuid::Uuid::new_v4().as_u64_pair();
        Self { process, next: AtomicU64::new(1) }
    }

    pub(super) fn next(&self) -> RequestId {
        let text = format!("{:016x}-{}", self.process, self.next.fetch_add(1, Relaxed));
        // Hexadecimal digits and hyphens are a legal header value.
        RequestId(
            HeaderValue::from_maybe_shared(bytes::Bytes::from(text)).unwrap_or(HeaderValue::from_static("")),
        )
    }
}

// === impl RequestId ===

impl RequestId {
    pub(super) fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }

    pub(super) fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}
