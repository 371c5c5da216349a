//! The store of a single replica: this process's memory. It ends with the process, and so do its sessions.

mod bus;
mod leases;

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

use tokio::time::Instant;

pub use bus::MemoryBus;
pub use leases::MemoryLeases;

use super::event_log::{EntryId, EventLog, LogEntry, Logged};
use super::sessions::{Change, SessionStore};
use super::{Epoch, Record, ReplicaId, ServerState, SessionKey, StoreError, Stored, lock};

/// Session records and their logs.
#[derive(Debug, Default)]
pub struct MemoryStore(Mutex<HashMap<SessionKey, Held>>);

/// A record and its log, which ends with it.
#[derive(Debug)]
struct Held {
    /// Its times are of when it was written; what a reader is told counts from `began` and `touched`.
    record: Record,
    began: Instant,
    touched: Instant,
    log: BTreeMap<EntryId, Logged>,
    /// The place behind which entries are taken, also once the last ones are forgotten.
    last: Option<EntryId>,
}

// === impl MemoryStore ===

impl MemoryStore {
    /// Does something to what is held of a session, if `epoch` is its owner's.
    fn at<T>(
        &self,
        key: &SessionKey,
        epoch: Epoch,
        act: impl FnOnce(&mut Held) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut all = lock(&self.0);
        let held = all.get_mut(key).ok_or(StoreError::Gone)?;
        if held.record.epoch == epoch { act(held) } else { Err(StoreError::Fenced) }
    }
}

impl SessionStore for MemoryStore {
    fn create(&self, key: SessionKey, record: Record) -> Stored<'_, ()> {
        let mut all = lock(&self.0);
        if all.contains_key(&key) {
            return done(Err(StoreError::Fenced));
        }
        all.insert(key, Held::new(record));
        done(Ok(()))
    }

    fn load(&self, key: SessionKey) -> Stored<'_, Option<Record>> {
        done(Ok(lock(&self.0).get(&key).map(Held::as_read)))
    }

    fn change(&self, key: SessionKey, epoch: Epoch, change: Change) -> Stored<'_, ()> {
        done(self.at(&key, epoch, |Held { record, touched, .. }| {
            match change {
                Change::Initialized => record.initialized = true,
                Change::LogLevel(level) => record.log_level = Some(level),
                Change::Subscribe(uri) => drop(record.subscriptions.insert(uri)),
                Change::Unsubscribe(uri) => drop(record.subscriptions.remove(&uri)),
                Change::Server(server, Some(state)) => {
                    let before = record.servers.remove(&server).filter(|b| b.session == state.session);
                    let cursor = before.and_then(|before| before.cursor);
                    record.servers.insert(server, ServerState { cursor, ..state });
                }
                Change::Server(server, None) => drop(record.servers.remove(&server)),
                Change::Cursor(server, cursor) => {
                    let state = record.servers.get_mut(&server);
                    if let Some(state) = state.filter(|state| state.session == cursor.session) {
                        state.cursor = Some(cursor.at);
                    }
                }
                Change::Touched => *touched = Instant::now(),
            }
            Ok(())
        }))
    }

    fn adopt(&self, key: SessionKey, from: Epoch, by: ReplicaId) -> Stored<'_, Epoch> {
        done(self.at(&key, from, |Held { record, .. }| {
            record.epoch = record.epoch.next();
            record.owner = Some(by);
            Ok(record.epoch)
        }))
    }

    fn release(&self, key: SessionKey, epoch: Epoch) -> Stored<'_, ()> {
        done(self.at(&key, epoch, |Held { record, .. }| {
            record.epoch = record.epoch.next();
            record.owner = None;
            Ok(())
        }))
    }

    fn remove(&self, key: SessionKey) -> Stored<'_, Option<Record>> {
        done(Ok(lock(&self.0).remove(&key).map(|held| held.as_read())))
    }

    fn take_expired(&self, most: usize) -> Stored<'_, Vec<(SessionKey, Record)>> {
        let mut all = lock(&self.0);
        let over: Vec<_> =
            all.iter().filter(|(_, held)| held.is_over()).map(|(key, _)| key.clone()).collect();
        let taken = over.into_iter().take(most);
        done(Ok(taken.filter_map(|key| all.remove(&key).map(|held| (key, held.as_read()))).collect()))
    }

    fn epochs(&self, keys: Vec<SessionKey>) -> Stored<'_, Vec<Option<Epoch>>> {
        let all = lock(&self.0);
        done(Ok(keys.iter().map(|key| all.get(key).map(|held| held.record.epoch)).collect()))
    }
}

// === impl Held ===

impl Held {
    fn new(record: Record) -> Self {
        let now = Instant::now();
        let before = |ago| now.checked_sub(ago).unwrap_or(now);
        let (began, touched) = (before(record.age), before(record.idle_for));
        Self { record, began, touched, log: BTreeMap::new(), last: None }
    }

    fn as_read(&self) -> Record {
        Record { age: self.began.elapsed(), idle_for: self.touched.elapsed(), ..self.record.clone() }
    }

    fn is_over(&self) -> bool {
        let lifetime = self.record.lifetime;
        self.began.elapsed() > lifetime.max_age || self.touched.elapsed() > lifetime.idle
    }
}

impl EventLog for MemoryStore {
    fn append(&self, key: SessionKey, entries: Vec<LogEntry>) -> Stored<'_, ()> {
        let Some(epoch) = entries.first().map(|entry| entry.id.epoch) else { return done(Ok(())) };
        done(self.at(&key, epoch, |held| {
            let mut last = held.last;
            for entry in &entries {
                if entry.id.epoch != epoch || last.is_some_and(|last| entry.id <= last) {
                    return Err(StoreError::Fenced);
                }
                last = Some(entry.id);
            }
            held.last = last;
            held.log.extend(entries.into_iter().map(|entry| (entry.id, entry.what)));
            Ok(())
        }))
    }

    fn forget(&self, key: SessionKey, epoch: Epoch, entries: Vec<EntryId>) -> Stored<'_, ()> {
        done(self.at(&key, epoch, |held| {
            entries.iter().for_each(|id| drop(held.log.remove(id)));
            Ok(())
        }))
    }

    fn read(&self, key: SessionKey, after: Option<EntryId>, most: usize) -> Stored<'_, Vec<LogEntry>> {
        let all = lock(&self.0);
        let Some(held) = all.get(&key) else { return done(Err(StoreError::Gone)) };
        let behind = held.log.iter().filter(|(id, _)| after.is_none_or(|after| **id > after));
        let read = behind.take(most).map(|(id, what)| LogEntry { id: *id, what: what.clone() }).collect();
        done(Ok(read))
    }
}

/// What is in memory needs no waiting.
fn done<'a, T: Send + 'a>(result: Result<T, StoreError>) -> Stored<'a, T> {
    Box::pin(std::future::ready(result))
}
