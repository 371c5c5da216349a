//! Callers whose key another replica saw taken out of the config, before this one reads it so itself.
//!
//! Config files reach replicas one after another, minutes apart at worst. The first that finds a key gone tells the
//! others, so that nobody comes in by it elsewhere meanwhile. What is heard holds for a while only: after it each
//! replica's own config says who may come in, as ever.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::Relay;
use crate::store::change_bus::Changed;
use crate::store::{Registry, lock};

/// Principals whose keys are gone elsewhere.
pub(super) struct Revoked {
    /// Until when, by the digest that sessions are bound to.
    until: Registry<[u8; 32], Instant>,
    /// When the ways in last changed here; what is heard soon after says nothing new, and may be older.
    changed: Mutex<Option<Instant>>,
    /// Counts what was heard.
    heard: watch::Sender<u64>,
}

/// How long what was heard holds: files take less to reach all replicas.
const HOLDS: Duration = Duration::from_mins(3);
/// How many are remembered; over it the others end when the config comes here.
const MOST: usize = 4096;

// === impl Revoked ===

impl Revoked {
    pub(super) fn new() -> Self {
        Self { until: Registry::new(), changed: Mutex::new(None), heard: watch::Sender::new(0) }
    }

    fn hear(&self, principal: [u8; 32]) -> bool {
        let now = Instant::now();
        self.until.retain(|until| now < *until);
        if lock(&self.changed).is_some_and(|at| now < at + HOLDS) || self.until.len() >= MOST {
            return false;
        }
        self.until.insert(principal, now + HOLDS);
        true
    }

    fn holds(&self, principal: &[u8; 32]) -> bool {
        !self.until.is_empty() && self.until.get(principal).is_some_and(|until| Instant::now() < until)
    }

    fn forget(&self) {
        *lock(&self.changed) = Some(Instant::now());
        self.until.clear();
    }
}

// === impl Relay ===

impl Relay {
    /// Whether a caller's key was taken back, as another replica says.
    pub fn is_revoked(&self, principal: &[u8; 32]) -> bool {
        self.revoked.holds(principal)
    }

    /// The ways in were changed here, and `gone` come in no more: the other replicas are told, in the background.
    pub fn ways_in_changed(self: &Arc<Self>, gone: Vec<[u8; 32]>) {
        self.revoked.forget();
        if gone.is_empty() || !self.has_peers() {
            return;
        }
        let relay = self.clone();
        self.tasks.spawn(async move {
            for principal in gone.into_iter().take(MOST) {
                relay.sessions.tell(Changed::Revoked { principal }).await;
            }
        });
    }

    /// Changes when another replica told that a key was taken back.
    pub fn revocations(&self) -> watch::Receiver<u64> {
        self.revoked.heard.subscribe()
    }

    /// Another replica saw a key taken back: its sessions' streams end, and who comes in by it is refused.
    pub(super) fn hear_revoked(&self, principal: [u8; 32]) {
        if !self.revoked.hear(principal) {
            return;
        }
        tracing::info!("a key that another replica's config has no more is refused here too");
        for session in self.sessions.all().into_iter().filter(|s| s.binding.principal == principal) {
            session.streams.end_connections();
        }
        self.end_listens();
        self.revoked.heard.send_modify(|heard| *heard += 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_was_heard_holds_for_a_while() {
        let revoked = Revoked::new();
        assert!(revoked.hear([1; 32]) && revoked.holds(&[1; 32]) && !revoked.holds(&[2; 32]));
        tokio::time::advance(HOLDS).await;
        assert!(!revoked.holds(&[1; 32]), "from now on this replica's own config counts");
    }

    #[tokio::test(start_paused = true)]
    async fn what_this_replica_has_read_itself_counts_more() {
        let revoked = Revoked::new();
        revoked.hear([1; 32]);
        revoked.forget();
        assert!(!revoked.holds(&[1; 32]), "the key may have come back");
        assert!(!revoked.hear([1; 32]), "the others say what they read before");
        tokio::time::advance(HOLDS).await;
        assert!(revoked.hear([1; 32]));
    }

    #[tokio::test]
    async fn there_is_a_bound() {
        let revoked = Revoked::new();
        for n in 0..MOST + 9 {
            let mut principal = [0; 32];
            principal[..8].copy_from_slice(&n.to_be_bytes());
            revoked.hear(principal);
        }
        assert_eq!(revoked.until.len(), MOST);
    }
}
