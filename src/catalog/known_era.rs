//! Which era a server speaks, as far as that is known: read by every look at the server, so it takes no lock.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use crate::protocol::revision::Era;

/// An era, or none (T66).
#[derive(Debug, Default)]
pub(super) struct KnownEra(AtomicU8);

const LEGACY: u8 = 1;
const MODERN: u8 = 2;

// === impl KnownEra ===

impl KnownEra {
    pub(super) fn get(&self) -> Option<Era> {
        match self.0.load(Relaxed) {
            LEGACY => Some(Era::Legacy),
            MODERN => Some(Era::Modern),
            _ => None,
        }
    }

    pub(super) fn set(&self, era: Option<Era>) {
        self.0.store(code(era), Relaxed);
    }

    /// Takes an era from an earlier time, unless one is known already.
    pub(super) fn set_if_unknown(&self, era: Era) {
        let _ = self.0.compare_exchange(code(None), code(Some(era)), Relaxed, Relaxed);
    }
}

fn code(era: Option<Era>) -> u8 {
    match era {
        None => 0,
        Some(Era::Legacy) => LEGACY,
        Some(Era::Modern) => MODERN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_what_was_said_last() {
        let known = KnownEra::default();
        assert_eq!(known.get(), None);
        known.set_if_unknown(Era::Modern);
        known.set_if_unknown(Era::Legacy);
        assert_eq!(known.get(), Some(Era::Modern));
        for era in [Some(Era::Legacy), Some(Era::Modern), None] {
            known.set(era);
            assert_eq!(known.get(), era);
        }
    }
}
