//! Writing a server's response for the caller: its id, its URIs, and the words of the caller's era.

use super::rounds::{bad_answer, declares_all};
use super::route::Route;
use super::serving::Serving;
use super::uris::uris_in;
use crate::protocol::edit::{Edit, Text, replaced};
use crate::protocol::envelope::Response;
use crate::protocol::error::{Code, Layer, RpcError};
use crate::protocol::method::Method;
use crate::protocol::revision::Era;
use crate::protocol::translate::wanted::requests;
use crate::protocol::translate::{
    Answered, Change, NoResult, Passing, Scope, ToLegacy, hints, modern_result, to_modern,
};

/// The response as the caller expects it, from a server of `era`, with some more changed.
pub(super) fn deliver(
    serving: Serving<'_>,
    route: &Route,
    response: &Response,
    era: Era,
    more: Vec<Change>,
) -> Text {
    let Serving { request, session, .. } = serving;
    let answered = Answered::new(response);
    let mut changes = uris_in(serving, route, &answered);
    changes.extend(more);
    match (session.revision().era(), era) {
        (Era::Legacy, Era::Legacy) => {}
        (Era::Modern, Era::Modern) => match passing(serving, route, &answered) {
            Ok(change) => {
                changes.extend(change);
                if *request.method() == Method::ResourcesRead {
                    // What goes by other names here, or is one part of many, is nobody's but the caller's (K5).
                    let as_is = serving.endpoint.shows_all_as_is();
                    changes.extend(hints(&answered, if as_is { Scope::AsSaid } else { Scope::Private }));
                }
            }
            Err(error) => return refused(serving, route, &error),
        },
        _ if response.result().is_some_and(|result| !result.starts_with('{')) => {
            return refused(serving, route, &unusable(&route.target.server.name, &NoResult::Unreadable));
        }
        (Era::Modern, Era::Legacy) => changes.extend(to_modern(request.method(), &answered)),
        (Era::Legacy, Era::Modern) => {
            let (revision, server) = (session.revision(), route.target.server.name.as_str());
            changes = ToLegacy { method: request.method(), revision, server }.changes(&answered, changes);
        }
    }
    if changes.is_empty() {
        return replaced(response.bytes(), response.id_span(), request.id());
    }
    let edit = Edit::of(response.bytes()).replace(response.id_span(), request.id());
    edit.replace_all(changes).finish_text(response.bytes())
}

/// The error that a caller gets in place of a server's answer.
fn refused(serving: Serving<'_>, route: &Route, error: &RpcError) -> Text {
    let (server, id) = (route.target.server.name.as_str(), serving.outlet.request_id());
    tracing::warn!(request.id = %id, server, reason = error.reason, "a server's answer cannot be used: {}", error.message);
    error.to_message(Some(serving.request.id()), Some(&id)).into()
}

/// What a result of one modern server lacks for its modern caller, who may be asked only what it declared (R4).
fn passing(serving: Serving<'_>, route: &Route, answered: &Answered<'_>) -> Result<Option<Change>, RpcError> {
    let server = route.target.server.name.as_str();
    match modern_result(answered).map_err(|why| unusable(server, &why))? {
        Passing::AsIs => Ok(None),
        Passing::Completed(change) => Ok(Some(change)),
        Passing::Wanting => {
            let wanted = answered.members().map_or_else(|| Ok(Vec::new()), requests);
            let wanted = wanted.map_err(|why| bad_answer(server, why))?;
            declares_all(server, serving.session.greeting.class, &wanted).map(|()| None)
        }
    }
}

/// M13: whatever the server meant, no caller of its era can tell.
fn unusable(server: &str, why: &NoResult) -> RpcError {
    let message = format!("Server `{server}` answered with {why}; what it did is unknown.");
    RpcError::new(Code::Internal, "bad_answer", message).at(server, Layer::Call)
}
