//! Results that a modern server gives to a modern caller: they pass as they are, if they say what they are (M12, M13).

use super::members::put_first;
use super::{Answered, Change};
use crate::protocol::object::{may_say, text};

/// How nearly every result of the era begins.
const USUAL: &str = r#"{"resultType":"complete""#;
const MENTION: &str = r#""resultType""#;
const COMPLETE: &str = r#""resultType":"complete""#;

/// A result that no caller can make anything of; completes "answered with".
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoResult {
    /// Of a type that no revision or extension known here has (M13).
    #[error("a result of the unknown type {0:?}")]
    UnknownType(String),
    /// It cannot be read.
    #[error("a result that is no object, or names a member twice")]
    Unreadable,
}

/// How a result passes.
#[derive(Debug, PartialEq, Eq)]
pub enum Passing {
    /// As it is.
    AsIs,
    /// With the type that it lacks: without one it is complete, and must say so to a caller of this era.
    Completed(Change),
    /// As it is, if its caller may be asked what it wants to know (R4).
    Wanting,
}

/// How the result of a response passes.
///
/// # Errors
/// [`NoResult`]
pub fn modern_result(answered: &Answered<'_>) -> Result<Passing, NoResult> {
    let Some(result) = answered.result() else { return Ok(Passing::AsIs) };
    // What stands behind the usual beginning may say otherwise.
    if result.strip_prefix(USUAL).is_some_and(|rest| !may_say(rest, MENTION)) {
        return Ok(Passing::AsIs);
    }
    let missing = || Ok(Passing::Completed(put_first(answered.response.bytes(), result, COMPLETE)));
    if result.starts_with('{') && !may_say(result, MENTION) {
        return missing();
    }
    let object = answered.members().ok_or(NoResult::Unreadable)?;
    let Some(raw) = object.get("resultType") else { return missing() };
    match text(raw).as_deref() {
        Some("complete" | "task") => Ok(Passing::AsIs),
        Some("input_required") => Ok(Passing::Wanting),
        other => Err(NoResult::UnknownType(other.unwrap_or(raw).chars().take(64).collect())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::edit::Edit;
    use crate::protocol::envelope::Message;

    fn delivered(result: &str) -> Result<String, NoResult> {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
        let Ok(Message::Response(response)) = Message::parse(text.into()) else { panic!("{result}") };
        let edit = Edit::of(response.bytes());
        let whole = match modern_result(&Answered::new(&response))? {
            Passing::Completed((at, new)) => edit.replace_owned(at, new).finish(),
            Passing::AsIs | Passing::Wanting => edit.finish(),
        };
        let whole = std::str::from_utf8(&whole).unwrap();
        Ok(whole[r#"{"jsonrpc":"2.0","id":1,"result":"#.len()..whole.len() - 1].to_owned())
    }

    #[test]
    fn a_result_that_says_its_type_passes() {
        for result in [
            r#"{"resultType":"complete","content":[]}"#,
            r#"{"content":[], "resultType" : "complete"}"#,
            r#"{"resultType":"input_required","requestState":"x"}"#,
            r#"{"resultType":"task","taskId":"1"}"#,
        ] {
            assert_eq!(delivered(result).as_deref(), Ok(result));
        }
    }

    /// M12, M13: without a type it is complete, wherever else the word may stand.
    #[test]
    fn a_result_without_a_type_is_complete() {
        let typed = |rest: &str| Ok(format!(r#"{{"resultType":"complete"{rest}"#));
        assert_eq!(delivered("{}"), typed("}"));
        assert_eq!(delivered(r#"{"content":[]}"#), typed(r#","content":[]}"#));
        let inside = r#""structuredContent":{"resultType":"odd"}}"#;
        assert_eq!(delivered(&format!("{{{inside}")), typed(&format!(",{inside}")));
    }

    /// M13
    #[test]
    fn an_unknown_type_is_no_result() {
        let unknown = |said: &str| Err(NoResult::UnknownType(said.into()));
        assert_eq!(delivered(r#"{"resultType":"partial"}"#), unknown("partial"));
        assert_eq!(delivered(r#"{"resultType":"complete2"}"#), unknown("complete2"));
        assert_eq!(delivered(r#"{"resultType":7}"#), unknown("7"));
        assert_eq!(delivered("null"), Err(NoResult::Unreadable));
        assert_eq!(delivered(r#"{"resultType":"odd","resultType":"complete"}"#), Err(NoResult::Unreadable));
        let twice = r#"{"resultType":"complete","content":[],"result\u0054ype":"input_required"}"#;
        assert_eq!(delivered(twice), Err(NoResult::Unreadable));
    }
}
