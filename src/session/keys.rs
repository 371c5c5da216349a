//! The names that the store knows sessions by: whoever reads the store can use no session.
//!
//! With cluster keys it is an HMAC of the session id, so that nobody without a key can tell which id a record is of.
//! Keys rotate: a session keeps the name that it was stored under, and is looked for under all that are in force.

use std::fmt;

use arc_swap::ArcSwap;
use aws_lc_rs::{digest, hmac};

use super::SessionId;
use super::implicit::ImplicitKey;
use crate::store::SessionKey;
use crate::store::seal::SealKey;
use crate::store::shares::{ShareKey, ShareKind};

/// What this use of a cluster key is told apart by.
const PURPOSE: &[u8] = b"mcpgate session\0";
/// The same for implicit sessions, which have no id that anybody else knows.
const IMPLICIT: &[u8] = b"mcpgate implicit session\0";

/// The same for whose a share is in a lease.
const SHARE: &[u8] = b"mcpgate share\0";

/// Names sessions in the store, and whose shares are in leases.
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

    /// The name of a new implicit session, made of whom it is for.
    pub(super) fn of_new_implicit(&self, implicit: &ImplicitKey) -> SessionKey {
        let whom = whom(implicit);
        self.0.load().first().map_or_else(|| digest_of(&whom), |key| sign(key, IMPLICIT, &whom))
    }

    /// The names that an implicit session may have, the likeliest first.
    pub(super) fn of_implicit(&self, implicit: &ImplicitKey) -> Vec<SessionKey> {
        let (keys, whom) = (self.0.load(), whom(implicit));
        if keys.is_empty() {
            return vec![digest_of(&whom)];
        }
        keys.iter().map(|key| sign(key, IMPLICIT, &whom)).collect()
    }

    /// How this replica names whose a share is.
    pub(super) fn of_own_share(&self, kind: ShareKind, whose: &[u8]) -> ShareKey {
        let text = share(kind, whose);
        short(&self.0.load().first().map_or_else(|| digest_of(&text), |key| sign(key, SHARE, &text)))
    }

    /// How any replica may name it.
    pub(super) fn of_share(&self, kind: ShareKind, whose: &[u8]) -> Vec<ShareKey> {
        let (keys, text) = (self.0.load(), share(kind, whose));
        if keys.is_empty() {
            return vec![short(&digest_of(&text))];
        }
        keys.iter().map(|key| short(&sign(key, SHARE, &text))).collect()
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
    sign(key, PURPOSE, id.as_bytes())
}

fn sign(key: &hmac::Key, purpose: &[u8], text: &[u8]) -> SessionKey {
    let mut context = hmac::Context::with_key(key);
    context.update(purpose);
    context.update(text);
    let mut name = [0; 32];
    name.copy_from_slice(context.sign().as_ref());
    SessionKey(name)
}

fn digested(id: &SessionId) -> SessionKey {
    digest_of(id.as_bytes())
}

fn digest_of(text: &[u8]) -> SessionKey {
    let mut name = [0; 32];
    name.copy_from_slice(digest::digest(&digest::SHA256, text).as_ref());
    SessionKey(name)
}

fn share(kind: ShareKind, whose: &[u8]) -> Vec<u8> {
    [&[kind.code()], whose].concat()
}

/// Enough of a name to tell those of one deployment apart.
fn short(name: &SessionKey) -> ShareKey {
    let [a, b, c, d, e, f, g, h, ..] = name.0;
    ShareKey([a, b, c, d, e, f, g, h])
}

/// Whom an implicit session is for, as bytes that stand for nobody else. Those for one call only are not stored.
fn whom(implicit: &ImplicitKey) -> Vec<u8> {
    let ImplicitKey { binding, revision, class, alone: _ } = implicit;
    let (principal, endpoint, class) = (&binding.principal[..], binding.endpoint.as_bytes(), class.bits());
    [principal, &class.to_be_bytes(), revision.as_str().as_bytes(), b"\0", endpoint].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::capability::CapabilityClass;
    use crate::protocol::revision::Revision;
    use crate::session::Binding;

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

    /// An implicit session has a name of its own for each whom it may be for, the same on every replica.
    #[test]
    fn an_implicit_session_is_named_by_whom_it_is_for() {
        let shared = SealKey::fresh();
        let keys = SessionKeys::new(std::slice::from_ref(&shared));
        let key = |principal: u8, endpoint: &str, class: u16| ImplicitKey {
            binding: Binding { principal: [principal; 32], endpoint: endpoint.into() },
            revision: Revision::LATEST_LEGACY,
            class: CapabilityClass::from_bits(class),
            alone: None,
        };
        let name = keys.of_new_implicit(&key(1, "/mcp", 0));
        assert_eq!(SessionKeys::new(&[SealKey::fresh(), shared]).of_implicit(&key(1, "/mcp", 0))[1], name);
        for other in [key(2, "/mcp", 0), key(1, "/servers/a/mcp", 0), key(1, "/mcp", 1)] {
            assert_ne!(keys.of_new_implicit(&other), name);
        }
    }
}
