//! Requests of one era as servers of the other expect them: their `_meta`, and what a retry brings.

use super::Change;
use super::members::{cut, put_first};
use crate::protocol::envelope::{Request, Span};
use crate::protocol::meta;
use crate::protocol::object::{Object, quoted};

/// What a modern server is told with a request of a legacy caller.
#[derive(Clone, Copy, Debug, Default)]
pub struct Told<'a> {
    /// Members of `_meta` that are the same for all requests of a session, raw (X3, X4).
    pub always: &'a str,
    /// The level of `logging/setLevel`, if one was set (X7).
    pub level: Option<&'a str>,
    /// The progress token, raw, if the caller gave one (X5).
    pub token: Option<&'a str>,
    /// Members of `params` that a retry brings, raw; empty in a first try (R3).
    pub input: &'a str,
}

/// The members of `params` that only a retry has, and a caller of the legacy era never (R3).
const OF_RETRIES: [&str; 2] = ["inputResponses", "requestState"];

/// What must change in a legacy caller's request for a modern server; `place` is where its `_meta` is, if it has one.
pub fn for_modern(request: &Request, place: Option<Span>, told: &Told<'_>) -> Vec<Change> {
    let meta = meta_for_modern(request, place, told);
    let Some(place) = place else {
        let comma = if told.input.is_empty() { "" } else { "," };
        return in_params(request, told, &format!(r#""_meta":{meta}{comma}{}"#, told.input));
    };
    let mut changes = vec![(place, meta)];
    if !told.input.is_empty() {
        changes.extend(in_params(request, told, told.input));
    }
    changes
}

/// A modern caller's `_meta` at `place` as a legacy server takes it; `token` is raw, if the caller gave one.
///
/// A legacy server knows none of the keys that the modern era reserves (X32, X39).
pub fn for_legacy(request: &Request, place: Span, token: Option<&str>) -> Change {
    let mut members = Members::default();
    members.kept(request, Some(place));
    members.token(token);
    (place, members.into_object())
}

/// A modern caller's request without what only a retry brings: a legacy server has asked for none of it (R6).
pub fn without_answers(request: &Request) -> Vec<Change> {
    let mentions = |name: &str| memchr::memmem::find(request.bytes(), name.as_bytes()).is_some();
    let raw = request.params().filter(|_| OF_RETRIES.into_iter().any(mentions));
    let Some(raw) = raw else { return Vec::new() };
    let params = Object::parse(raw).unwrap_or_default();
    cut(request.bytes(), raw, &params, |name| OF_RETRIES.contains(&name))
}

/// X24: what completion was asked for beside the argument itself is a word of 2025-06-18.
pub fn without_context(request: &Request) -> Vec<Change> {
    let Some(raw) = request.params() else { return Vec::new() };
    let params = Object::parse(raw).unwrap_or_default();
    cut(request.bytes(), raw, &params, |name| name == "context")
}

fn meta_for_modern(request: &Request, place: Option<Span>, told: &Told<'_>) -> String {
    let mut members = Members(told.always.to_owned());
    if let Some(level) = told.level {
        members.add(meta::LOG_LEVEL, &quoted(level));
    }
    members.kept(request, place);
    members.token(told.token);
    members.into_object()
}

/// Puts `written` first into `params`, wherever those are.
fn in_params(request: &Request, told: &Told<'_>, written: &str) -> Vec<Change> {
    let whole = request.bytes();
    let Some(raw) = request.params() else { return vec![new_params(request, written)] };
    if told.input.is_empty() {
        return vec![put_first(whole, raw, written)];
    }
    let params = Object::parse(raw).unwrap_or_default();
    let doomed = |name: &str| OF_RETRIES.contains(&name);
    let mut changes = cut(whole, raw, &params, doomed);
    let (place, mut text) = put_first(whole, raw, written);
    if params.iter().all(|(name, _)| doomed(name)) {
        text.truncate(written.len());
    }
    changes.push((place, text));
    changes
}

/// Gives `params` to a request that has none, or has null.
fn new_params(request: &Request, written: &str) -> Change {
    let whole = request.bytes();
    let text = std::str::from_utf8(whole).unwrap_or_default();
    if let Some(null) = Object::parse(text).ok().and_then(|message| message.get("params")) {
        return (Span::of(null, whole), format!("{{{written}}}"));
    }
    let end = whole.iter().rposition(|b| *b == b'}').unwrap_or(whole.len());
    (Span { start: end, end }, format!(r#","params":{{{written}}}"#))
}

/// Members of an object as they are written, without the braces.
#[derive(Default)]
struct Members(String);

// === impl Members ===

impl Members {
    fn add(&mut self, name: &str, raw: &str) {
        if !self.0.is_empty() {
            self.0.push(',');
        }
        self.0.push_str(&quoted(name));
        self.0.push(':');
        self.0.push_str(raw);
    }

    /// The members of a caller's `_meta` that pass: what is reserved is not the caller's to say (G21), and the
    /// progress token is ours.
    fn kept(&mut self, request: &Request, place: Option<Span>) {
        let raw = place.map(|place| place.text(request.bytes()));
        let all = raw.and_then(|raw| Object::parse(raw).ok()).unwrap_or_default();
        for (name, raw) in all.iter() {
            if !name.starts_with(meta::RESERVED) && name != meta::PROGRESS_TOKEN {
                self.add(name, raw);
            }
        }
    }

    fn token(&mut self, token: Option<&str>) {
        if let Some(token) = token {
            self.add(meta::PROGRESS_TOKEN, token);
        }
    }

    fn into_object(mut self) -> String {
        self.0.insert(0, '{');
        self.0.push('}');
        self.0
    }
}

#[cfg(test)]
mod tests;
