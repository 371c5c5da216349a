//! Reading the MCP headers of a request, each at most once.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::reply::Refused;
use crate::protocol::error::{Code, RpcError};
use crate::protocol::header::{LAST_EVENT_ID, PROTOCOL_VERSION, SESSION_ID};
use crate::protocol::object::quoted;
use crate::protocol::revision::{Era, Revision};
use crate::session::SessionId;
use crate::session::event::EventId;

/// The session id, if one was sent.
///
/// # Errors
/// 400 if it is sent twice or can be no id (case-E11).
pub(super) fn session_id(headers: &HeaderMap) -> Result<Option<SessionId>, Refused> {
    let Some(value) = once(headers, &SESSION_ID)? else { return Ok(None) };
    let id = SessionId::parse(value);
    id.map(Some).map_err(|e| Refused::caller(StatusCode::BAD_REQUEST, "malformed_session_id", e.to_string()))
}

/// Refuses a version header that names no revision served here (case-E03); another than the negotiated one is
/// accepted, and the session's is used (T35).
///
/// # Errors
/// 400
pub(super) fn check_version(headers: &HeaderMap) -> Result<(), Refused> {
    let Some(value) = once(headers, &PROTOCOL_VERSION)? else { return Ok(()) };
    match Revision::legacy(value.to_str().unwrap_or_default().trim()) {
        Ok(_) => Ok(()),
        Err(unknown) => {
            let message = format!("MCP-Protocol-Version: {unknown}");
            Err(Refused::caller(StatusCode::BAD_REQUEST, "unsupported_version", message))
        }
    }
}

/// The revision that a caller without a session writes in, by its header, which was checked (T34).
pub(super) fn revision(headers: &HeaderMap) -> Revision {
    let said = headers.get(PROTOCOL_VERSION).and_then(|value| value.to_str().ok());
    said.and_then(|said| Revision::legacy(said.trim()).ok()).unwrap_or(Revision::UNSAID)
}

/// The era that the version header speaks of; sent more than once, one modern date is enough, so that nobody who reads
/// another of them sees another era (E7).
pub(super) fn era_of_header(headers: &HeaderMap) -> Era {
    let modern = |value: &HeaderValue| Era::of_date(value.as_bytes().trim_ascii()) == Era::Modern;
    if headers.get_all(PROTOCOL_VERSION).iter().any(modern) { Era::Modern } else { Era::Legacy }
}

/// The modern revision of this date.
///
/// # Errors
/// 400 -32022 with those that are served (T39).
pub(super) fn served(version: &str) -> Result<Revision, Refused> {
    Revision::modern(version).ok_or_else(|| modern_only(version))
}

/// Only modern revisions are served, and this is none of them (T39, L12).
pub(super) fn modern_only(requested: &str) -> Refused {
    let requested: String = requested.chars().take(64).collect();
    let supported = Revision::MODERN.map(|r| quoted(r.as_str())).join(",");
    let message = format!(
        "Protocol version {} is not served here; served are {}.",
        quoted(&requested),
        Revision::dates(&Revision::MODERN)
    );
    let error = RpcError::new(Code::UnsupportedVersion, "unsupported_version", message);
    let data = format!(r#""supported":[{supported}],"requested":{}"#, quoted(&requested));
    Refused::because(StatusCode::BAD_REQUEST, error.with_data(data))
}

/// The cursor of a resumed stream, if one was sent.
///
/// # Errors
/// 400 if it is none of ours; never 404, which would end the session for the caller (D13).
pub(super) fn last_event_id(headers: &HeaderMap) -> Result<Option<EventId>, Refused> {
    let Some(value) = once(headers, &LAST_EVENT_ID)? else { return Ok(None) };
    // An empty id takes the cursor back, says the SSE standard: as if none were sent.
    if value.is_empty() {
        return Ok(None);
    }
    let id = EventId::parse(value.to_str().unwrap_or_default());
    id.map(Some).map_err(|e| Refused::caller(StatusCode::BAD_REQUEST, "unknown_event", e.to_string()))
}

/// Refuses headers that are too large together.
///
/// # Errors
/// 431
pub(super) fn check_size(headers: &HeaderMap, limit: usize) -> Result<(), Refused> {
    // Name, value, and the four bytes between and behind them.
    let size: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if size <= limit {
        return Ok(());
    }
    let message = format!("The request's headers are larger than {limit} bytes together (limits.headers).");
    Err(Refused::caller(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "headers_too_large", message))
}

fn once<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h HeaderValue>, Refused> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        let message = format!("Header {name} is sent more than once.");
        return Err(Refused::caller(StatusCode::BAD_REQUEST, "duplicate_header", message));
    }
    Ok(first)
}
