//! Judges JWT access tokens (RFC 9068) of the configured issuers.
//!
//! In this order: form and `typ`, issuer, algorithm, key, signature, times, audience, and then who it is. The
//! library checks signature and times; what it does not look at is checked here.

mod claims;

use std::sync::Arc;
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, Header, Validation};
use serde::Deserialize;

use super::Unusable;
use super::keyring::{Fetching, Keyring, Unfound};
use super::keys::NoKey;
use super::refusal::{
    BAD_CLAIM, BAD_SIGNATURE, EXPIRED, INVALID, Refusal, UNAVAILABLE, UNKNOWN_ISSUER, UNKNOWN_KEY,
    WRONG_AUDIENCE,
};
use super::verified::{Verified, VerifiedTokens, digest};
use crate::settings::auth::JwtIssuer;
use crate::tenancy::Principal;
use claims::Claims;

/// All issuers whose tokens are accepted.
pub(super) struct Issuers {
    issuers: Vec<Issuer>,
    verified: VerifiedTokens,
}

struct Issuer {
    settings: JwtIssuer,
    keyring: Arc<Keyring>,
}

/// The claim that is read before the signature is checked, only to know whose keys to check it with.
#[derive(Deserialize)]
struct Claimed {
    iss: String,
}

// === impl Issuers ===

impl Issuers {
    /// The issuers of the config.
    pub(super) fn new(settings: &[JwtIssuer], fetching: &Fetching) -> Result<Self, Unusable> {
        let issuers = settings.iter().map(|settings| {
            let allowed = usable_algorithms(settings)?;
            let keyring = Keyring::new(&settings.issuer, settings.jwks.clone(), allowed, fetching.clone());
            Ok(Issuer { settings: settings.clone(), keyring })
        });
        Ok(Self { issuers: issuers.collect::<Result<_, Unusable>>()?, verified: VerifiedTokens::new() })
    }

    /// Their names.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.issuers.iter().map(|issuer| issuer.settings.issuer.as_str())
    }

    /// Who brought this token.
    pub(super) async fn check(&self, token: &str) -> Result<Arc<Principal>, Refusal> {
        let digest = digest(token.as_bytes());
        let now = SystemTime::now();
        if let Some(known) = self.verified.get(&digest, now) {
            let issuer = self.issuers.get(known.issuer);
            if issuer.and_then(|issuer| issuer.keyring.generation()) == Some(known.generation) {
                return Ok(known.principal);
            }
        }
        let verified = self.verify(token).await?;
        let principal = Arc::clone(&verified.principal);
        self.verified.insert(digest, verified, now);
        Ok(principal)
    }

    async fn verify(&self, token: &str) -> Result<Verified, Refusal> {
        let header = jsonwebtoken::decode_header(token).map_err(|_| INVALID)?;
        // No extension that a token could call critical is understood here (RFC 7515 section 4.1.11).
        if header.crit.is_some() || !is_access_token(&header) {
            return Err(INVALID);
        }
        let claimed = claimed_issuer(token).ok_or(INVALID)?;
        let place = self.issuers.iter().position(|i| i.settings.issuer == claimed).ok_or(UNKNOWN_ISSUER)?;
        let issuer = self.issuers.get(place).ok_or(UNKNOWN_ISSUER)?;
        issuer.verify(token, &header, place).await
    }
}

// === impl Issuer ===

impl Issuer {
    async fn verify(&self, token: &str, header: &Header, place: usize) -> Result<Verified, Refusal> {
        if !self.keyring.allows(header.alg) {
            return Err(INVALID);
        }
        let (key, generation) =
            self.keyring.find(header.kid.as_deref(), header.alg).await.map_err(|why| match why {
                Unfound::NoKeys => UNAVAILABLE,
                Unfound::NoKey(NoKey::Unknown | NoKey::Ambiguous) => UNKNOWN_KEY,
                Unfound::NoKey(NoKey::WrongAlgorithm) => INVALID,
            })?;
        let claims = jsonwebtoken::decode::<Claims>(token, &key.material, &self.validation(header.alg))
            .map_err(|error| refusal(error.kind()))?
            .claims;
        if !claims.audience_is_one_of(&self.settings.audiences) {
            return Err(WRONG_AUDIENCE);
        }
        let principal = claims.principal(&self.settings).ok_or(BAD_CLAIM)?;
        let until = principal.expires.ok_or(BAD_CLAIM)?;
        Ok(Verified { principal: Arc::new(principal), issuer: place, generation, until })
    }

    fn validation(&self, algorithm: Algorithm) -> Validation {
        let mut validation = Validation::new(algorithm);
        validation.set_issuer(&[&self.settings.issuer]);
        validation.set_required_spec_claims(&["exp", "iss"]);
        validation.validate_nbf = true;
        // Judged by [`Claims::audience_is_one_of`], which knows about trailing slashes.
        validation.validate_aud = false;
        validation.leeway = self.settings.leeway.as_secs();
        validation
    }
}

/// The algorithms of the config; only those with a public key, so that no public key can be a secret (case-F07).
fn usable_algorithms(settings: &JwtIssuer) -> Result<Vec<Algorithm>, Unusable> {
    let issuer = || settings.issuer.clone();
    if settings.algorithms.is_empty() {
        return Err(Unusable::NoAlgorithm(issuer()));
    }
    if settings.audiences.is_empty() {
        return Err(Unusable::NoAudience(issuer()));
    }
    if settings.tenant_claim.is_none() && settings.tenants.len() > 1 {
        return Err(Unusable::NoTenantClaim(issuer()));
    }
    let asymmetric = |name: &String| {
        let symmetric = [Algorithm::HS256, Algorithm::HS384, Algorithm::HS512];
        let known = name.parse().ok().filter(|algorithm| !symmetric.contains(algorithm));
        known.ok_or_else(|| Unusable::Algorithm { issuer: issuer(), algorithm: name.clone() })
    };
    settings.algorithms.iter().map(asymmetric).collect()
}

/// RFC 9068 says `at+jwt`, many issuers say `JWT` or nothing; an ID token or logout token that says its kind is
/// not taken for an access token.
fn is_access_token(header: &Header) -> bool {
    let Some(typ) = header.typ.as_deref() else { return true };
    let typ = typ.to_ascii_lowercase();
    matches!(typ.strip_prefix("application/").unwrap_or(&typ), "jwt" | "at+jwt")
}

fn claimed_issuer(token: &str) -> Option<String> {
    let payload = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    serde_json::from_slice::<Claimed>(&payload).ok().map(|claimed| claimed.iss)
}

fn refusal(error: &ErrorKind) -> Refusal {
    match error {
        ErrorKind::InvalidSignature => BAD_SIGNATURE,
        ErrorKind::ExpiredSignature => EXPIRED,
        ErrorKind::ImmatureSignature
        | ErrorKind::MissingRequiredClaim(_)
        | ErrorKind::InvalidClaimFormat(_) => BAD_CLAIM,
        _ => INVALID,
    }
}
