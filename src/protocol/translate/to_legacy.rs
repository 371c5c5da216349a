//! Responses of modern servers as legacy callers expect them (X19, X21 to X23).

use super::members::{cut, put_first};
use super::{Answered, Change, content};
use crate::protocol::envelope::Span;
use crate::protocol::meta;
use crate::protocol::method::Method;
use crate::protocol::object::{Object, items, may_say, quoted};
use crate::protocol::revision::Revision;

/// A legacy caller who waits for a modern server's response.
#[derive(Clone, Copy, Debug)]
pub struct ToLegacy<'a> {
    /// What it asked for.
    pub method: &'a Method,
    /// The revision of its session.
    pub revision: Revision,
    /// The configured name of the server.
    pub server: &'a str,
}

/// Members that results have in the modern era only (X19).
const MODERN: [&str; 3] = ["resultType", "ttlMs", "cacheScope"];

// === impl ToLegacy ===

impl ToLegacy<'_> {
    /// What must change in `response`. `uris` are changes of URIs in it, decided on before; those of them that still
    /// hold are among what is given back.
    pub fn changes(&self, answered: &Answered<'_>, uris: Vec<Change>) -> Vec<Change> {
        let response = answered.response;
        let mut changes = match (response.result(), response.error()) {
            (Some(result), _) => self.result(answered, result, &uris),
            (_, Some(error)) => self.error(response.bytes(), error),
            (None, None) => Vec::new(),
        };
        let held: Vec<Change> =
            uris.into_iter().filter(|uri| !changes.iter().any(|c| covers(c.0, uri.0))).collect();
        changes.extend(held);
        changes
    }

    fn result(&self, answered: &Answered<'_>, raw: &str, uris: &[Change]) -> Vec<Change> {
        let whole = answered.response.bytes();
        // Bytes first: a large result is not read again for nothing.
        let says = |word: &str| may_say(raw, word);
        let structured = *self.method == Method::ToolsCall && says("\"structuredContent\"");
        let unknown_blocks = matches!(self.method, Method::ToolsCall | Method::PromptsGet)
            && !content::knows_all(self.revision)
            && (says("\"audio\"") || says("\"resource_link\""));
        let reserved = says(meta::RESERVED);
        if !(structured || unknown_blocks || reserved || MODERN.into_iter().any(says)) {
            return Vec::new();
        }
        let Some(result) = answered.members() else { return Vec::new() };
        let unfit = structured && self.is_unfit(result);
        let meta = result.get("_meta").filter(|_| reserved);
        let meta = meta.and_then(|raw| Some((raw, Object::parse(raw).ok()?)));
        let is_reserved = |name: &str| name.starts_with(meta::RESERVED);
        // A `_meta` of which nothing is left goes as a whole.
        let meta_goes = meta.as_ref().is_some_and(|(_, meta)| {
            let mut names = meta.iter().map(|(name, _)| name).peekable();
            names.peek().is_some() && names.all(is_reserved)
        });
        let goes = |name: &str| {
            MODERN.contains(&name) || (meta_goes && name == "_meta") || (unfit && name == "structuredContent")
        };
        let mut changes = cut(whole, raw, result, goes);
        if let Some((raw, meta)) = meta.filter(|_| !meta_goes) {
            changes.extend(cut(whole, raw, &meta, is_reserved));
        }
        if unfit {
            changes.extend(in_its_place(whole, raw, result, goes));
        }
        if unknown_blocks {
            let blocks = content::blocks(self.method, result);
            changes.extend(blocks.into_iter().flat_map(|b| content::block(whole, b, self.revision, uris)));
        }
        changes
    }

    /// X22: before 2025-06-18 there is no structured content, and until 2025-11-25 it is an object.
    fn is_unfit(&self, result: &Object<'_>) -> bool {
        let content = result.get("structuredContent");
        content.is_some_and(|raw| self.revision < Revision::V2025_06_18 || !raw.starts_with('{'))
    }

    /// X21
    fn error(&self, whole: &[u8], raw: &str) -> Vec<Change> {
        let Ok(error) = Object::parse(raw) else { return Vec::new() };
        let (Some(code), server) = (error.get("code"), self.server) else { return Vec::new() };
        let code_place = Span::of(code, whole);
        let why = match code {
            "-32602" if *self.method == Method::ResourcesRead => {
                return vec![(code_place, "-32002".to_owned())];
            }
            "-32021" => {
                let missing = required(&error).unwrap_or_else(|| "one that it does not name".to_owned());
                format!(
                    "Server `{server}` needs a client capability that this client did not declare: {missing}."
                )
            }
            "-32020" | "-32022" => format!("Server `{server}` and the gateway do not understand each other."),
            _ => return Vec::new(),
        };
        let mut changes = vec![(code_place, "-32603".to_owned())];
        if let Some(message) = error.get("message") {
            let said = error.text("message").unwrap_or_default();
            let text = if said.is_empty() { why } else { format!("{why} It says: {said}") };
            changes.push((Span::of(message, whole), quoted(&text)));
        }
        changes
    }
}

/// The names of the capabilities that `error` asks for: `elicitation.url`.
fn required(error: &Object<'_>) -> Option<String> {
    let data = Object::parse(error.get("data")?).ok()?;
    let all = Object::parse(data.get("requiredCapabilities")?).ok()?;
    let mut names = Vec::new();
    for (name, raw) in all.iter() {
        let parts = Object::parse(raw).unwrap_or_default();
        let before = names.len();
        names.extend(parts.iter().map(|(part, _)| format!("{name}.{part}")));
        if names.len() == before {
            names.push(name.to_owned());
        }
    }
    (!names.is_empty()).then(|| names.join(", "))
}

/// A text block for structured content that goes, if the result would else say nothing.
fn in_its_place(whole: &[u8], raw: &str, result: &Object<'_>, goes: impl Fn(&str) -> bool) -> Option<Change> {
    let structured = result.get("structuredContent")?;
    let block = format!(r#"{{"type":"text","text":{}}}"#, quoted(structured));
    match result.get("content") {
        Some(content) if items(content).is_some_and(|blocks| blocks.is_empty()) => {
            Some((Span::of(content, whole), format!("[{block}]")))
        }
        Some(_) => None,
        None => {
            let member = format!(r#""content":[{block}]"#);
            let (place, mut text) = put_first(whole, raw, &member);
            if result.iter().all(|(name, _)| goes(name)) {
                text.truncate(member.len());
            }
            Some((place, text))
        }
    }
}

fn covers(outer: Span, inner: Span) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

#[cfg(test)]
mod tests;
