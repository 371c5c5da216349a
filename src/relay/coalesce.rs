//! Work that may be asked for again while it runs: it runs one at a time, and once more if it was.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Mutex;

use crate::store::lock;

/// What work runs, by what it is about.
pub(super) struct Coalesced<K>(Mutex<HashMap<K, Asked>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Once,
    Again,
}

// === impl Coalesced ===

impl<K: Eq + Hash> Coalesced<K> {
    /// Whether the one who asks shall do the work; else who does it now will do it once more.
    pub(super) fn begin(&self, key: K) -> bool {
        let mut asked = lock(&self.0);
        match asked.get_mut(&key) {
            Some(running) => {
                *running = Asked::Again;
                false
            }
            None => {
                asked.insert(key, Asked::Once);
                true
            }
        }
    }

    /// Whether it runs.
    pub(super) fn runs(&self, key: &K) -> bool {
        lock(&self.0).contains_key(key)
    }

    /// The work has ended, and is not done once more whoever asked for it.
    pub(super) fn end(&self, key: &K) {
        lock(&self.0).remove(key);
    }

    /// Whether the work is to be done once more; if not, it has ended.
    pub(super) fn again(&self, key: &K) -> bool {
        let mut asked = lock(&self.0);
        match asked.get_mut(key) {
            Some(running @ Asked::Again) => {
                *running = Asked::Once;
                true
            }
            _ => {
                asked.remove(key);
                false
            }
        }
    }
}

impl<K> Default for Coalesced<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_meanwhile_is_done_once_more() {
        let work = Coalesced::default();
        assert!(work.begin("a") && work.begin("b"));
        assert!(!work.begin("a") && !work.begin("a"));
        assert!(work.again(&"a"));
        assert!(!work.again(&"a"));
        assert!(work.begin("a"), "it has ended");
    }
}
