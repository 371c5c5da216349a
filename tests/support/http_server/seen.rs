//! What the server was sent.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method};
use serde_json::Value;
use tokio::sync::Notify;

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// The HTTP method.
    pub(crate) method: Method,
    /// The path and query.
    pub(crate) path: String,
    /// All headers.
    pub(crate) headers: HeaderMap,
    /// The body.
    pub(crate) body: Bytes,
    /// The JSON-RPC method, if the body has one.
    pub(crate) rpc: Option<String>,
    /// The JSON-RPC id as it stands, if the body has one.
    pub(crate) id: Option<String>,
    /// Whether the client closed the stream that answers it.
    pub(crate) hung_up: bool,
    /// When it came.
    pub(crate) at: Instant,
    /// Which connection it came on, counted from 0.
    pub(crate) connection: usize,
    /// Its place in the order of requests.
    pub(super) number: usize,
}

/// Matches a JSON-RPC method.
pub(crate) fn rpc(method: &'static str) -> impl Fn(&Seen) -> bool + Send + Copy + 'static {
    move |seen| seen.is(method)
}

/// Matches an HTTP method.
pub(crate) fn http(method: Method) -> impl Fn(&Seen) -> bool + Send + Clone + 'static {
    move |seen| seen.method == method
}

/// All requests, in order.
#[derive(Default)]
pub(super) struct Log {
    seen: Mutex<Vec<Seen>>,
    changed: Notify,
}

// === impl Seen ===

impl Seen {
    pub(super) fn new(head: Parts, body: Bytes, connection: usize) -> Self {
        let json: Value = serde_json::from_slice(&body).unwrap_or_default();
        Self {
            method: head.method,
            path: head.uri.to_string(),
            headers: head.headers,
            rpc: json.get("method").and_then(Value::as_str).map(str::to_owned),
            id: json.get("id").map(Value::to_string),
            body,
            hung_up: false,
            at: Instant::now(),
            connection,
            number: 0,
        }
    }

    /// Whether it has this JSON-RPC method.
    pub(crate) fn is(&self, method: &str) -> bool {
        self.rpc.as_deref() == Some(method)
    }

    /// A header, if it is there.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// The body as text.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// A member of `params`, as JSON text.
    pub(crate) fn param(&self, name: &str) -> Option<String> {
        self.json().get("params")?.get(name).map(Value::to_string)
    }
}

// === impl Log ===

impl Log {
    pub(super) fn add(&self, seen: &Seen) -> usize {
        let mut all = self.seen.lock().unwrap();
        let number = all.len();
        all.push(Seen { number, ..seen.clone() });
        drop(all);
        self.changed.notify_waiters();
        number
    }

    pub(super) fn hang_up(&self, number: usize) {
        self.seen.lock().unwrap()[number].hung_up = true;
        self.changed.notify_waiters();
    }

    pub(super) fn all(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(super) async fn wait(&self, count: usize, what: &str, matches: impl Fn(&Seen) -> bool) -> Vec<Seen> {
        let found = async {
            loop {
                let changed = self.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                let found: Vec<Seen> = self.all().into_iter().filter(|seen| matches(seen)).collect();
                if found.len() >= count {
                    return found;
                }
                changed.await;
            }
        };
        match tokio::time::timeout(Duration::from_secs(10), found).await {
            Ok(found) => found,
            Err(_) => panic!("{count} {what} did not come; there were {:#?}", self.all()),
        }
    }
}
