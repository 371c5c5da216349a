//! URIs inside results: remembered, so that they can be read, and written so that they lead back to their server.

use super::route::Route;
use super::serving::Serving;
use crate::catalog::view::explicit_uri;
use crate::catalog::{Kind, Naming};
use crate::protocol::envelope::Span;
use crate::protocol::method::Method;
use crate::protocol::object::{Object, items, quoted, text};
use crate::protocol::translate::{Answered, Change, content};
use crate::store::lock;

/// Looks at the URIs inside a result. Those that no list need have are remembered (G8); those that would lead a
/// caller to another server that has the same are written in the form that names their server.
pub(super) fn uris_in(serving: Serving<'_>, route: &Route, answered: &Answered<'_>) -> Vec<Change> {
    if serving.endpoint.naming != Naming::Qualified {
        return Vec::new();
    }
    // Bytes first: most results have no URI, and a large one is not worth a second look.
    let has_resource = || memchr::memmem::find(answered.response.bytes(), b"\"resource").is_some();
    let look: fn(Serving<'_>, &Route, &[u8], &Object<'_>) -> Vec<Change> = match serving.request.method() {
        Method::ResourcesRead if route.rename.is_some() => read_contents,
        Method::ToolsCall | Method::PromptsGet | Method::TasksResult | Method::TasksGet if has_resource() => {
            content_blocks
        }
        _ => return Vec::new(),
    };
    let whole = answered.response.bytes();
    answered.members().map_or_else(Vec::new, |result| look(serving, route, whole, result))
}

fn content_blocks(serving: Serving<'_>, route: &Route, whole: &[u8], result: &Object<'_>) -> Vec<Change> {
    let Serving { session, endpoint, request, .. } = serving;
    let server = route.target.server.name.as_str();
    let listed = endpoint.last_view(super::lists::class_of(session), Kind::Resources);
    let mut rewrites = Vec::new();
    let blocks = content::blocks(request.method(), result);
    for raw in blocks.into_iter().filter_map(uri_of) {
        let Some(uri) = text(raw) else { continue };
        let listed = listed.as_ref().and_then(|view| view.target(&uri)).map(|t| t.server.name.clone());
        let mut seen = lock(&session.attached.seen_uris);
        let claimed = listed.or_else(|| seen.server_of(&uri).map(|s| s.to_string()));
        match claimed {
            Some(other) if other != server => {
                let rewritten = quoted(&explicit_uri(server, &uri));
                rewrites.push((Span::of(raw, whole), rewritten));
            }
            _ => seen.add(&uri, server),
        }
    }
    rewrites
}

/// What was read by another URI than the server's own is given back under it.
fn read_contents(serving: Serving<'_>, route: &Route, whole: &[u8], result: &Object<'_>) -> Vec<Change> {
    let Some((place, _)) = &route.rename else { return Vec::new() };
    let callers = place.text(serving.request.bytes());
    let contents = result.get("contents").and_then(items).unwrap_or_default();
    let raws = contents.into_iter().filter_map(|c| Object::parse(c).ok()?.get("uri"));
    let same = raws.filter(|raw| text(raw).is_some_and(|uri| *uri == *route.target.own));
    same.map(|raw| (Span::of(raw, whole), callers.to_owned())).collect()
}

/// The URI in a resource link or an embedded resource, raw.
fn uri_of(block: &str) -> Option<&str> {
    let block = Object::parse(block).ok()?;
    match block.text("type").as_deref() {
        Some("resource_link") => block.get("uri"),
        Some("resource") => Object::parse(block.get("resource")?).ok()?.get("uri"),
        _ => None,
    }
}
