//! The `WWW-Authenticate` header of a refusal (A4, A6, A11; RFC 6750 section 3, RFC 9728 section 5.1).

use std::fmt::Write as _;

use http::HeaderValue;

use super::{Refusal, RefusalKind};

/// The challenge for a refusal. `metadata_url` is of the endpoint that was asked for, `None` if tokens are no way
/// in; `scope` is what the request needs.
///
/// A caller that sent nothing is told no error, as RFC 6750 asks: it did nothing wrong.
pub fn www_authenticate(refusal: &Refusal, metadata_url: Option<&str>, scope: Option<&str>) -> HeaderValue {
    let error = match refusal.kind {
        RefusalKind::Missing | RefusalKind::Unavailable => None,
        RefusalKind::Malformed => Some("invalid_request"),
        RefusalKind::Invalid | RefusalKind::Expired | RefusalKind::WrongAudience => Some("invalid_token"),
        RefusalKind::InsufficientScope => Some("insufficient_scope"),
    };
    let mut parameters = String::new();
    let mut parameter = |name: &str, value: &str| {
        let comma = if parameters.is_empty() { "" } else { "," };
        let _ = write!(parameters, "{comma} {name}=\"{}\"", quotable(value));
    };
    if let Some(url) = metadata_url {
        parameter("resource_metadata", url);
    }
    if let Some(scope) = scope {
        parameter("scope", scope);
    }
    if let Some(error) = error {
        parameter("error", error);
        parameter("error_description", refusal.message);
    }
    let challenge = format!("Bearer{parameters}");
    HeaderValue::from_str(&challenge).unwrap_or(HeaderValue::from_static("Bearer"))
}

/// What can stand between quotes in a header; nothing that came from a caller gets here, so this loses nothing.
fn quotable(value: &str) -> String {
    let visible = value.chars().filter(|c| matches!(c, ' '..='~') && !matches!(c, '"' | '\\'));
    visible.collect()
}

#[cfg(test)]
mod tests;
