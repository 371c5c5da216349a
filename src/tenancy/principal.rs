//! The principal: who a caller is, never the bytes of its credential.

use std::collections::BTreeSet;
use std::time::SystemTime;

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
    /// When the credential ends; streams opened with it end then.
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
