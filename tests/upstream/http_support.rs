//! A link to a scripted server, and a listener that remembers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use mcpgate::protocol::envelope::{Notification, Request, Response};
use mcpgate::protocol::revision::Revision;
use mcpgate::settings::ServerSettings;
use mcpgate::settings::servers::{
    HttpSettings, Isolation, ProtocolSetting, TimeoutSettings, TransportSettings,
};
use mcpgate::telemetry::Metrics;
use mcpgate::upstream::Pace;
use mcpgate::upstream::http::{HttpClient, HttpLink};
use mcpgate::upstream::{Failure, Hello, Listener, Reply, UpstreamId};
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;
use url::Url;

/// What a listener heard.
pub(crate) enum Heard {
    Notification(String),
    Request(String, Option<Reply>),
    Polled(Option<Duration>),
    Renewed,
}

/// Remembers what it hears.
#[derive(Default)]
pub(crate) struct Ear {
    heard: Mutex<Vec<Heard>>,
    changed: Notify,
}

/// One link and what belongs to it.
pub(crate) struct Rig {
    pub(crate) link: Arc<HttpLink>,
    pub(crate) ear: Arc<Ear>,
}

/// How a link is opened.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) settings: ServerSettings,
    pub(crate) pace: Pace,
}

/// Fails a test that hangs.
pub(crate) async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), work).await.expect("it ends soon")
}

/// The request `method` as the relay would write it.
pub(crate) fn request(id: UpstreamId, method: &str) -> Bytes {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"_meta":{{"progressToken":{id}}}}}}}"#
    )
    .into()
}

// === impl Plan ===

impl Plan {
    pub(crate) fn new(url: Url) -> Self {
        let settings = ServerSettings {
            name: "scripted".to_owned(),
            transport: TransportSettings::Http(HttpSettings { url, headers: Vec::new() }),
            isolation: Isolation::Session,
            protocol: ProtocolSetting::Pinned(Revision::LATEST_LEGACY),
            timeouts: TimeoutSettings { start: Duration::from_secs(10), ..TimeoutSettings::default() },
            max_message: 1 << 20,
            include: Vec::new(),
            exclude: Vec::new(),
        };
        Self { settings, pace: Pace { first: Duration::from_millis(5), most: Duration::from_millis(40) } }
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        if let TransportSettings::Http(http) = &mut self.settings.transport {
            http.headers.push((name.parse().unwrap(), value.to_owned().into()));
        }
        self
    }

    pub(crate) async fn open(self) -> Result<Rig, Failure> {
        let ear = Arc::new(Ear::default());
        let hello = Hello {
            revision: Revision::LATEST_LEGACY,
            capabilities: r#"{"roots":{}}"#.into(),
            client_info: r#"{"name":"test","version":"0"}"#.into(),
        };
        let client = HttpClient::new().with_pace(self.pace);
        let (tasks, metrics) = (TaskTracker::new(), Arc::new(Metrics::default()));
        let listener: Arc<dyn Listener> = ear.clone();
        let link = HttpLink::open(Arc::new(self.settings), hello, 3, listener, &client, &tasks, &metrics);
        Ok(Rig { link: Arc::new(soon(link).await?), ear })
    }
}

// === impl Rig ===

impl Rig {
    pub(crate) async fn open(url: Url) -> Self {
        Plan::new(url).open().await.unwrap()
    }

    /// Calls a method with an ear of its own.
    pub(crate) async fn call(&self, method: &str) -> Result<Response, Failure> {
        self.call_heard(method, &Arc::new(Ear::default())).await
    }

    pub(crate) async fn call_heard(&self, method: &str, ear: &Arc<Ear>) -> Result<Response, Failure> {
        let id = self.link.allot();
        soon(self.link.call(id, request(id, method).into(), ear.clone())).await
    }

    /// Calls in the background.
    pub(crate) fn calling(&self, method: &'static str, ear: &Arc<Ear>) -> Calling {
        let (link, ear) = (Arc::clone(&self.link), Arc::clone(ear));
        let id = link.allot();
        let task =
            TaskTracker::new().spawn(async move { link.call(id, request(id, method).into(), ear).await });
        Calling { id, task }
    }
}

/// A call in the background.
pub(crate) struct Calling {
    pub(crate) id: UpstreamId,
    task: tokio::task::JoinHandle<Result<Response, Failure>>,
}

impl Calling {
    pub(crate) async fn answer(self) -> Result<Response, Failure> {
        soon(self.task).await.unwrap()
    }

    /// Goes away without waiting for the answer.
    pub(crate) fn drop_it(self) {
        self.task.abort();
    }
}

// === impl Ear ===

impl Ear {
    /// Waits until something was heard of which `pick` makes something.
    pub(crate) async fn await_heard<T>(&self, mut pick: impl FnMut(&mut Heard) -> Option<T>) -> T {
        soon(async {
            loop {
                let changed = self.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if let Some(found) = self.heard.lock().unwrap().iter_mut().find_map(&mut pick) {
                    return found;
                }
                changed.await;
            }
        })
        .await
    }

    /// Waits for a notification of this method and gives its text.
    pub(crate) async fn notification(&self, method: &str) -> String {
        self.await_heard(|heard| match heard {
            Heard::Notification(text) if text.contains(method) => Some(text.clone()),
            _ => None,
        })
        .await
    }

    /// Waits for a request of this method and gives the way back.
    pub(crate) async fn asked(&self, method: &str) -> Reply {
        self.await_heard(|heard| match heard {
            Heard::Request(text, reply) if text.contains(method) => reply.take(),
            _ => None,
        })
        .await
    }

    /// The notifications so far.
    pub(crate) fn notifications(&self) -> Vec<String> {
        self.all(|heard| match heard {
            Heard::Notification(text) => Some(text.clone()),
            _ => None,
        })
    }

    pub(crate) fn all<T>(&self, pick: impl FnMut(&Heard) -> Option<T>) -> Vec<T> {
        self.heard.lock().unwrap().iter().filter_map(pick).collect()
    }

    fn hear(&self, heard: Heard) {
        self.heard.lock().unwrap().push(heard);
        self.changed.notify_waiters();
    }
}

impl Listener for Ear {
    fn notification(&self, message: Notification) {
        self.hear(Heard::Notification(String::from_utf8(message.bytes().to_vec()).unwrap()));
    }

    fn request(&self, message: Request, reply: Reply) {
        self.hear(Heard::Request(String::from_utf8(message.bytes().to_vec()).unwrap(), Some(reply)));
    }

    fn polled(&self, retry: Option<Duration>) {
        self.hear(Heard::Polled(retry));
    }

    fn renewed(&self) {
        self.hear(Heard::Renewed);
    }
}
