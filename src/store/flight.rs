//! One attempt at something, for all who want it while it is under way.
//!
//! It runs on a task of its own, so whoever gives up waiting does not stop it for the others (case-C09), and all get its
//! one outcome. Where it is kept meanwhile, and what becomes of the outcome, is for its owner to say.

use tokio::sync::watch;
use tokio_util::task::TaskTracker;

/// One attempt, and the way to its outcome.
#[derive(Clone, Debug)]
pub struct Flight<T>(watch::Receiver<Option<T>>);

// === impl Flight ===

impl<T: Clone + Send + Sync + 'static> Flight<T> {
    /// Begins one; `work` gets it too, to know it by.
    pub fn begin<F>(tasks: &TaskTracker, work: impl FnOnce(Self) -> F) -> Self
    where
        F: Future<Output = T> + Send + 'static,
    {
        let (lands, outcome) = watch::channel(None);
        let flight = Self(outcome);
        let work = work(flight.clone());
        tasks.spawn(async move {
            lands.send_replace(Some(work.await));
        });
        flight
    }

    /// Its outcome, as soon as there is one; none if it broke off.
    pub async fn landed(mut self) -> Option<T> {
        self.0.wait_for(Option::is_some).await.ok().and_then(|outcome| outcome.clone())
    }

    /// Whether the outcome is still to come.
    pub fn is_under_way(&self) -> bool {
        self.0.has_changed().is_ok()
    }

    /// Whether this is the same one.
    pub fn is(&self, other: &Self) -> bool {
        self.0.same_channel(&other.0)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::FutureExt as _;
    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn all_get_the_outcome_and_nobody_stops_it() {
        let (tasks, go) = (TaskTracker::new(), Arc::new(Notify::new()));
        let gate = go.clone();
        let flight = Flight::begin(&tasks, |_| async move {
            gate.notified().await;
            7
        });
        let (early, other) = (flight.clone(), Flight::begin(&tasks, |own| async move { own.is_under_way() }));
        assert_eq!(early.landed().now_or_never(), None, "one gives up");
        assert!(flight.is_under_way() && flight.is(&flight.clone()));
        assert_eq!(other.landed().await.map(|known| known as i32), Some(1), "it knows itself");
        go.notify_one();
        assert_eq!(flight.clone().landed().await, Some(7));
        tasks.close();
        tasks.wait().await;
        assert!(!flight.is_under_way());
        assert_eq!(flight.landed().await, Some(7), "late ones get it too");
    }

    #[tokio::test]
    async fn one_that_breaks_off_has_no_outcome() {
        let tasks = TaskTracker::new();
        let flight = Flight::<()>::begin(&tasks, |_| async { panic!("broken") });
        assert_eq!(flight.clone().landed().await, None);
        assert!(!flight.is_under_way());
    }
}
