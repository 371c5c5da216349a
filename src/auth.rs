//! Who a caller is, from the credential it brings: an API key, a JWT, or none.
//!
//! Says which [`Principal`] it is or why not, in kinds; `http` makes statuses and headers of them. A credential
//! that is brought must be good, also where none would do. Only headers are read, never the query (A7,
//! case-F13), and no credential is kept: keys and tokens are known by their SHA-256.
//!
//! `credential` reads the headers; `api_key` and `jwt` judge; `keyring` gets an issuer's keys and `keys` chooses
//! among them; `verified` remembers tokens that were found good; `challenge` and `metadata` write what a caller
//! needs to come back with a credential.

mod api_key;
pub mod challenge;
mod credential;
mod jwt;
mod key_client;
mod keyring;
mod keys;
pub mod metadata;
mod refusal;
mod verified;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;

use http::HeaderMap;
use tokio_util::task::TaskTracker;

pub use api_key::missing;
pub use key_client::{KeyClient, NoKeyClient};
pub use keyring::Pace;
pub use refusal::{REVOKED, Refusal, RefusalKind};

use crate::settings::AuthSettings;
use crate::settings::auth::{Anonymous, JwksSource};
use crate::telemetry::Metrics;
use crate::tenancy::Principal;
use api_key::ApiKeys;
use credential::Credential;
use jwt::Issuers;
use keyring::Fetching;

/// Finds out who callers are.
pub struct Authenticator {
    anonymous: Option<Arc<Principal>>,
    keys: ApiKeys,
    issuers: Issuers,
    metrics: Arc<Metrics>,
}

/// Who can reach the listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Programs on this machine.
    Loopback,
    /// Others too.
    Network,
}

/// Why nobody could be let in, or more than the operator meant.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Unusable {
    /// There is no way in at all.
    #[error(
        "no caller could come in: nothing is configured under `auth`, and `anonymous: loopback` holds only for a \
         listener on loopback; configure `auth.apiKeys` or `auth.jwt`, or say `auth.anonymous: acceptedFromAnywhere`"
    )]
    NoWayIn,
    /// An algorithm that is unknown or not asymmetric.
    #[error(
        "issuer {issuer}: `{algorithm}` is no asymmetric JWT algorithm; use for example RS256, ES256 or EdDSA"
    )]
    Algorithm {
        /// The issuer it is listed with.
        issuer: String,
        /// As written.
        algorithm: String,
    },
    /// An issuer without algorithms.
    #[error("issuer {0}: `algorithms` is empty; list those it signs with, for example RS256")]
    NoAlgorithm(String),
    /// An issuer without audiences.
    #[error(
        "issuer {0}: `audiences` is empty, so that no token could be accepted; list the URL of this gateway"
    )]
    NoAudience(String),
    /// Keys are to be fetched, and there is nothing to fetch them with.
    #[error(transparent)]
    NoKeyClient(#[from] NoKeyClient),
    /// Several tenants and no claim that tells which.
    #[error("issuer {0}: several `tenants` but no `tenantClaim` that tells which of them a token is for")]
    NoTenantClaim(String),
}

// === impl Authenticator ===

impl Authenticator {
    /// An authenticator for these ways in. Nothing is fetched before the first token needs it; fetches run on
    /// `tasks`, by `client`.
    ///
    /// # Errors
    /// [`Unusable`] if nobody could come in, or an issuer's settings cannot be kept.
    pub fn new(
        settings: &AuthSettings,
        reach: Reach,
        client: KeyClient,
        tasks: TaskTracker,
        metrics: Arc<Metrics>,
    ) -> Result<Self, Unusable> {
        Self::paced(settings, reach, client, tasks, metrics, Pace::default())
    }

    /// The same, with another pace of fetching keys.
    ///
    /// # Errors
    /// As [`Authenticator::new`].
    pub fn paced(
        settings: &AuthSettings,
        reach: Reach,
        client: KeyClient,
        tasks: TaskTracker,
        metrics: Arc<Metrics>,
        pace: Pace,
    ) -> Result<Self, Unusable> {
        let credentials = !settings.api_keys.is_empty() || !settings.jwt.is_empty();
        let anonymous = match settings.anonymous {
            Anonymous::AcceptedFromAnywhere => true,
            Anonymous::Loopback => !credentials && reach == Reach::Loopback,
            Anonymous::Never => false,
        };
        if !anonymous && !credentials {
            if settings.anonymous == Anonymous::Loopback {
                return Err(Unusable::NoWayIn);
            }
            // The operator's word: a key file may be empty for a while, after its last key was taken out.
            tracing::warn!("no API key and no issuer is listed: every caller is refused until one is");
        }
        if settings.jwt.iter().any(|issuer| matches!(issuer.jwks, JwksSource::Url(_))) {
            // Said now, not when the first token comes.
            client.get()?;
        }
        let fetching = Fetching { client, tasks, metrics: Arc::clone(&metrics), pace };
        Ok(Self {
            anonymous: anonymous.then(|| Arc::new(Principal::anonymous())),
            keys: ApiKeys::new(&settings.api_keys),
            issuers: Issuers::new(&settings.jwt, &fetching)?,
            metrics,
        })
    }

    /// Says who sent these headers.
    ///
    /// Without a credential, with an API key, and with a token that was found good before, it never suspends.
    ///
    /// # Errors
    /// [`Refusal`]: what is wrong with the credential, or that one is needed.
    ///
    /// # Cancellation
    /// Safe: a fetch of keys goes on for those who come next.
    pub async fn authenticate(&self, headers: &HeaderMap) -> Result<Arc<Principal>, Refusal> {
        let (scheme, verdict) = match credential::presented(headers) {
            Ok(Credential::None) => ("none", self.anonymous.clone().ok_or(refusal::MISSING)),
            Ok(Credential::ApiKey(key)) => ("api_key", self.keys.check(key, SystemTime::now())),
            Ok(Credential::Jwt(token)) => ("jwt", self.issuers.check(token).await),
            Err(refusal) => ("none", Err(refusal)),
        };
        let outcome = verdict.as_ref().err().map_or("ok", |refusal| refusal.reason);
        self.metrics.auth_attempt(scheme, outcome);
        if outcome != "ok" {
            tracing::debug!(auth.scheme = scheme, auth.outcome = outcome, "a caller is refused");
        }
        verdict
    }

    /// The issuers whose tokens are accepted: the authorization servers of the metadata documents. Empty if
    /// tokens are no way in; there is no metadata document then.
    pub fn issuers(&self) -> impl Iterator<Item = &str> {
        self.issuers.names()
    }
}

impl fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authenticator").finish_non_exhaustive()
    }
}

// === impl Reach ===

impl From<SocketAddr> for Reach {
    fn from(listen: SocketAddr) -> Self {
        if listen.ip().to_canonical().is_loopback() { Self::Loopback } else { Self::Network }
    }
}
