//! Writing a server's response for the caller: its id, its URIs, and the words of the caller's era.

use super::route::Route;
use super::serving::Serving;
use super::uris::uris_in;
use crate::protocol::edit::{Edit, Text, replaced};
use crate::protocol::envelope::Response;
use crate::protocol::revision::Era;
use crate::protocol::translate::{ToLegacy, to_modern};

/// The response as the caller expects it, from a server of `era`.
pub(super) fn deliver(serving: Serving<'_>, route: &Route, response: &Response, era: Era) -> Text {
    let Serving { request, session, .. } = serving;
    let mut changes = uris_in(serving, route, response);
    match (session.revision().era(), era) {
        (Era::Legacy, Era::Legacy) | (Era::Modern, Era::Modern) => {}
        (Era::Modern, Era::Legacy) => changes.extend(to_modern(request.method(), response)),
        (Era::Legacy, Era::Modern) => {
            let (revision, server) = (session.revision(), route.target.server.name.as_str());
            changes = ToLegacy { method: request.method(), revision, server }.changes(response, changes);
        }
    }
    if changes.is_empty() {
        return replaced(response.bytes(), response.id_span(), request.id());
    }
    let edit = Edit::of(response.bytes()).replace(response.id_span(), request.id());
    edit.replace_all(changes).finish_text(response.bytes())
}
