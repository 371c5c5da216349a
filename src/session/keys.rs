//! The names that the store knows sessions by: whoever reads the store can use no session.
//!
//! With cluster keys it is an HMAC of the session id, so that nobody without a key can tell which id a record is of.
//! Keys rotate: a session keeps the name that it was stored under, and is looked for under all that are in force.

use std::fmt;

use arc_swap::ArcSwap;
use aws_lc_rs::{digest, hmac};

use super::SessionId;
use crate::store::SessionKey;
use crate::store::seal::SealKey;

/// What this use of a cluster key is told apart by.
const PURPOSE: &[u8] = b"mcpgate session\0";

/// Names sessions in the store.
pub struct SessionKeys(ArcSwap<Vec<hmac::Key>>);

// === impl SessionKeys ===

impl SessionKeys {
    /// Names by these cluster keys, the first for new sessions; without one, by a digest of the id alone.
    pub fn new(keys: &[SealKey]) -> Self {
        Self(ArcSwap::from_pointee(made(keys)))
    }

    /// Takes these keys into force; none are no keys to take.
    pub fn replace(&self, keys: &[SealKey]) {
        if !keys.is_empty() {
            self.0.store(made(keys).into());
        }
    }

    /// The name of a new session.
    pub(super) fn of_new(&self, id: &SessionId) -> SessionKey {
        self.0.load().first().map_or_else(|| digested(id), |key| signed(key, id))
    }

    /// The names that a session may have, the likeliest first.
    pub(super) fn of(&self, id: &SessionId) -> Vec<SessionKey> {
        let keys = self.0.load();
        if keys.is_empty() { vec![digested(id)] } else { keys.iter().map(|key| signed(key, id)).collect() }
    }
}

impl fmt::Debug for SessionKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionKeys").field("keys", &self.0.load().len()).finish()
    }
}

fn made(keys: &[SealKey]) -> Vec<hmac::Key> {
    keys.iter().map(|key| hmac::Key::new(hmac::HMAC_SHA256, key.expose())).collect()
}

fn signed(key: &hmac::Key, id: &SessionId) -> SessionKey {
    let mut context = hmac::Context::with_key(key);
    context.update(PURPOSE);
    context.update(id.as_bytes());
    let mut name = [0; 32];
    name.copy_from_slice(context.sign().as_ref());
    SessionKey(name)
}

fn digested(id: &SessionId) -> SessionKey {
    let mut name = [0; 32];
    name.copy_from_slice(digest::digest(&digest::SHA256, id.as_bytes()).as_ref());
    SessionKey(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// case-A05: the store's name of a session is not its id, and differs from deployment to deployment.
    #[test]
    fn a_session_is_found_by_its_name_after_a_rotation() {
        let (old, new) = (SealKey::fresh(), SealKey::fresh());
        let id = SessionId::mint();
        let keys = SessionKeys::new(std::slice::from_ref(&old));
        let name = keys.of_new(&id);
        assert_eq!(keys.of(&id), std::slice::from_ref(&name));
        assert_ne!(name, SessionKeys::new(std::slice::from_ref(&new)).of_new(&id));
        assert_ne!(name, SessionKeys::new(&[]).of_new(&id));
        keys.replace(&[new, old]);
        assert_ne!(keys.of_new(&id), name, "new ones are named by the new key");
        assert!(keys.of(&id).contains(&name));
        keys.replace(&[]);
        assert_eq!(keys.of(&id).len(), 2, "no keys are none to take");
    }
}
