//! The public keys of one issuer, and which of them a token is to be verified with.

use std::sync::Arc;

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;

/// The usable keys of one issuer.
#[derive(Default)]
pub(super) struct KeySet(Vec<Arc<Key>>);

/// One usable key.
pub(super) struct Key {
    kid: Option<String>,
    /// What it may verify: of its kind, allowed by the config, and of the key's own `alg` if it has one.
    algorithms: Vec<Algorithm>,
    /// The key itself.
    pub(super) material: DecodingKey,
}

/// Why no key is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoKey {
    /// None has this `kid`: the issuer may have a new one.
    Unknown,
    /// The token names no key and there is not exactly one.
    Ambiguous,
    /// The key is not for this algorithm.
    WrongAlgorithm,
}

/// Not a JWK set.
#[derive(Debug, thiserror::Error)]
#[error("this is no JWK set: {0}")]
pub(super) struct NotAKeySet(#[from] serde_json::Error);

#[derive(Deserialize)]
struct Document {
    keys: Vec<serde_json::Value>,
}

// === impl KeySet ===

impl KeySet {
    /// Reads a JWK set and keeps the keys that can verify with one of `allowed`. Keys for encryption, of unknown or
    /// symmetric kind, or not readable, are left out; they are no error (case-F07).
    pub(super) fn parse(json: &[u8], allowed: &[Algorithm]) -> Result<Self, NotAKeySet> {
        let document: Document = serde_json::from_slice(json)?;
        let read = |key| serde_json::from_value::<Jwk>(key).ok();
        Ok(Self(document.keys.into_iter().filter_map(read).filter_map(|key| usable(&key, allowed)).collect()))
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The key for a token with this header.
    ///
    /// Without a `kid` there must be exactly one key: trying each would let a token choose (case-F07).
    pub(super) fn pick(&self, kid: Option<&str>, algorithm: Algorithm) -> Result<Arc<Key>, NoKey> {
        let Some(kid) = kid else {
            let [only] = self.0.as_slice() else { return Err(NoKey::Ambiguous) };
            return only.for_algorithm(algorithm);
        };
        let mut refusal = NoKey::Unknown;
        for key in self.0.iter().filter(|key| key.kid.as_deref() == Some(kid)) {
            match key.for_algorithm(algorithm) {
                Ok(key) => return Ok(key),
                Err(why) => refusal = why,
            }
        }
        Err(refusal)
    }
}

impl Key {
    fn for_algorithm(self: &Arc<Self>, algorithm: Algorithm) -> Result<Arc<Self>, NoKey> {
        self.algorithms.contains(&algorithm).then(|| Arc::clone(self)).ok_or(NoKey::WrongAlgorithm)
    }
}

fn usable(jwk: &Jwk, allowed: &[Algorithm]) -> Option<Arc<Key>> {
    let signs = matches!(jwk.common.public_key_use, None | Some(PublicKeyUse::Signature))
        && jwk.common.key_operations.as_ref().is_none_or(|ops| ops.contains(&KeyOperations::Verify));
    let own = match jwk.common.key_algorithm {
        Some(named) => Some(Algorithm::try_from(named).ok()?),
        None => None,
    };
    let algorithms: Vec<Algorithm> = of_kind(jwk)
        .iter()
        .copied()
        .filter(|a| allowed.contains(a) && own.is_none_or(|own| own == *a))
        .collect();
    if !signs || algorithms.is_empty() {
        return None;
    }
    let material = DecodingKey::from_jwk(jwk).ok()?;
    Some(Arc::new(Key { kid: jwk.common.key_id.clone(), algorithms, material }))
}

/// What a key of this kind can verify. The kind decides, never the token: an RSA key is never an HMAC secret.
fn of_kind(jwk: &Jwk) -> &'static [Algorithm] {
    use Algorithm::{ES256, ES384, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512};
    match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => &[RS256, RS384, RS512, PS256, PS384, PS512],
        AlgorithmParameters::EllipticCurve(key) => match key.curve {
            EllipticCurve::P256 => &[ES256],
            EllipticCurve::P384 => &[ES384],
            _ => &[],
        },
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => &[EdDSA],
        _ => &[],
    }
}
