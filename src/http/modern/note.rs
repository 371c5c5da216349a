//! Notifications of modern callers. The protocol has none over HTTP, so a sound one is taken and means nothing: not
//! even `notifications/cancelled`, since an id that a caller chose must not let it end another's work (F16).

use http::HeaderMap;

use super::{meta, mirrored};
use crate::http::headers::{self, era_of_header};
use crate::http::reply::Refused;
use crate::protocol::envelope::Notification;
use crate::protocol::header::{MCP_METHOD, PROTOCOL_VERSION};
use crate::protocol::object::Object;
use crate::protocol::revision::Era;

/// The era of a notification, by its claim, else by its header (E7); a modern one is sound.
///
/// # Errors
/// 400 if what it says of itself is not served, or not the same in header and body (T56, F13).
pub(in crate::http) fn era_of_note(headers: &HeaderMap, notification: &Notification) -> Result<Era, Refused> {
    let said = era_of_header(headers);
    if said == Era::Legacy && !Era::may_be_claimed_by(notification.params()) {
        return Ok(Era::Legacy);
    }
    let params = Object::parse(notification.params().unwrap_or("{}")).ok();
    let meta = params.as_ref().and_then(|params| meta::of(params).ok()).unwrap_or_default();
    if said == Era::Legacy && !meta::claims(&meta) {
        return Ok(Era::Legacy);
    }
    mirrored::once_each(headers)?;
    let header = headers.get(PROTOCOL_VERSION);
    if meta::claims(&meta) {
        let version =
            meta.version().ok_or_else(|| meta::incomplete("the version in params._meta is no string"))?;
        if header.is_some() {
            mirrored::version(headers, &version)?;
        }
        headers::served(&version)?;
    } else if let Some(header) = header {
        headers::served(&String::from_utf8_lossy(header.as_bytes().trim_ascii()))?;
    }
    if headers.contains_key(MCP_METHOD) {
        mirrored::method(headers, notification.method())?;
    }
    Ok(Era::Modern)
}
