//! The end of a process: what is idle ends or is given up at once, what runs may end, the rest is told so.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Relay, Session};
use crate::session::EndReason;
use crate::telemetry::metrics::cluster::Drained;

/// How often it is looked whether the last calls have ended. Nothing signals that across all sessions; at the end of a
/// process a short poll is the simpler truth.
const POLL: Duration = Duration::from_millis(20);
/// How long calls that were told to end may take to say so.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How many sessions are given up at once.
const AT_ONCE: usize = 64;

// === impl Relay ===

impl Relay {
    /// Stops: parts with what is idle at once, lets running calls go on for at most `drain`, then parts with all
    /// sessions and links. A call that still runs is told on its stream that its outcome is unknown.
    ///
    /// With the store of a single replica sessions end. One that others share keeps them: they are given up, their
    /// callers are sent to come back, and go on at another replica.
    pub async fn shut_down(&self, drain: Duration) {
        let deadline = Instant::now() + drain;
        self.draining.cancel();
        for session in self.sessions.all() {
            session.streams.end_get();
        }
        self.part_with_idle().await;
        while self.sessions.all().iter().any(|s| s.running() > 0) && Instant::now() < deadline {
            tokio::time::sleep(POLL).await;
            if self.has_peers() {
                self.part_with_idle().await;
            }
        }
        for session in self.sessions.all() {
            session.streams.end_get();
        }
        if self.has_peers() {
            self.hand_over().await;
        }
        self.sessions.end_all(EndReason::Shutdown).await;
        self.stopping.cancel();
        self.shared.close_unless(|_| false, self);
    }

    /// Parts with sessions in which nothing runs.
    async fn part_with_idle(&self) {
        let idle: Vec<_> = self.sessions.all().into_iter().filter(|s| s.running() == 0).collect();
        for some in idle.chunks(AT_ONCE) {
            futures_util::future::join_all(some.iter().map(|session| self.part_with(session))).await;
        }
    }

    async fn part_with(&self, session: &Arc<Session>) {
        if self.has_peers() && !session.is_implicit() {
            // Its connections end when all that they are owed is stored.
            if self.sessions.release(session).await {
                self.metrics.cluster().drained(Drained::Released);
            }
            return;
        }
        session.streams.end_connections();
        if self.sessions.end_if_idle(session, EndReason::Shutdown).await {
            self.metrics.cluster().drained(Drained::Ended);
        }
    }

    /// Gives up the sessions in which something still runs: it is told to end, so that its streams say what is known of
    /// it, and whoever goes on with the session finds that.
    async fn hand_over(&self) {
        let named: Vec<_> = self.sessions.all().into_iter().filter(|s| !s.is_implicit()).collect();
        named.iter().for_each(|session| session.ended.cancel());
        let ended = Instant::now() + LAST_WORDS;
        while named.iter().any(|s| s.running() > 0) && Instant::now() < ended {
            tokio::time::sleep(POLL).await;
        }
        self.part_with_idle().await;
    }
}
