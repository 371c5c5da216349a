//! The task that writes a session's journal: one at most, there while something waits.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::{sleep, timeout, timeout_at};

use super::Shared;
use super::queue::{Batch, Mode, Queue, Work, Writer};
use crate::store::event_log::EntryId;
use crate::store::{StoreError, lock};

/// How long one try may take, and how long an event waits for the store.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);
/// The wait before the first new try; it doubles with each.
const FIRST_WAIT: Duration = Duration::from_millis(20);
/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// How the log took a batch.
enum Taken {
    Stored,
    /// It never will.
    Refused,
}

// === impl Shared ===

impl Shared {
    /// Sees to it that a writer is at work if there is any.
    pub(super) fn rouse(self: &Arc<Self>, queue: &mut Queue) {
        if queue.writer == Writer::Writing || !queue.has_work() {
            return;
        }
        // Streams also go when the process does, where nothing can be written any more.
        let Ok(runtime) = Handle::try_current() else { return };
        queue.writer = Writer::Writing;
        let shared = self.clone();
        let write = async move {
            tokio::select! {
                biased;
                () = shared.over.cancelled() => {}
                () = shared.write() => {}
            }
        };
        self.tasks.spawn_on(write, &runtime);
    }

    /// Nothing is written any more; what waits goes out, unless another owner has the session.
    pub(super) fn end(&self) {
        let mut queue = lock(&self.queue);
        if queue.mode == Mode::Over {
            return;
        }
        queue.end();
        if !self.fenced.load(Ordering::Acquire) {
            self.released.store(u64::MAX, Ordering::Release);
        }
        self.over.cancel();
        self.settled.notify_waiters();
        let waiting = waiting(&mut queue);
        drop(queue);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Writes until nothing is left to write.
    async fn write(&self) {
        while let Some(work) = self.next() {
            match work {
                Work::Append(batch) => {
                    let before = batch.entries.first().map_or(0, |entry| entry.id.number.saturating_sub(1));
                    if matches!(self.store(batch).await, Taken::Refused) {
                        return self.lose(before);
                    }
                }
                Work::Forget(ids) => {
                    let forget = self.log.forget(self.key.clone(), self.epoch, ids.clone());
                    match timeout(PATIENCE, forget).await {
                        // What is gone as a whole has no entries either.
                        Ok(Ok(()) | Err(StoreError::Gone)) => {}
                        Ok(Err(StoreError::Unreachable | StoreError::Unreadable)) | Err(_) => {
                            // Not worth a wait: nothing is wrong but that the log is longer than it need be.
                            lock(&self.queue).put_back(ids);
                            if self.rest() {
                                return;
                            }
                        }
                        Ok(Err(StoreError::Fenced)) => {
                            let stored = lock(&self.queue).written_through();
                            return self.lose(stored);
                        }
                    }
                }
            }
        }
    }

    /// Lets out what is stored by now, and takes what is to do next.
    fn next(&self) -> Option<Work> {
        let mut queue = lock(&self.queue);
        if queue.mode == Mode::Over {
            return None;
        }
        let stored = queue.all_taken_is_written();
        if queue.is_drained() {
            queue.mode = Mode::Logged;
        }
        if queue.mode == Mode::Logged {
            self.released.store(stored, Ordering::Release);
        }
        let waiting = waiting(&mut queue);
        let work = queue.take();
        if work.is_none() {
            queue.writer = Writer::Idle;
            self.settled.notify_waiters();
        }
        drop(queue);
        waiting.into_iter().for_each(Waker::wake);
        work
    }

    /// Ends this writer if nothing is to be written; the next one tries again what is left.
    fn rest(&self) -> bool {
        let mut queue = lock(&self.queue);
        let idle = queue.is_drained();
        if idle {
            queue.writer = Writer::Idle;
            self.settled.notify_waiters();
        }
        idle
    }

    /// Stores a batch, however long it takes; when its oldest entry has waited long enough, events go out all the
    /// same.
    async fn store(&self, batch: Batch) -> Taken {
        let until = batch.since + PATIENCE;
        let stored = self.store_at_last(batch);
        tokio::pin!(stored);
        match timeout_at(until, &mut stored).await {
            Ok(taken) => taken,
            Err(_) => {
                self.let_go();
                stored.await
            }
        }
    }

    async fn store_at_last(&self, batch: Batch) -> Taken {
        let mut wait = FIRST_WAIT;
        // Whether an earlier try may have been stored: then the log refuses the same entries as out of order.
        let mut in_doubt = false;
        loop {
            let append = self.log.append(self.key.clone(), batch.entries.clone());
            match timeout(PATIENCE, append).await {
                Ok(Ok(())) => return Taken::Stored,
                Ok(Err(StoreError::Fenced)) if in_doubt => match self.is_there(&batch).await {
                    Ok(true) => return Taken::Stored,
                    Ok(false) => return Taken::Refused,
                    Err(_) => {}
                },
                Ok(Err(StoreError::Fenced)) => return Taken::Refused,
                // It ended elsewhere, which the session is told, or the store lost it, and its owner writes it again.
                Ok(Err(StoreError::Gone)) => {}
                Ok(Err(StoreError::Unreachable | StoreError::Unreadable)) | Err(_) => in_doubt = true,
            }
            sleep(self.spread(wait)).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    /// Whether a batch is in the log: all of it is, or nothing.
    async fn is_there(&self, batch: &Batch) -> Result<bool, StoreError> {
        let Some(first) = batch.entries.first().map(|entry| entry.id) else { return Ok(true) };
        let before = EntryId { number: first.number.saturating_sub(1), ..first };
        let read = self.log.read(self.key.clone(), Some(before), 1);
        let read = timeout(PATIENCE, read).await.unwrap_or(Err(StoreError::Unreachable))?;
        Ok(read.first().is_some_and(|entry| entry.id == first))
    }

    /// A wait that differs from session to session, so that they do not all come at once.
    fn spread(&self, wait: Duration) -> Duration {
        let part = self.key.0.first().copied().unwrap_or_default();
        wait + wait * u32::from(part) / 512
    }

    /// Events go out although they are not stored.
    fn let_go(&self) {
        let mut queue = lock(&self.queue);
        if queue.mode != Mode::Logged {
            return;
        }
        queue.mode = Mode::Unlogged;
        let waiting = self.is_unlogged(&mut queue);
        drop(queue);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// The session has become unlogged: nothing waits for the store. Gives who is to be woken.
    pub(super) fn is_unlogged(&self, queue: &mut Queue) -> Vec<Waker> {
        self.unlogged.fetch_add(1, Ordering::Relaxed);
        self.released.store(u64::MAX, Ordering::Release);
        waiting(queue)
    }

    /// The store refused for good: another has the session. What is not stored must not go out, since its new owner
    /// answers in its place.
    fn lose(&self, stored: u64) {
        {
            let _queue = lock(&self.queue);
            self.fenced.store(true, Ordering::Release);
            self.released.store(stored, Ordering::Release);
        }
        self.end();
        self.lost.cancel();
    }
}

fn waiting(queue: &mut Queue) -> Vec<Waker> {
    std::mem::take(&mut queue.waiting).into_iter().map(|(_, waker)| waker).collect()
}
