//! One store as several replicas reach it, each over a way of its own that can be cut.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use mcpgate::store::change_bus::Changed;
use mcpgate::store::event_log::{EntryId, LogEntry};
use mcpgate::store::leases::{Generation, Held, Lease};
use mcpgate::store::sessions::Change;
use mcpgate::store::{
    ChangeBus, Epoch, EventLog, Leases, Record, ReplicaId, SessionKey, SessionStore, StoreError, Stored,
    Stores,
};
use tokio::sync::{broadcast, watch};

/// One replica's way to the store.
pub(crate) struct Way {
    store: Stores,
    cut: AtomicBool,
    /// What is told to others is lost.
    mute: AtomicBool,
    /// How many times it was told where a stream stands.
    cursors: watch::Sender<usize>,
    /// How many times its replica told what it holds.
    beats: watch::Sender<usize>,
    /// How many times it asked what the others hold.
    looks: watch::Sender<usize>,
}

// === impl Way ===

impl Way {
    /// A way to `store`.
    pub(crate) fn to(store: &Stores) -> Arc<Self> {
        let [cursors, beats, looks] = [(); 3].map(|()| watch::Sender::new(0));
        Arc::new(Self {
            store: store.clone(),
            cut: AtomicBool::new(false),
            mute: AtomicBool::new(false),
            cursors,
            beats,
            looks,
        })
    }

    /// The store as it is reached on this way.
    pub(crate) fn stores(self: &Arc<Self>) -> Stores {
        Stores { sessions: self.clone(), log: self.clone(), leases: self.clone(), bus: self.clone() }
    }

    /// Cuts it, or mends it.
    pub(crate) fn set_cut(&self, cut: bool) {
        self.cut.store(cut, Relaxed);
    }

    /// Loses what the replica tells others from now on.
    pub(crate) fn mute(&self) {
        self.mute.store(true, Relaxed);
    }

    /// Waits until the store was told so often where a stream of a server stands.
    pub(crate) async fn until_cursors(&self, count: usize) {
        let mut told = self.cursors.subscribe();
        let told = told.wait_for(|told| *told >= count);
        tokio::time::timeout(Duration::from_secs(10), told).await.expect("a cursor in time").unwrap();
    }

    /// Waits until the store was told what the replica holds at this moment, or later.
    pub(crate) async fn until_told(&self) {
        // The next heartbeat may have begun.
        twice_more(&self.beats).await;
    }

    /// Waits until the replica goes by what the others hold at this moment, or later.
    pub(crate) async fn until_heard(&self) {
        // When the second begins, the first is done.
        twice_more(&self.looks).await;
    }

    /// What a store in memory does is done when it is asked.
    fn or_cut<'a, T: Send + 'a>(&self, stored: impl FnOnce() -> Stored<'a, T>) -> Stored<'a, T> {
        if self.cut.load(Relaxed) { Box::pin(async { Err(StoreError::Unreachable) }) } else { stored() }
    }
}

async fn twice_more(count: &watch::Sender<usize>) {
    let mut count = count.subscribe();
    let wanted = *count.borrow() + 2;
    let reached = count.wait_for(|count| *count >= wanted);
    tokio::time::timeout(Duration::from_secs(10), reached).await.expect("a heartbeat in time").unwrap();
}

impl SessionStore for Way {
    fn create(&self, key: SessionKey, record: Record) -> Stored<'_, ()> {
        self.or_cut(|| self.store.sessions.create(key, record))
    }

    fn load(&self, key: SessionKey) -> Stored<'_, Option<Record>> {
        self.or_cut(|| self.store.sessions.load(key))
    }

    fn change(&self, key: SessionKey, epoch: Epoch, change: Change) -> Stored<'_, ()> {
        let cursors = usize::from(matches!(change, Change::Cursor(..)));
        let changed = self.or_cut(|| self.store.sessions.change(key, epoch, change));
        // In memory it is done by now.
        self.cursors.send_modify(|told| *told += cursors);
        changed
    }

    fn adopt(&self, key: SessionKey, from: Epoch, by: ReplicaId) -> Stored<'_, Epoch> {
        self.or_cut(|| self.store.sessions.adopt(key, from, by))
    }

    fn release(&self, key: SessionKey, epoch: Epoch) -> Stored<'_, ()> {
        self.or_cut(|| self.store.sessions.release(key, epoch))
    }

    fn remove(&self, key: SessionKey) -> Stored<'_, Option<Record>> {
        self.or_cut(|| self.store.sessions.remove(key))
    }

    fn take_expired(&self, most: usize) -> Stored<'_, Vec<(SessionKey, Record)>> {
        self.or_cut(|| self.store.sessions.take_expired(most))
    }

    fn epochs(&self, keys: Vec<SessionKey>) -> Stored<'_, Vec<Option<Epoch>>> {
        self.or_cut(|| self.store.sessions.epochs(keys))
    }
}

impl EventLog for Way {
    fn append(&self, key: SessionKey, entries: Vec<LogEntry>) -> Stored<'_, ()> {
        self.or_cut(|| self.store.log.append(key, entries))
    }

    fn forget(&self, key: SessionKey, epoch: Epoch, entries: Vec<EntryId>) -> Stored<'_, ()> {
        self.or_cut(|| self.store.log.forget(key, epoch, entries))
    }

    fn read(&self, key: SessionKey, after: Option<EntryId>, most: usize) -> Stored<'_, Vec<LogEntry>> {
        self.or_cut(|| self.store.log.read(key, after, most))
    }
}

impl Leases for Way {
    fn take(&self, lease: Lease, time: Duration) -> Stored<'_, Generation> {
        self.or_cut(|| self.store.leases.take(lease, time))
    }

    fn extend(&self, replica: ReplicaId, held: Held, time: Duration) -> Stored<'_, Generation> {
        self.beats.send_modify(|beats| *beats += 1);
        self.or_cut(|| self.store.leases.extend(replica, held, time))
    }

    fn give_up(&self, replica: ReplicaId) -> Stored<'_, ()> {
        self.or_cut(|| self.store.leases.give_up(replica))
    }

    fn find(&self, replica: ReplicaId) -> Stored<'_, Option<Lease>> {
        self.or_cut(|| self.store.leases.find(replica))
    }

    fn all(&self) -> Stored<'_, Vec<Lease>> {
        self.looks.send_modify(|looks| *looks += 1);
        self.or_cut(|| self.store.leases.all())
    }
}

impl ChangeBus for Way {
    fn publish(&self, changed: Changed) -> Stored<'_, ()> {
        if self.mute.load(Relaxed) {
            return Box::pin(async { Ok(()) });
        }
        self.or_cut(|| self.store.bus.publish(changed))
    }

    fn subscribe(&self) -> broadcast::Receiver<Changed> {
        self.store.bus.subscribe()
    }
}
