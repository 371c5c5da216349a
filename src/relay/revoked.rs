//! Callers whose key another replica saw taken out of the config, before this one reads it so itself.
//!
//! Config files reach replicas one after another, minutes apart at worst. The first that finds a key gone tells the
//! others, so that nobody comes in by it elsewhere meanwhile, and so it does with one that is back. What is heard holds for
//! a while only: after it each replica's own config says who may come in, as ever.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Relay;
use crate::store::Registry;
use crate::store::change_bus::{Changed, MOST_PRINCIPALS, Principals};

/// Principals whose keys are gone elsewhere, and until when that counts, by the digest that sessions are bound to.
pub(super) struct Revoked(Registry<[u8; 32], Instant>);

/// Who comes in by other keys than before; digests that sessions are bound to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaysIn {
    /// By none any more.
    pub gone: Vec<[u8; 32]>,
    /// By one again, or for the first time.
    pub come: Vec<[u8; 32]>,
}

/// How long what was heard holds: files take less to reach all replicas.
const HOLDS: Duration = Duration::from_mins(3);
/// How many are remembered; over it the others end when the config comes here.
const MOST: usize = 4096;

// === impl Revoked ===

impl Revoked {
    pub(super) fn new() -> Self {
        Self(Registry::new())
    }

    fn hear(&self, principals: &[[u8; 32]]) {
        let now = Instant::now();
        self.0.retain(|until| now < *until);
        let room = MOST.saturating_sub(self.0.len());
        for principal in principals.iter().take(room) {
            self.0.insert(*principal, now + HOLDS);
        }
    }

    fn forget(&self, principals: &[[u8; 32]]) {
        for principal in principals {
            self.0.remove(principal);
        }
    }

    fn holds(&self, principal: &[u8; 32]) -> bool {
        self.0.get(principal).is_some_and(|until| Instant::now() < until)
    }
}

// === impl Relay ===

impl Relay {
    /// Whether a caller's key was taken back, as another replica says.
    pub fn is_revoked(&self, principal: &[u8; 32]) -> bool {
        self.revoked.holds(principal)
    }

    /// The ways in were changed here: the other replicas are told, in the background.
    pub fn ways_in_changed(self: &Arc<Self>, WaysIn { gone, come }: WaysIn) {
        self.revoked.forget(&come);
        if !self.has_peers() {
            return;
        }
        let relay = self.clone();
        self.tasks.spawn(async move {
            for some in gone.chunks(MOST_PRINCIPALS) {
                relay.sessions.tell(Changed::Revoked(some.into())).await;
            }
            for some in come.chunks(MOST_PRINCIPALS) {
                relay.sessions.tell(Changed::Restored(some.into())).await;
            }
        });
    }

    /// Another replica saw keys taken back: their callers' streams end, also those that pass from here to another
    /// replica, and who comes in by them is refused.
    pub(super) fn hear_revoked(&self, principals: &Principals) {
        self.revoked.hear(principals);
        let count = principals.len();
        tracing::info!(count, "keys that another replica's config has no more are refused here too");
        let gone: HashSet<&[u8; 32]> = principals.iter().collect();
        for session in self.sessions.all().into_iter().filter(|s| gone.contains(&s.binding.principal)) {
            session.streams.end_connections();
            session.attached.listens.end_all();
        }
    }

    /// Another replica's config has keys again.
    pub(super) fn hear_restored(&self, principals: &Principals) {
        self.revoked.forget(principals);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_was_heard_holds_for_a_while() {
        let revoked = Revoked::new();
        revoked.hear(&[[1; 32]]);
        assert!(revoked.holds(&[1; 32]) && !revoked.holds(&[2; 32]));
        tokio::time::advance(HOLDS).await;
        assert!(!revoked.holds(&[1; 32]), "from now on this replica's own config counts");
    }

    #[tokio::test]
    async fn a_key_that_is_back_counts_and_no_other() {
        let revoked = Revoked::new();
        revoked.hear(&[[1; 32], [2; 32]]);
        revoked.forget(&[[1; 32]]);
        assert!(!revoked.holds(&[1; 32]) && revoked.holds(&[2; 32]));
    }

    #[tokio::test]
    async fn there_is_a_bound() {
        let revoked = Revoked::new();
        for n in 0..MOST + 9 {
            let mut principal = [0; 32];
            principal[..8].copy_from_slice(&n.to_be_bytes());
            revoked.hear(&[principal]);
        }
        assert_eq!(revoked.0.len(), MOST);
    }
}
