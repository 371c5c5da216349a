//! Responses of legacy servers as modern callers expect them (X43, X44).

use super::Change;
use crate::protocol::envelope::{Outcome, Response, Span};
use crate::protocol::method::Method;
use crate::protocol::object::Object;

/// What must change in a legacy server's response to `method`.
pub fn to_modern(method: &Method, response: &Response) -> Vec<Change> {
    match response.outcome() {
        Outcome::Result(place) if response.result().is_some_and(|r| r.starts_with('{')) => {
            vec![opened(method, response, place)]
        }
        Outcome::Result(_) => Vec::new(),
        Outcome::Error(_) => code(response).into_iter().collect(),
    }
}

/// Members put first into a result: that it is complete (M12), and how it may be cached (K1, K6).
fn opened(method: &Method, response: &Response, place: Span) -> Change {
    let hints = match method {
        Method::ResourcesRead => r#","ttlMs":0,"cacheScope":"private""#,
        _ => "",
    };
    let empty = response.result().is_some_and(|r| r.trim_start_matches('{').trim_start().starts_with('}'));
    let comma = if empty { "" } else { "," };
    let at = place.start + 1;
    (Span { start: at, end: at }, format!(r#""resultType":"complete"{hints}{comma}"#))
}

/// -32002 is not for modern callers: what it says is -32602 there.
fn code(response: &Response) -> Option<Change> {
    let raw = Object::parse(response.error()?).ok()?.get("code")?;
    (raw == "-32002").then(|| (Span::of(raw, response.bytes()), "-32602".to_owned()))
}
