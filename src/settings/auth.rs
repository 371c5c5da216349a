//! Ways in, as configured.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use url::Url;

/// The ways in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthSettings {
    /// Whether callers without a credential are let in.
    pub anonymous: Anonymous,
    /// API keys, by hash.
    pub api_keys: Vec<ApiKey>,
    /// Issuers of JWT access tokens.
    pub jwt: Vec<JwtIssuer>,
}

/// Whether callers without a credential are let in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Anonymous {
    /// Only if no other way in is configured and the listener is on loopback.
    #[default]
    Loopback,
    /// Never.
    Never,
    /// From everywhere, by the operator's word.
    AcceptedFromAnywhere,
}

/// One API key; only its hash is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// What it is called in logs; not secret.
    pub id: String,
    /// SHA-256 of the key.
    pub sha256: [u8; 32],
    /// The tenant it speaks for.
    pub tenant: Option<String>,
    /// What it may do.
    pub scopes: BTreeSet<String>,
    /// When it stops working.
    pub expires: Option<SystemTime>,
}

/// One issuer of JWT access tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JwtIssuer {
    /// The `iss` claim.
    pub issuer: String,
    /// Where its keys are.
    pub jwks: JwksSource,
    /// Accepted `aud` values; one must be in the token.
    pub audiences: Vec<String>,
    /// Accepted algorithms by their JOSE names, such as `RS256`; asymmetric ones only.
    pub algorithms: Vec<String>,
    /// JSON pointer to the claim that names the tenant.
    pub tenant_claim: Option<String>,
    /// JSON pointer to the claim that tells people apart; `/sub` by default.
    pub principal_claim: String,
    /// Tenants this issuer may speak for; empty allows any (only with a single issuer).
    pub tenants: Vec<String>,
    /// Allowed difference between clocks.
    pub leeway: Duration,
}

/// Where an issuer's keys are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JwksSource {
    /// Fetched, and again on an unknown key.
    Url(Url),
    /// Read, and again on an unknown key.
    File(PathBuf),
}
