//! The sessions here by the names under which the store knows them, which is how other replicas speak of them.
//!
//! Kept by whoever puts sessions in and takes them out: a name is here before its session can be found by its id, and
//! gone after it cannot. So what other replicas say of one session costs the same however many there are.

use std::sync::Arc;

use super::Session;
use crate::store::{Registry, SessionKey};

/// The sessions here that have a record in the store which this replica owns.
pub(super) struct ByStoreName<A>(Registry<SessionKey, Arc<Session<A>>>);

// === impl ByStoreName ===

impl<A> ByStoreName<A> {
    /// None yet.
    pub(super) fn new() -> Self {
        Self(Registry::new())
    }

    /// Puts a session in, if the store knows it.
    pub(super) fn put(&self, session: &Arc<Session<A>>) {
        if let Some((key, _)) = session.stored() {
            self.0.insert(key.clone(), session.clone());
        }
    }

    /// Takes a session out; another that has its name by now stays.
    pub(super) fn take(&self, session: &Session<A>) {
        if let Some((key, _)) = session.stored() {
            self.0.remove_if(key, |here| std::ptr::eq(&raw const **here, session));
        }
    }

    /// The session that the store knows by this name.
    pub(super) fn find(&self, key: &SessionKey) -> Option<Arc<Session<A>>> {
        self.0.get(key)
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
