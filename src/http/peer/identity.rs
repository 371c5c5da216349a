//! Who a replica is to its peers: a key made at its start, and the proof that the key is a replica's of this cluster.
//!
//! The proof is made with a cluster key and goes into the lease, so that whoever can write to the store but does not
//! hold a cluster key cannot pose as a replica. Any cluster key will do for checking, so that they can be rotated.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac;
use aws_lc_rs::signature::Ed25519KeyPair;
use rustls::crypto::aws_lc_rs::sign::any_eddsa_type;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, ServerConfig};

use super::{Replica, tls};

/// What the MAC is about: the same keys serve other purposes too.
const PURPOSE: &[u8] = b"mcpgate peer";

/// The SHA-256 of a public key, as `SubjectPublicKeyInfo`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyHash(pub [u8; 32]);

/// The key of this process, never written anywhere. Its public half is its whole certificate.
pub struct Identity {
    key: Arc<CertifiedKey>,
    key_hash: KeyHash,
    /// How connections from peers are met.
    listening: Arc<ServerConfig>,
}

/// No key could be made.
#[derive(Debug, thiserror::Error)]
#[error(
    "no key for the connections between replicas could be made: the system's random numbers or its cryptography fail"
)]
pub struct NoIdentity;

/// Proves by a cluster key that `key_hash` is the key of `replica`.
pub fn proof(cluster_key: &[u8; 32], replica: &Replica, key_hash: KeyHash) -> [u8; 32] {
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, cluster_key));
    context.update(PURPOSE);
    context.update(replica.as_str().as_bytes());
    // It comes last and has one length, so that no two pairs read the same.
    context.update(&key_hash.0);
    let mut proof = [0; 32];
    proof.copy_from_slice(context.sign().as_ref());
    proof
}

/// Whether one of the cluster keys made this proof. Compares in constant time.
pub fn is_proven<'k>(
    cluster_keys: impl IntoIterator<Item = &'k [u8; 32]>,
    replica: &Replica,
    key_hash: KeyHash,
    proof: &[u8; 32],
) -> bool {
    cluster_keys.into_iter().any(|cluster_key| {
        let expected = self::proof(cluster_key, replica, key_hash);
        verify_slices_are_equal(&expected, proof).is_ok()
    })
}

// === impl Identity ===

impl Identity {
    /// A new key.
    ///
    /// # Errors
    /// [`NoIdentity`] if none could be made.
    pub fn generate() -> Result<Self, NoIdentity> {
        let pair = Ed25519KeyPair::generate().map_err(|_| NoIdentity)?;
        let document = pair.to_pkcs8v1().map_err(|_| NoIdentity)?;
        let private = PrivatePkcs8KeyDer::from(document.as_ref());
        let signing = any_eddsa_type(&private).map_err(|_| NoIdentity)?;
        let public = signing.public_key().ok_or(NoIdentity)?;
        let key_hash = KeyHash::of(public.as_ref());
        let certificate = CertificateDer::from(public.as_ref().to_vec());
        let key = Arc::new(CertifiedKey::new(vec![certificate], signing));
        let listening = tls::server(key.clone()).map_err(|_| NoIdentity)?;
        Ok(Self { key, key_hash, listening: Arc::new(listening) })
    }

    /// What the lease says, and peers pin.
    pub fn key_hash(&self) -> KeyHash {
        self.key_hash
    }

    /// TLS for connections from peers.
    pub(super) fn listening(&self) -> Arc<ServerConfig> {
        self.listening.clone()
    }

    /// TLS for a connection to the replica with this key.
    pub(super) fn dialing(&self, expected: KeyHash) -> Result<ClientConfig, rustls::Error> {
        tls::client(self.key.clone(), expected)
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("key_hash", &self.key_hash).finish_non_exhaustive()
    }
}

// === impl KeyHash ===

impl KeyHash {
    /// The hash of this public key.
    pub(super) fn of(public: &[u8]) -> Self {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest(&SHA256, public).as_ref());
        Self(hash)
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Enough to tell keys apart in a log.
        self.0.iter().take(4).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_cluster_key_in_use_proves_and_no_other() {
        let (old, new, other) = ([1; 32], [2; 32], [3; 32]);
        let (replica, hash) = (Replica::parse("r1").expect("an id"), KeyHash([9; 32]));
        let proof = proof(&old, &replica, hash);
        assert!(is_proven([&new, &old], &replica, hash, &proof));
        assert!(!is_proven([&new, &other], &replica, hash, &proof));
        assert!(!is_proven([], &replica, hash, &proof));
        assert!(!is_proven([&old], &Replica::parse("r2").expect("an id"), hash, &proof));
        assert!(!is_proven([&old], &replica, KeyHash([8; 32]), &proof));
    }

    #[test]
    fn each_start_is_another_key_and_shows_none_of_it() {
        let (one, two) = (Identity::generate().expect("a key"), Identity::generate().expect("a key"));
        assert_ne!(one.key_hash(), two.key_hash());
        assert_eq!(KeyHash::of(one.key.cert.first().expect("a certificate")), one.key_hash());
        let shown = format!("{one:?}");
        assert!(shown.len() < 60, "{shown}");
    }
}
