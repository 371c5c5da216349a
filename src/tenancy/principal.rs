//! The principal: who a caller is, never the bytes of its credential.

use std::collections::BTreeSet;
use std::fmt;
use std::time::SystemTime;

use aws_lc_rs::digest;

/// Who a caller is: tenant, issuer, subject and client id. Sessions are bound to it (A18).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// The tenant it belongs to; the unnamed tenant is the only one until a credential names another.
    pub tenant: Option<Box<str>>,
    /// Who vouches for it.
    pub issuer: Issuer,
    /// Who it is, in the issuer's words.
    pub subject: Box<str>,
    /// The OAuth client it came through, if the credential says so.
    pub client_id: Option<Box<str>>,
    /// What it may do.
    pub scopes: BTreeSet<String>,
    /// Until when the credential is accepted, leeway included; streams opened with it end then.
    pub expires: Option<SystemTime>,
}

/// Who vouches for a principal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Issuer {
    /// Nobody: the caller brought no credential.
    Anonymous,
    /// The operator's list of API keys.
    ApiKey,
    /// The issuer of a JWT, by its `iss`.
    Jwt(Box<str>),
}

/// A digest of who a principal is. Sessions, logs and handles are bound to it (A18, A19); it is the same for a
/// refreshed token of the same identity (case-F09) and says nothing to who sees it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Binding(pub [u8; 32]);

// === impl Principal ===

impl Principal {
    /// A caller without a credential, in the unnamed tenant, without scopes.
    pub fn anonymous() -> Self {
        Self {
            tenant: None,
            issuer: Issuer::Anonymous,
            subject: "anonymous".into(),
            client_id: None,
            scopes: BTreeSet::new(),
            expires: None,
        }
    }

    /// What its sessions are bound to: tenant, issuer, subject and client id. Scopes and expiry change with a
    /// refresh and are no part of it.
    pub fn binding(&self) -> Binding {
        self.digest(self.client_id.as_deref())
    }

    /// What caps per principal count by: tenant, issuer and subject, through whatever client it comes, so that a
    /// caller gets no more by registering more clients.
    pub fn key(&self) -> Binding {
        self.digest(None)
    }

    fn digest(&self, client_id: Option<&str>) -> Binding {
        let (kind, issuer) = match &self.issuer {
            Issuer::Anonymous => ("anonymous", None),
            Issuer::ApiKey => ("api_key", None),
            Issuer::Jwt(issuer) => ("jwt", Some(&**issuer)),
        };
        let mut hash = digest::Context::new(&digest::SHA256);
        for part in [self.tenant.as_deref(), Some(kind), issuer, Some(&*self.subject), client_id] {
            // The length stands before each part, and an absent part is not an empty one: no two identities
            // write the same bytes.
            match part {
                Some(text) => {
                    hash.update(&[1]);
                    hash.update(&(text.len() as u64).to_be_bytes());
                    hash.update(text.as_bytes());
                }
                None => hash.update(&[0]),
            }
        }
        let mut bytes = [0; 32];
        bytes.copy_from_slice(hash.finish().as_ref());
        Binding(bytes)
    }
}

// === impl Binding ===

impl fmt::Debug for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, ..] = self.0;
        write!(f, "Binding({a:02x}{b:02x}{c:02x}{d:02x})")
    }
}

#[cfg(test)]
mod tests;
