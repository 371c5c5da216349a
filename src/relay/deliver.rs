//! Writing a server's response for the caller: its id, its URIs, and the words of the caller's era.

use super::route::Route;
use super::serving::Serving;
use super::uris::uris_in;
use crate::protocol::edit::{Edit, Text, replaced};
use crate::protocol::envelope::Response;
use crate::protocol::revision::Era;
use crate::protocol::translate::{self, Change};

/// The response as the caller expects it, from a server of `era`, with some more changed.
pub(super) fn deliver(
    serving: Serving<'_>,
    route: &Route,
    response: &Response,
    era: Era,
    more: Vec<Change>,
) -> Text {
    let request = serving.request;
    let mut changes = uris_in(serving, route, response);
    changes.extend(more);
    match (serving.session.revision().era(), era) {
        (Era::Legacy, Era::Legacy) | (Era::Modern, Era::Modern) => {}
        (Era::Modern, Era::Legacy) => changes.extend(translate::to_modern(request.method(), response)),
        (Era::Legacy, Era::Modern) => changes.extend(translate::to_legacy(request.method(), response)),
    }
    if changes.is_empty() {
        return replaced(response.bytes(), response.id_span(), request.id());
    }
    let mut edit = Edit::of(response.bytes()).replace(response.id_span(), request.id());
    for (place, text) in changes {
        edit = edit.replace_owned(place, text);
    }
    edit.finish_text(response.bytes())
}
