//! API keys, known by their SHA-256 only.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::SystemTime;

use super::refusal::{EXPIRED_API_KEY, Refusal, UNKNOWN_API_KEY};
use super::verified::{Digest, digest};
use crate::settings::auth::ApiKey;
use crate::tenancy::{Issuer, Principal};

/// The operator's list of keys.
///
/// A plain map by digest is safe against timing: what is compared is the SHA-256 of what was presented, which a
/// caller cannot steer towards a stored digest byte by byte, and the map's own hash is keyed at random.
pub(super) struct ApiKeys(HashMap<Digest, Arc<Principal>>);

/// Who has a key among `some` and none among `others`: digests that sessions are bound to.
pub fn missing(some: &[ApiKey], others: &[ApiKey]) -> Vec<[u8; 32]> {
    let bindings = |keys: &[ApiKey]| -> BTreeSet<[u8; 32]> {
        keys.iter().map(|key| principal(key).binding().0).collect()
    };
    bindings(some).difference(&bindings(others)).copied().collect()
}

// === impl ApiKeys ===

impl ApiKeys {
    /// The keys of the config; who holds one is known by the key's id.
    pub(super) fn new(keys: &[ApiKey]) -> Self {
        Self(keys.iter().map(|key| (key.sha256, Arc::new(principal(key)))).collect())
    }

    /// Who holds this key.
    pub(super) fn check(&self, presented: &[u8], now: SystemTime) -> Result<Arc<Principal>, Refusal> {
        let principal = self.0.get(&digest(presented)).ok_or(UNKNOWN_API_KEY)?;
        if principal.expires.is_some_and(|end| end <= now) {
            return Err(EXPIRED_API_KEY);
        }
        Ok(Arc::clone(principal))
    }
}

fn principal(key: &ApiKey) -> Principal {
    Principal {
        tenant: key.tenant.as_deref().map(Into::into),
        issuer: Issuer::ApiKey,
        subject: key.id.as_str().into(),
        client_id: None,
        scopes: key.scopes.clone(),
        expires: key.expires,
    }
}
