//! A store for tests that takes writes as a script says, and what a caller reads.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Semaphore, watch};
use tokio_util::task::TaskTracker;

use super::Journal;
use crate::protocol::revision::Revision;
use crate::protocol::sse::{ByteLimit, Decoder};
use crate::session::log::Budget;
use crate::session::{EventId, Reader, Restored, Step, Streams};
use crate::settings::StreamSettings;
use crate::store::event_log::{EntryId, LogEntry};
use crate::store::{
    Epoch, EventLog, Lifetime, MemoryStore, Record, ReplicaId, SessionKey, SessionStore, StoreError, Stored,
    lock,
};

/// What becomes of one append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) enum Act {
    Take,
    /// Takes it once the test says so.
    TakeLater,
    Fail,
    TakeAndFail,
    Hang,
    TakeAndHang,
    /// Another replica adopts the session first.
    Adopt,
    /// The session is ended elsewhere first.
    Remove,
}

/// The memory store, behind a script; what is not in it is taken.
pub(in crate::session) struct Scripted {
    pub(in crate::session) store: MemoryStore,
    script: Mutex<VecDeque<Act>>,
    /// One permit for each [`Act::TakeLater`] that may go on.
    pub(in crate::session) later: Semaphore,
    appends: watch::Sender<usize>,
}

/// What a reader has now.
#[derive(Debug, Default)]
pub(in crate::session) struct Read {
    /// The ids of events, priming ones too.
    pub(in crate::session) ids: Vec<EventId>,
    /// The messages: `"n:id"` for one without an error, `"reason:id"` for one with; a notification has id `null`.
    pub(in crate::session) said: Vec<String>,
    pub(in crate::session) retries: usize,
    pub(in crate::session) ended: bool,
}

pub(in crate::session) const KEY: SessionKey = SessionKey([7; 32]);

// === impl Scripted ===

impl Scripted {
    /// With the record of a session, of its first owner.
    pub(in crate::session) async fn new(script: impl IntoIterator<Item = Act>) -> Arc<Self> {
        let store = MemoryStore::default();
        let lifetime = Lifetime { idle: Duration::from_secs(3600), max_age: Duration::from_secs(36_000) };
        let record = Record {
            binding: [0; 32],
            endpoint: "/mcp".into(),
            initialize: "{}".into(),
            revision: "2025-11-25".into(),
            initialized: true,
            log_level: None,
            subscriptions: std::collections::BTreeSet::default(),
            servers: std::collections::BTreeMap::default(),
            lifetime,
            age: Duration::ZERO,
            idle_for: Duration::ZERO,
            owner: Some(ReplicaId("a".into())),
            epoch: Epoch::FIRST,
        };
        store.create(KEY, record).await.expect("a new record");
        let script = Mutex::new(script.into_iter().collect());
        Arc::new(Self { store, script, later: Semaphore::new(0), appends: watch::Sender::new(0) })
    }

    pub(in crate::session) fn script(&self, acts: impl IntoIterator<Item = Act>) {
        *lock(&self.script) = acts.into_iter().collect();
    }

    /// How often it was asked to take a write.
    pub(in crate::session) fn appends(&self) -> usize {
        *self.appends.borrow()
    }

    /// Waits until it was asked `n` times.
    pub(in crate::session) async fn asked(&self, n: usize) {
        let mut appends = self.appends.subscribe();
        let asked = appends.wait_for(|appends| *appends >= n);
        tokio::time::timeout(Duration::from_secs(60), asked).await.expect("in time").expect("kept");
    }

    /// The streams of the first owner.
    pub(in crate::session) fn streams(
        self: &Arc<Self>,
        settings: StreamSettings,
        revision: Revision,
    ) -> Arc<Streams> {
        let budget = Arc::new(Budget::new(settings.max_total));
        let streams = Streams::new(Arc::new(settings), revision, Epoch::FIRST, budget);
        Arc::new(streams.with_journal(self.journal(Epoch::FIRST)))
    }

    pub(in crate::session) fn journal(self: &Arc<Self>, epoch: Epoch) -> Journal {
        Journal::new(self.clone(), KEY, epoch, TaskTracker::new())
    }

    /// What the next owner makes of the log; nothing is given up yet.
    pub(in crate::session) async fn adopt(
        self: &Arc<Self>,
        settings: StreamSettings,
        revision: Revision,
    ) -> Restored {
        self.script([]);
        let last = self.store.epochs(vec![KEY]).await.expect("epochs")[0].expect("a record");
        let epoch = self.store.adopt(KEY, last, ReplicaId("b".into())).await.expect("adopted");
        let journal = self.journal(epoch);
        journal.adopt().await.expect("adopted");
        let entries = journal.read_back().await.expect("a log");
        let budget = Arc::new(Budget::new(settings.max_total));
        Streams::restore(Arc::new(settings), revision, epoch, budget, entries, journal)
    }

    /// What is in the log.
    pub(in crate::session) async fn entries(&self) -> Vec<LogEntry> {
        self.store.read(KEY, None, usize::MAX).await.expect("a log")
    }
}

impl EventLog for Scripted {
    fn append(&self, key: SessionKey, entries: Vec<LogEntry>) -> Stored<'_, ()> {
        self.appends.send_modify(|appends| *appends += 1);
        let act = lock(&self.script).pop_front().unwrap_or(Act::Take);
        Box::pin(async move {
            match act {
                Act::Take => self.store.append(key, entries).await,
                Act::TakeLater => {
                    self.later.acquire().await.expect("open").forget();
                    self.store.append(key, entries).await
                }
                Act::Fail => Err(StoreError::Unreachable),
                Act::TakeAndFail => {
                    self.store.append(key, entries).await?;
                    Err(StoreError::Unreachable)
                }
                Act::Hang => std::future::pending().await,
                Act::TakeAndHang => {
                    self.store.append(key, entries).await?;
                    std::future::pending().await
                }
                Act::Adopt => {
                    let _ = self.store.adopt(key.clone(), Epoch::FIRST, ReplicaId("b".into())).await;
                    self.store.append(key, entries).await
                }
                Act::Remove => {
                    self.store.remove(key.clone()).await?;
                    self.store.append(key, entries).await
                }
            }
        })
    }

    fn forget(&self, key: SessionKey, epoch: Epoch, entries: Vec<EntryId>) -> Stored<'_, ()> {
        self.store.forget(key, epoch, entries)
    }

    fn read(&self, key: SessionKey, after: Option<EntryId>, most: usize) -> Stored<'_, Vec<LogEntry>> {
        self.store.read(key, after, most)
    }
}

// === what callers say and read ===

pub(in crate::session) fn settings() -> StreamSettings {
    StreamSettings { retry: Duration::from_millis(700), ..StreamSettings::default() }
}

pub(in crate::session) fn response(id: usize) -> Bytes {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#).into()
}

pub(in crate::session) fn request(id: usize) -> Bytes {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"roots/list"}}"#).into()
}

pub(in crate::session) fn notification() -> Bytes {
    Bytes::from_static(br#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#)
}

pub(in crate::session) fn read(reader: &mut Reader) -> Read {
    let mut out = Vec::new();
    let mut read = Read::default();
    let mut cx = Context::from_waker(Waker::noop());
    loop {
        match reader.poll_step(&mut cx, &mut out) {
            Poll::Ready(Step::Data) => {}
            Poll::Ready(Step::End) => {
                read.ended = true;
                break;
            }
            Poll::Pending => break,
        }
    }
    let mut decoder = Decoder::new(ByteLimit(1 << 24));
    let mut chunk = Bytes::from(out);
    while let Some(event) = decoder.decode(&mut chunk).expect("events") {
        read.ids.extend(event.id.map(|id| EventId::parse(&id).expect("an id of ours")));
        read.retries += usize::from(event.retry.is_some());
        if !event.data.is_empty() {
            let value: serde_json::Value = serde_json::from_slice(&event.data).expect("JSON");
            let reason = value["error"]["data"]["mcpgate"]["reason"].as_str().unwrap_or("n");
            read.said.push(format!("{reason}:{}", value["id"]));
        }
    }
    read
}
