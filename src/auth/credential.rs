//! Reads the one credential that a request may carry.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderMap;
use http::header::AUTHORIZATION;

use super::refusal::{MALFORMED, NOT_BEARER, Refusal};
use crate::protocol::header::API_KEY;

/// What a request carries.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Credential<'a> {
    /// Nothing.
    None,
    /// An API key, from either header.
    ApiKey(&'a [u8]),
    /// Something of a JWT's form.
    Jwt(&'a str),
}

/// Finds the credential.
///
/// # Errors
/// A [`Refusal`] if there is more than one, or an `Authorization` header that is no `Bearer` credential.
pub(super) fn presented(headers: &HeaderMap) -> Result<Credential<'_>, Refusal> {
    let mut bearers = headers.get_all(AUTHORIZATION).iter();
    let mut keys = headers.get_all(API_KEY).iter();
    match (bearers.next(), bearers.next(), keys.next(), keys.next()) {
        (None, None, None, None) => Ok(Credential::None),
        (Some(bearer), None, None, None) => {
            let token = bearer.to_str().ok().and_then(bearer_token).ok_or(NOT_BEARER)?;
            Ok(if is_jwt(token) { Credential::Jwt(token) } else { Credential::ApiKey(token.as_bytes()) })
        }
        (None, None, Some(key), None) => Ok(Credential::ApiKey(key.as_bytes())),
        _ => Err(MALFORMED),
    }
}

/// The token of `Bearer TOKEN`; the scheme in any case, as RFC 9110 has it.
fn bearer_token(header: &str) -> Option<&str> {
    let (scheme, token) = header.split_once(' ')?;
    let token = token.trim_matches(' ');
    let whole = !token.is_empty() && !token.contains([' ', ',']);
    (scheme.eq_ignore_ascii_case("bearer") && whole).then_some(token)
}

/// Three base64url parts, the first of which is a JSON object: no key made by `mcpgate hash-key` looks so.
fn is_jwt(token: &str) -> bool {
    let mut parts = token.split('.');
    let (Some(header), Some(payload), Some(signature), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let base64url = |part: &str| part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    base64url(payload)
        && base64url(signature)
        && URL_SAFE_NO_PAD.decode(header).is_ok_and(|json| {
            serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(&json).is_ok()
        })
}

#[cfg(test)]
mod tests;
