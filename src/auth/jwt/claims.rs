//! What a verified token says, and the principal that makes.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use serde::Deserialize;
use serde_json::Value;

use crate::settings::auth::JwtIssuer;
use crate::tenancy::{Issuer, Principal};

/// The claims of a token whose signature is good.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct Claims(Value);

// === impl Claims ===

impl Claims {
    /// Whether one of `accepted` is in `aud`, which is a string or an array of strings; no `aud` is no match
    /// (case-F05). Texts are the same if they are so after one trailing slash is taken from each.
    pub(super) fn audience_is_one_of(&self, accepted: &[String]) -> bool {
        let is_accepted = |aud: &Value| {
            aud.as_str().is_some_and(|aud| accepted.iter().any(|a| without_slash(a) == without_slash(aud)))
        };
        match self.0.get("aud") {
            Some(Value::Array(all)) => all.iter().any(is_accepted),
            Some(one) => is_accepted(one),
            None => false,
        }
    }

    /// Who it is; `None` if a claim that must be there is not or cannot be, or names a tenant that is not the issuer's.
    pub(super) fn principal(&self, settings: &JwtIssuer) -> Option<Principal> {
        Some(Principal {
            tenant: self.tenant(settings)?,
            issuer: Issuer::Jwt(settings.issuer.as_str().into()),
            subject: self.text(&settings.principal_claim)?.into(),
            client_id: self.text("/client_id").or_else(|| self.text("/azp")).map(Into::into),
            scopes: self.scopes(),
            // Streams go on for as long as the token would be accepted.
            expires: Some(self.expires()?.checked_add(settings.leeway)?),
        })
    }

    /// The tenant, in two layers: whether it is acceptable, and whether there is one. Without a `tenantClaim` it is
    /// the issuer's only tenant, if that is listed.
    #[expect(clippy::option_option, reason = "no tenant is a tenant of its own; a wrong one is a refusal")]
    fn tenant(&self, settings: &JwtIssuer) -> Option<Option<Box<str>>> {
        let Some(pointer) = &settings.tenant_claim else {
            return Some(settings.tenants.first().map(|only| only.as_str().into()));
        };
        let tenant = self.text(pointer)?;
        let may = settings.tenants.is_empty() || settings.tenants.iter().any(|t| t == tenant);
        may.then(|| Some(tenant.into()))
    }

    /// `scope` (RFC 9068) and `scp`, which some issuers use; each a string of words or an array of them.
    fn scopes(&self) -> BTreeSet<String> {
        let words = |claim: &Value| match claim {
            Value::Array(all) => all.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            Value::String(words) => words.split_ascii_whitespace().map(str::to_owned).collect(),
            _ => Vec::new(),
        };
        ["scope", "scp"].into_iter().filter_map(|name| self.0.get(name)).flat_map(words).collect()
    }

    /// An end that no clock can hold is as good as none, but is not taken for one.
    fn expires(&self) -> Option<SystemTime> {
        let exp = self.0.get("exp")?;
        let seconds = Duration::try_from_secs_f64(exp.as_f64()?).ok()?;
        SystemTime::UNIX_EPOCH.checked_add(seconds)
    }

    /// A claim that is a string and says something.
    fn text(&self, pointer: &str) -> Option<&str> {
        self.0.pointer(pointer)?.as_str().filter(|text| !text.is_empty())
    }
}

fn without_slash(url: &str) -> &str {
    url.strip_suffix('/').unwrap_or(url)
}
