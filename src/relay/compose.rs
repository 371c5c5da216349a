//! Writing a caller's request for its server: its id, names and progress token, and the `_meta` of the server's era.

use http::HeaderValue;

use super::extensions::narrowed;
use super::presented::presented;
use super::rounds::Input;
use super::route::Route;
use super::serving::Serving;
use crate::protocol::edit::Edit;
use crate::protocol::envelope::Request;
use crate::protocol::method::Method;
use crate::protocol::mirror;
use crate::protocol::revision::{Era, Revision};
use crate::protocol::translate::Change;
use crate::protocol::translate::request::{Told, for_legacy, for_modern, without_answers, without_context};
use crate::upstream::{Link, Mirror, Outgoing, UpstreamId};

/// The request as `link`'s server expects it, under the id `id`; a retry brings `input`. Some `more` is changed in it.
pub(super) fn compose(
    serving: Serving<'_>,
    route: &Route,
    link: &Link,
    id: UpstreamId,
    input: &Input,
    more: Vec<Change>,
) -> Outgoing {
    let Serving { session, endpoint, request, .. } = serving;
    let id = id.to_string();
    let token = route.token.as_ref().map(|_| &*id);
    let mut edit = Edit::of(request.bytes()).replace(request.id_span(), &id);
    if let Some((place, name)) = &route.rename {
        edit = edit.replace(*place, name);
    }
    let era = link.era();
    match (session.revision().era(), era) {
        (Era::Legacy, Era::Legacy) | (Era::Modern, Era::Modern) => {
            if let Some((place, _)) = &route.token {
                edit = edit.replace(*place, &id);
            }
        }
        (Era::Modern, Era::Legacy) => {
            if let Some(place) = route.meta {
                let (place, meta) = for_legacy(request, place, token);
                edit = edit.replace_owned(place, meta);
            }
            edit = edit.replace_all(without_answers(request));
        }
        (Era::Legacy, Era::Modern) => {
            let level = session.log_level();
            let always = &presented(session, &route.target.server).meta;
            let told = Told { always, level: level.as_deref(), token, input: input.members() };
            edit = edit.replace_all(for_modern(request, route.meta, &told));
        }
    }
    if (session.revision().era(), era) == (Era::Modern, Era::Modern)
        && let Some((place, passes)) = narrowed(endpoint, session.greeting.class, route.meta, request)
    {
        edit = edit.replace_owned(place, passes);
    }
    edit = edit.replace_all(more);
    if *request.method() == Method::Complete && link.introduction().revision < Revision::V2025_06_18 {
        edit = edit.replace_all(without_context(request));
    }
    let mirror = if link.mirrors() { mirrored(request, route) } else { None };
    Outgoing { message: edit.finish(), mirror }
}

/// What the headers of a modern request repeat (T43, T44); none if a method of the caller's own cannot stand in one,
/// which its server then says.
fn mirrored(request: &Request, route: &Route) -> Option<Mirror> {
    let header = |text: &str| HeaderValue::from_str(&mirror::encode(text)).ok();
    let method = request.method();
    let named = matches!(
        method,
        Method::ToolsCall
            | Method::PromptsGet
            | Method::ResourcesRead
            | Method::TasksGet
            | Method::TasksUpdate
            | Method::TasksCancel
    );
    let name = if named { header(&route.target.own) } else { None };
    let method = match method {
        Method::Other(own) => header(own)?,
        known => HeaderValue::from_static(known.label()),
    };
    Some(Mirror { method, name, params: Vec::new() })
}
