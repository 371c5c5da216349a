//! Writing a caller's request for its server: its id, names and progress token, and the `_meta` of the server's era.

use http::HeaderValue;

use super::Session;
use super::extensions::narrowed;
use super::links::hello_of;
use super::route::Route;
use super::serving::Serving;
use crate::protocol::edit::Edit;
use crate::protocol::envelope::{Request, Span};
use crate::protocol::meta;
use crate::protocol::method::Method;
use crate::protocol::mirror;
use crate::protocol::object::{Object, quoted};
use crate::protocol::revision::Era;
use crate::protocol::translate::Change;
use crate::upstream::{Link, Mirror, Outgoing, UpstreamId};

/// The request as `link`'s server expects it, under the id `id`, with some more changed.
pub(super) fn compose(
    serving: Serving<'_>,
    route: &Route,
    link: &Link,
    id: UpstreamId,
    more: Vec<Change>,
) -> Outgoing {
    let Serving { session, endpoint, request, .. } = serving;
    let id_text = id.to_string();
    let mut edit = Edit::of(request.bytes()).replace(request.id_span(), &id_text);
    if let Some((place, name)) = &route.rename {
        edit = edit.replace(*place, name);
    }
    let (caller, server) = (session.revision().era(), link.era());
    edit = match (caller, server) {
        (Era::Legacy, Era::Legacy) | (Era::Modern, Era::Modern) => match &route.token {
            Some((place, _)) => edit.replace(*place, &id_text),
            None => edit,
        },
        (Era::Modern, Era::Legacy) => match route.meta {
            Some(place) => edit.replace_owned(place, legacy_meta(route, request, &id_text)),
            None => edit,
        },
        (Era::Legacy, Era::Modern) => {
            with_meta(edit, route, request, &modern_meta(session, route, request, &id_text))
        }
    };
    if (caller, server) == (Era::Modern, Era::Modern)
        && let Some((place, passes)) = narrowed(endpoint, session.greeting.class, route.meta, request)
    {
        edit = edit.replace_owned(place, passes);
    }
    for (place, text) in more {
        edit = edit.replace_owned(place, text);
    }
    Outgoing {
        message: edit.finish(),
        mirror: (server == Era::Modern).then(|| mirrored(request.method(), route)),
    }
}

/// What the headers of a modern request repeat (T43, T44).
fn mirrored(method: &Method, route: &Route) -> Mirror {
    let named = matches!(
        method,
        Method::ToolsCall
            | Method::PromptsGet
            | Method::ResourcesRead
            | Method::TasksGet
            | Method::TasksUpdate
            | Method::TasksCancel
    );
    let header = |text: &str| HeaderValue::from_str(&mirror::encode(text)).ok();
    Mirror {
        method: header(method.as_str()).unwrap_or_else(|| HeaderValue::from_static("")),
        name: named.then(|| header(&route.target.own)).flatten(),
        params: Vec::new(),
    }
}

/// A caller's `_meta` without what only the modern era knows (X32, X39).
fn legacy_meta(route: &Route, request: &Request, token: &str) -> String {
    members(None, kept(route, request), route.token.as_ref().map(|_| token))
}

/// A caller's `_meta` with what every modern request says (X3, X4); what it reserves and the caller spoofed goes (G21).
fn modern_meta(session: &Session, route: &Route, request: &Request, token: &str) -> String {
    let own = hello_of(session, &route.target.server).meta();
    members(Some(own), kept(route, request), route.token.as_ref().map(|_| token))
}

/// The members of a caller's `_meta` that pass, but for the progress token; each as it stands in an object.
fn kept(route: &Route, request: &Request) -> Vec<String> {
    let Some(raw) = route.meta.map(|place| place.text(request.bytes())) else { return Vec::new() };
    let Ok(all) = Object::parse(raw) else { return Vec::new() };
    let pass = |name: &str| !name.starts_with(meta::RESERVED) && name != meta::PROGRESS_TOKEN;
    all.iter().filter(|(name, _)| pass(name)).map(|(name, raw)| format!("{}:{raw}", quoted(name))).collect()
}

fn members(own: Option<String>, kept: Vec<String>, token: Option<&str>) -> String {
    let token = token.map(|token| format!(r#""{}":{token}"#, meta::PROGRESS_TOKEN));
    let all: Vec<String> = own.into_iter().chain(kept).chain(token).collect();
    format!("{{{}}}", all.join(","))
}

/// Puts `_meta` where it is, or where there is none yet.
fn with_meta<'a>(edit: Edit<'a>, route: &Route, request: &Request, written: &str) -> Edit<'a> {
    if let Some(place) = route.meta {
        return edit.replace_owned(place, written.to_owned());
    }
    let insert =
        |edit: Edit<'a>, at: usize, text: String| edit.replace_owned(Span { start: at, end: at }, text);
    match request.params() {
        Some(params) => {
            let place = Span::of(params, request.bytes());
            let comma = if params.trim_start_matches('{').trim_start().starts_with('}') { "" } else { "," };
            insert(edit, place.start + 1, format!(r#""_meta":{written}{comma}"#))
        }
        None => {
            let end = request.bytes().iter().rposition(|b| *b == b'}').unwrap_or(request.bytes().len());
            insert(edit, end, format!(r#","params":{{"_meta":{written}}}"#))
        }
    }
}
