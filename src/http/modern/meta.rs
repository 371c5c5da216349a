//! What a modern request says of its caller in `params._meta` (M1 to M4, E8).

use std::borrow::Cow;

use http::StatusCode;

use crate::http::reply::Refused;
use crate::protocol::error::Code;
use crate::protocol::meta::{
    CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, LOG_LEVELS, PROTOCOL_VERSION, RequestMeta,
};
use crate::protocol::object::{Object, text};

/// What every modern request must say, and may.
pub(super) struct Claimed<'a> {
    /// The version it is written in, served here or not.
    pub(super) version: Cow<'a, str>,
    /// A raw object.
    pub(super) capabilities: &'a str,
    /// A raw object.
    pub(super) client_info: Option<&'a str>,
}

/// The `_meta` of params.
///
/// # Errors
/// 400 -32602 if it cannot be read.
pub(super) fn of<'a>(params: &Object<'a>) -> Result<RequestMeta<'a>, Refused> {
    RequestMeta::of(params).map_err(incomplete)
}

/// Whether it claims the modern era, by a version of whatever form (E7).
pub(super) fn claims(meta: &RequestMeta<'_>) -> bool {
    meta.get(PROTOCOL_VERSION).is_some()
}

/// Reads what a modern request must say (T41).
///
/// # Errors
/// 400 -32602 that names what is missing.
pub(super) fn complete<'a>(meta: &RequestMeta<'a>) -> Result<Claimed<'a>, Refused> {
    let missing = |key: &str, form: &str| incomplete(format!("params._meta needs \"{key}\", {form}"));
    let version = meta.version().ok_or_else(|| missing(PROTOCOL_VERSION, "a string"))?;
    let capabilities = meta.object(CLIENT_CAPABILITIES);
    let capabilities = capabilities.ok_or_else(|| missing(CLIENT_CAPABILITIES, "an object"))?;
    if Object::parse(capabilities).is_err() {
        return Err(incomplete(format!("\"{CLIENT_CAPABILITIES}\" in params._meta names a member twice")));
    }
    if let Some(raw) = meta.get(LOG_LEVEL).filter(|raw| *raw != "null")
        && !text(raw).is_some_and(|level| LOG_LEVELS.contains(&level.as_ref()))
    {
        let levels = LOG_LEVELS.join(", ");
        return Err(incomplete(format!("\"{LOG_LEVEL}\" in params._meta must be one of {levels}")));
    }
    Ok(Claimed { version, capabilities, client_info: meta.object(CLIENT_INFO) })
}

/// `_meta` is not what a modern request needs.
pub(super) fn incomplete(why: impl Into<String>) -> Refused {
    Refused::new(StatusCode::BAD_REQUEST, Code::InvalidParams, "incomplete_meta", why)
}
