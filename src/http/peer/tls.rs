//! TLS 1.3 between replicas with raw public keys (RFC 7250): the key itself is pinned, so there is nothing that a
//! certificate could add.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, OtherError,
    ServerConfig, SignatureScheme,
};

use super::KeyHash;

/// What both sides agree to speak; anything else ends the handshake.
const ALPN: &[u8] = b"h2";

/// Another key than the one expected was met.
#[derive(Debug, thiserror::Error)]
#[error("another key than the one expected")]
pub(super) struct OtherKey;

/// Takes one key, or any.
#[derive(Debug)]
struct Pin {
    expected: Expected,
    algorithms: WebPkiSupportedAlgorithms,
}

/// Whose key is taken.
#[derive(Clone, Copy, Debug)]
enum Expected {
    /// This one's.
    Only(KeyHash),
    /// Anyone's who holds its private half: the listener asks who it is before it reads on.
    Any,
}

/// For a connection to the replica with this key.
pub(super) fn client(key: Arc<CertifiedKey>, expected: KeyHash) -> Result<ClientConfig, Error> {
    let provider = provider();
    let pin = Pin::new(Expected::Only(expected), &provider);
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(pin))
        .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(key)));
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.enable_sni = false;
    // A resumed handshake shows no key.
    config.resumption = Resumption::disabled();
    Ok(config)
}

/// For connections from peers.
pub(super) fn server(key: Arc<CertifiedKey>) -> Result<ServerConfig, Error> {
    let provider = provider();
    let pin = Pin::new(Expected::Any, &provider);
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(Arc::new(pin))
        .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(key)));
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.send_tls13_tickets = 0;
    Ok(config)
}

/// Whether a handshake failed because the other side showed a key of our kind that is not the expected one. Whoever
/// shows something else proves nothing: it may stand between.
pub(super) fn met_a_stranger(error: &std::io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    matches!(inner, Some(Error::InvalidCertificate(CertificateError::Other(OtherError(why)))) if why.is::<OtherKey>())
}

/// One suite: every processor that a gateway runs on has it in hardware, and it is the cheapest there.
fn provider() -> Arc<CryptoProvider> {
    let mut provider = rustls::crypto::aws_lc_rs::default_provider();
    provider.cipher_suites = vec![TLS13_AES_128_GCM_SHA256];
    Arc::new(provider)
}

// === impl Pin ===

impl Pin {
    fn new(expected: Expected, provider: &CryptoProvider) -> Self {
        Self { expected, algorithms: provider.signature_verification_algorithms }
    }

    fn check(&self, key: &CertificateDer<'_>) -> Result<(), Error> {
        match self.expected {
            Expected::Only(hash) if hash != KeyHash::of(key) => {
                Err(Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(OtherKey)))))
            }
            Expected::Only(_) | Expected::Any => Ok(()),
        }
    }

    fn check_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = SubjectPublicKeyInfoDer::from(key.as_ref());
        verify_tls13_signature_with_raw_key(message, &key, signed, &self.algorithms)
    }
}

/// TLS 1.2 is not spoken here.
fn too_old() -> Error {
    Error::General("TLS 1.2 is not spoken between replicas".to_owned())
}

impl ServerCertVerifier for Pin {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(end_entity).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(too_old())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for Pin {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(end_entity).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(too_old())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
