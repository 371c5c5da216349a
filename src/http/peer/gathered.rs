//! Lets what is ready gather before a connection writes.
//!
//! Whoever has something to send wakes the task of the connection, which tokio runs next: each request would be a
//! record of TLS and a write of its own. So where several requests are under way, that task first lets all others run
//! that are ready, and then writes once for all of them. With few there is nobody to wait for.

use std::pin::{Pin, pin};
use std::task::{Context, Poll};

/// With fewer requests under way nobody is waited for: another turn of the scheduler would cost more than it spares.
pub(super) const COMPANY: usize = 3;

/// A connection that is driven once others had their turn, if `company` says that there are any.
pub(super) struct Gathered<F, C> {
    pub(super) connection: F,
    company: C,
    turn: Turn,
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Others,
    Ours,
}

// === impl Gathered ===

impl<F, C: Fn() -> usize> Gathered<F, C> {
    /// `company` tells how many requests are under way.
    pub(super) fn new(connection: F, company: C) -> Self {
        Self { connection, company, turn: Turn::Others }
    }
}

impl<F: Future + Unpin, C: Fn() -> usize + Unpin> Future for Gathered<F, C> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        if this.turn == Turn::Others && (this.company)() >= COMPANY {
            this.turn = Turn::Ours;
            // Wakes this task once the others that are ready have run.
            if pin!(tokio::task::yield_now()).poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
        this.turn = Turn::Others;
        Pin::new(&mut this.connection).poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::poll_fn;
    use std::rc::Rc;

    use super::*;

    /// How often a connection is driven until it ends, if so many others each have something for it.
    async fn driven(company: usize) -> usize {
        let local = tokio::task::LocalSet::new();
        let (said, times) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let waker = Rc::new(Cell::new(None));
        let connection = {
            let (said, times, waker) = (said.clone(), times.clone(), waker.clone());
            poll_fn(move |cx: &mut Context<'_>| {
                times.set(times.get() + 1);
                waker.set(Some(cx.waker().clone()));
                if said.get() == 9 { Poll::Ready(()) } else { Poll::Pending }
            })
        };
        let connection = local.spawn_local(Gathered::new(connection, move || company));
        for _ in 0..9 {
            let (said, waker) = (said.clone(), waker.clone());
            local.spawn_local(async move {
                said.set(said.get() + 1);
                if let Some(waker) = waker.take() {
                    std::task::Waker::wake(waker);
                }
            });
        }
        local.run_until(connection).await.expect("it ends");
        times.get()
    }

    #[tokio::test]
    async fn what_many_have_to_say_is_written_at_once() {
        assert_eq!(driven(COMPANY).await, 1, "all had their turn before");
    }

    #[tokio::test]
    async fn nobody_is_waited_for_where_there_are_few() {
        assert!(driven(COMPANY - 1).await > 1);
    }
}
