//! Which request a message of the server is about.

use bytes::Bytes;

use crate::protocol::envelope::{Message, Notification, Response, Span};
use crate::protocol::object::Object;
use crate::upstream::UpstreamId;

/// Whether a response is to the request `id`. An error without an id, on a stream that belongs to one request, is
/// about that.
pub(super) fn answers(response: &Response, id: UpstreamId) -> bool {
    is_id(response.id(), id) || (response.id() == "null" && response.error().is_some())
}

/// Whether a server that cannot count straight may have meant `id` (case-H03).
pub(super) fn is_id(raw: &str, id: UpstreamId) -> bool {
    let number = raw.trim_matches('"');
    #[expect(clippy::cast_precision_loss, reason = "ids are below 2^53, or the spelling must be exact")]
    let meant = id.0 as f64;
    number.parse() == Ok(id.0) || (id.0 < 1 << 53 && number.parse() == Ok(meant))
}

/// The response to `id`, if the text is one but for an id like `1.0` that is no legal one.
pub(super) fn respelled(text: &Bytes, id: UpstreamId) -> Option<Response> {
    let whole = std::str::from_utf8(text).ok()?;
    let raw = Object::parse(whole).ok()?.get("id").filter(|raw| is_id(raw, id))?;
    let place = Span::of(raw, text);
    let mended = [text.get(..place.start)?, id.to_string().as_bytes(), text.get(place.end..)?].concat();
    match Message::parse(mended.into()).ok()? {
        Message::Response(response) => Some(response),
        Message::Request(_) | Message::Notification(_) => None,
    }
}

/// Which call a progress notification is about.
pub(super) fn progress_of(notification: &Notification) -> Option<UpstreamId> {
    let params = Object::parse(notification.params()?).ok()?;
    params.get("progressToken")?.trim_matches('"').parse().ok().map(UpstreamId)
}
