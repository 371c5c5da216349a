//! Remembers tokens that were found good, so that the next request with one costs a hash and not a signature.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use crate::store::lock;
use crate::tenancy::Principal;

/// SHA-256 of a credential.
pub(super) type Digest = [u8; 32];

/// Tokens that were found good, by digest: at most [`SHARDS`] times [`PER_SHARD`]. A full shard loses what has
/// ended, and if nothing has, all of it: its tokens are just verified again.
pub(super) struct VerifiedTokens([Mutex<HashMap<Digest, Verified>>; SHARDS]);

/// What is known of one token.
#[derive(Clone)]
pub(super) struct Verified {
    /// Who brought it.
    pub(super) principal: Arc<Principal>,
    /// The issuer's place in the config.
    pub(super) issuer: usize,
    /// The generation of the issuer's keys that it was verified with; with another it counts for nothing.
    pub(super) generation: u64,
    /// Until when it is accepted: its end, leeway included.
    pub(super) until: SystemTime,
}

/// Shards, so that callers seldom wait for each other.
const SHARDS: usize = 16;
/// Tokens in a shard; 10 000 in all.
const PER_SHARD: usize = 625;

/// SHA-256 of a credential.
pub(super) fn digest(credential: &[u8]) -> Digest {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, credential).as_ref());
    bytes
}

// === impl VerifiedTokens ===

impl VerifiedTokens {
    /// Remembers none.
    pub(super) fn new() -> Self {
        Self(std::array::from_fn(|_| Mutex::default()))
    }

    /// What is known of a token, if it has not ended.
    pub(super) fn get(&self, token: &Digest, now: SystemTime) -> Option<Verified> {
        self.with(token, |shard| shard.get(token).filter(|known| now < known.until).cloned())
    }

    /// Remembers a token.
    pub(super) fn insert(&self, token: Digest, verified: Verified, now: SystemTime) {
        self.with(&token, |shard| {
            if shard.len() >= PER_SHARD {
                shard.retain(|_, known| now < known.until);
            }
            if shard.len() >= PER_SHARD {
                shard.clear();
            }
            shard.insert(token, verified);
        });
    }

    fn with<T>(&self, token: &Digest, f: impl FnOnce(&mut HashMap<Digest, Verified>) -> T) -> T {
        let [first, ..] = *token;
        let shard = self.0.get(usize::from(first) % SHARDS).expect("a remainder is within the array");
        f(&mut lock(shard))
    }
}

#[cfg(test)]
mod tests;
