//! The gateway's id of one HTTP request: on every answer, in every error of ours, and in the log lines.

use std::sync::Arc;
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
pub(super) struct RequestId(Arc<str>);

// === impl RequestIds ===

impl RequestIds {
    pub(super) fn new() -> Self {
        let (process, _) = uuid::Uuid::new_v4().as_u64_pair();
        Self { process, next: AtomicU64::new(1) }
    }

    pub(super) fn next(&self) -> RequestId {
        RequestId(format!("{:016x}-{}", self.process, self.next.fetch_add(1, Relaxed)).into())
    }
}

// === impl RequestId ===

impl RequestId {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// The same for the layers below.
    pub(super) fn shared(&self) -> Arc<str> {
        self.0.clone()
    }

    pub(super) fn header(&self) -> HeaderValue {
        // Hexadecimal digits and hyphens are a legal header value.
        HeaderValue::from_str(&self.0).unwrap_or(HeaderValue::from_static(""))
    }
}
