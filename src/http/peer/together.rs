//! The streams of a connection, run by the connection's own task.
//!
//! A task for each stream would be woken for each of its steps and would then wake the connection to write: two turns of
//! the scheduler for every one of a forwarded call's. Here whatever is ready runs in one turn, and one write follows. What
//! takes a processor for long belongs on a task of its own, as it does everywhere else.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use hyper::rt::Executor;

/// One stream.
type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The streams that a connection has begun, for whoever runs them. As many as the connection takes at once.
#[derive(Clone, Default)]
pub(super) struct Begun {
    waiting: Arc<Mutex<Vec<Running>>>,
    /// How many have not ended.
    open: Arc<AtomicUsize>,
}

/// A connection and its streams. Dropped, both end.
pub(super) struct Together<C> {
    pub(super) connection: C,
    begun: Begun,
    running: FuturesUnordered<Running>,
}

// === impl Begun ===

impl Begun {
    /// How many streams have not ended.
    pub(super) fn open(&self) -> usize {
        self.open.load(Relaxed)
    }

    fn take(&self) -> Vec<Running> {
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<F> Executor<F> for Begun
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, stream: F) {
        self.open.fetch_add(1, Relaxed);
        let stream: Running = Box::pin(async move { drop(stream.await) });
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
    }
}

// === impl Together ===

impl<C> Together<C> {
    /// A connection that gives its streams to `begun`.
    pub(super) fn new(connection: C, begun: Begun) -> Self {
        Self { connection, begun, running: FuturesUnordered::new() }
    }

    fn run(&mut self, cx: &mut Context<'_>) {
        while let Poll::Ready(Some(())) = self.running.poll_next_unpin(cx) {
            self.begun.open.fetch_sub(1, Relaxed);
        }
    }
}

impl<C: Future + Unpin> Future for Together<C> {
    type Output = C::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        // First what the streams have to say, so that the connection writes all of it.
        this.run(cx);
        if let Poll::Ready(over) = Pin::new(&mut this.connection).poll(cx) {
            return Poll::Ready(over);
        }
        let begun = this.begun.take();
        if !begun.is_empty() {
            this.running.extend(begun);
            // What they say at once wakes this task again.
            this.run(cx);
        }
        Poll::Pending
    }
}
