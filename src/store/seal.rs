//! What callers carry for us and must neither read nor change: sealed with a key that only gateways have (R5).
//!
//! AES-256-GCM-SIV (RFC 8452), which forgives a repeated nonce. The text is base64url of `key id (4) | nonce (12) |
//! ciphertext and tag`; the id tells which key opens it, so that keys can change while texts are out. What a text is
//! for and whom it belongs to is authenticated with it, and not in it.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::{hmac, rand};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Seals with its first key and opens with all of them.
pub struct Sealer {
    /// Never empty; replaced as a whole.
    keys: ArcSwap<Vec<Key>>,
}

/// Thirty-two secret bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct SealKey([u8; 32]);

/// The text was not sealed here for this purpose and owner, or by a key that is no longer kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it was not given out here, not to this caller, or too long ago")]
pub struct Unsealed;

struct Key {
    id: [u8; ID],
    key: RandomizedNonceKey,
    /// For names; made from the same bytes.
    naming: hmac::Key,
}

/// Bytes of a name.
const NAME: usize = 16;
/// Bytes of a key's id.
const ID: usize = 4;
/// The longest text that is looked at, bytes.
const LONGEST: usize = 64 << 10;

// === impl Sealer ===

impl Sealer {
    /// Seals with the first of `keys`; with a fresh one, if there are none.
    pub fn new(keys: &[SealKey]) -> Self {
        let keys = if keys.is_empty() { &[SealKey::fresh()] } else { keys };
        Self { keys: ArcSwap::from_pointee(keys.iter().filter_map(Key::of).collect()) }
    }

    /// Takes these keys instead of those it has, from now on; none are no keys to take.
    pub fn replace(&self, keys: &[SealKey]) {
        if !keys.is_empty() {
            self.keys.store(Arc::new(keys.iter().filter_map(Key::of).collect()));
        }
    }

    /// Seals `plain`: only the same `purpose` and owner open it. The text is URL-safe.
    pub fn seal(&self, purpose: &'static str, owner: &[u8], plain: &[u8]) -> String {
        URL_SAFE_NO_PAD.encode(self.seal_bytes(purpose, owner, plain))
    }

    /// Seals `plain` as [`Sealer::seal`] does, without making text of it.
    pub fn seal_bytes(&self, purpose: &'static str, owner: &[u8], plain: &[u8]) -> Vec<u8> {
        let mut sealed = plain.to_vec();
        let keys = self.keys.load();
        let Some(Key { id, key, .. }) = keys.first() else { unreachable!("there is always a key") };
        let Ok(nonce) = key.seal_in_place_append_tag(bound(purpose, owner), &mut sealed) else {
            unreachable!("only texts of many gigabytes cannot be sealed")
        };
        [&id[..], &nonce.as_ref()[..], &sealed[..]].concat()
    }

    /// Opens what [`Sealer::seal`] gave.
    ///
    /// # Errors
    /// [`Unsealed`]
    pub fn open(&self, purpose: &'static str, owner: &[u8], text: &str) -> Result<Vec<u8>, Unsealed> {
        if text.len() > LONGEST {
            return Err(Unsealed);
        }
        self.open_bytes(purpose, owner, &URL_SAFE_NO_PAD.decode(text).map_err(|_| Unsealed)?)
    }

    /// Opens what [`Sealer::seal_bytes`] gave, however long it is.
    ///
    /// # Errors
    /// [`Unsealed`]
    pub fn open_bytes(&self, purpose: &'static str, owner: &[u8], bytes: &[u8]) -> Result<Vec<u8>, Unsealed> {
        let (id, rest) = bytes.split_at_checked(ID).ok_or(Unsealed)?;
        let (nonce, sealed) = rest.split_at_checked(NONCE_LEN).ok_or(Unsealed)?;
        let keys = self.keys.load();
        let key = keys.iter().find(|k| k.id == *id).ok_or(Unsealed)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| Unsealed)?;
        let mut sealed = sealed.to_vec();
        let plain = key.key.open_in_place(nonce, bound(purpose, owner), &mut sealed);
        plain.map(|plain| plain.to_vec()).map_err(|_| Unsealed)
    }

    /// Names for `text` that say nothing about it to who has no key: by each key, the one that seals first. What was
    /// stored under a name is found under one of them, also after the keys have changed.
    pub fn names(&self, purpose: &'static str, owner: &[u8], text: &[u8]) -> Vec<[u8; NAME]> {
        let whole = [purpose.as_bytes(), b"\0", owner, b"\0", text].concat();
        let name = |key: &Key| hmac::sign(&key.naming, &whole).as_ref().first_chunk().copied();
        self.keys.load().iter().filter_map(name).collect()
    }
}

/// Purpose and owner, with a byte between them that no purpose has.
fn bound(purpose: &str, owner: &[u8]) -> Aad<Vec<u8>> {
    Aad::from([purpose.as_bytes(), b"\0", owner].concat())
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer").field("keys", &self.keys.load().len()).finish()
    }
}

// === impl Key ===

impl Key {
    fn of(key: &SealKey) -> Option<Self> {
        let id = *digest(&SHA256, &key.0).as_ref().first_chunk()?;
        let naming = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key.0), b"mcpgate names");
        let naming = hmac::Key::new(hmac::HMAC_SHA256, naming.as_ref());
        Some(Self { id, key: RandomizedNonceKey::new(&AES_256_GCM_SIV, &key.0).ok()?, naming })
    }
}

// === impl SealKey ===

impl SealKey {
    /// A random key.
    pub fn fresh() -> Self {
        let mut bytes = [0; 32];
        let Ok(()) = rand::fill(&mut bytes) else { unreachable!("the system gives random bytes") };
        Self(bytes)
    }

    /// The key of these bytes, if they are thirty-two.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// Its bytes, to be kept secret.
    pub fn expose(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for SealKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_purpose_and_owner_open_it() {
        let sealer = Sealer::new(&[]);
        let text = sealer.seal("state", b"alice", b"secret");
        assert_eq!(sealer.open("state", b"alice", &text).as_deref(), Ok(&b"secret"[..]));
        assert_eq!(sealer.open("state", b"bob", &text), Err(Unsealed));
        assert_eq!(sealer.open("task", b"alice", &text), Err(Unsealed));
        assert_ne!(text, sealer.seal("state", b"alice", b"secret"), "no two are alike");
    }

    #[test]
    fn no_changed_byte_goes_unnoticed() {
        let sealer = Sealer::new(&[]);
        let text = sealer.seal("state", b"", b"x");
        for at in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            assert_eq!(
                sealer.open("state", b"", std::str::from_utf8(&changed).unwrap()),
                Err(Unsealed),
                "{at}"
            );
        }
        for broken in ["", "A", "AAAAAAAA", "not base64!", &text[..20]] {
            assert_eq!(sealer.open("state", b"", broken), Err(Unsealed), "{broken}");
        }
    }

    #[test]
    fn an_older_key_still_opens() {
        let (old, new) = (SealKey::fresh(), SealKey::fresh());
        let text = Sealer::new(std::slice::from_ref(&old)).seal("state", b"", b"x");
        assert!(Sealer::new(&[new.clone(), old]).open("state", b"", &text).is_ok());
        assert_eq!(Sealer::new(&[new]).open("state", b"", &text), Err(Unsealed));
    }

    #[test]
    fn bytes_of_any_length_are_sealed_too() {
        let (sealer, plain) = (Sealer::new(&[]), vec![7; 2 * LONGEST]);
        let sealed = sealer.seal_bytes("log", b"s", &plain);
        assert_eq!(sealer.open_bytes("log", b"s", &sealed).as_deref(), Ok(&plain[..]));
        assert_eq!(sealer.open_bytes("log", b"t", &sealed), Err(Unsealed));
    }

    #[test]
    fn a_name_is_found_again_after_the_keys_have_changed() {
        let (old, new) = (SealKey::fresh(), SealKey::fresh());
        let before = Sealer::new(std::slice::from_ref(&old)).names("uri", b"s", b"a:1");
        let after = Sealer::new(&[new, old]).names("uri", b"s", b"a:1");
        assert_eq!(after.last(), before.first());
        assert_ne!(after.first(), before.first());
        assert_ne!(Sealer::new(&[]).names("uri", b"s", b"a:1"), before, "who has no key finds nothing");
    }
}
