//! Content blocks of results, and those that older callers do not know (X23).

use super::Change;
use crate::protocol::envelope::Span;
use crate::protocol::method::Method;
use crate::protocol::object::{Object, items, quoted};
use crate::protocol::revision::Revision;

/// The content blocks of the result of a call, a task or a prompt, each raw.
pub fn blocks<'a>(method: &Method, result: &Object<'a>) -> Vec<&'a str> {
    let of = |content: &'a str| {
        if content.starts_with('{') { vec![content] } else { items(content).unwrap_or_default() }
    };
    match method {
        Method::PromptsGet => {
            let messages = result.get("messages").and_then(items).unwrap_or_default();
            let contents = messages.into_iter().filter_map(|m| Object::parse(m).ok()?.get("content"));
            contents.flat_map(of).collect()
        }
        // What a task of the modern era came to stands inside of what is said of the task (J3).
        Method::TasksGet => {
            let result = result.get("result").and_then(|raw| Object::parse(raw).ok());
            result.and_then(|r| r.get("content")).map(of).unwrap_or_default()
        }
        _ => result.get("content").map(of).unwrap_or_default(),
    }
}

/// Whether callers of `revision` know all types of content, so that no block need be looked at.
pub(super) fn knows_all(revision: Revision) -> bool {
    revision >= Revision::V2025_06_18
}

/// What must change in one block of `whole` for callers of `revision`; nothing if they know its type. `uris` are
/// places of URIs and what stands there from now on.
pub(super) fn block(whole: &[u8], raw: &str, revision: Revision, uris: &[Change]) -> Vec<Change> {
    let Ok(block) = Object::parse(raw) else { return Vec::new() };
    match block.text("type").as_deref() {
        Some("audio") if revision < Revision::V2025_03_26 => embedded(whole, raw, &block),
        Some("resource_link") if !knows_all(revision) => vec![linked(whole, raw, &block, uris)],
        _ => Vec::new(),
    }
}

/// Audio as an embedded resource; its data stays where it is, so that it is not copied.
fn embedded(whole: &[u8], raw: &str, block: &Object<'_>) -> Vec<Change> {
    let (whole_block, Some(data)) = (Span::of(raw, whole), block.get("data")) else { return Vec::new() };
    let data = Span::of(data, whole);
    let mime = block.get("mimeType").unwrap_or(r#""application/octet-stream""#);
    let head = format!(
        r#"{{"type":"resource",{}"resource":{{"uri":"mcpgate:audio","mimeType":{mime},"blob":"#,
        annotations(block)
    );
    vec![
        (Span { start: whole_block.start, end: data.start }, head),
        (Span { start: data.end, end: whole_block.end }, "}}".to_owned()),
    ]
}

/// A link as text with its name and its URI.
fn linked(whole: &[u8], raw: &str, block: &Object<'_>, uris: &[Change]) -> Change {
    let uri = block.get("uri").unwrap_or_default();
    let anew = if uri.is_empty() { None } else { uris.iter().find(|(at, _)| *at == Span::of(uri, whole)) };
    let uri = crate::protocol::object::text(anew.map_or(uri, |(_, new)| new)).unwrap_or_default();
    let name = block.text("title").or_else(|| block.text("name"));
    let text = name.map_or_else(|| uri.to_string(), |name| format!("{name}: {uri}"));
    let written = format!(r#"{{"type":"text",{}"text":{}}}"#, annotations(block), quoted(&text));
    (Span::of(raw, whole), written)
}

fn annotations(block: &Object<'_>) -> String {
    block.get("annotations").map_or_else(String::new, |raw| format!(r#""annotations":{raw},"#))
}
