//! Where the ids of tasks stand in messages, of both eras, and taking `task` out of a request.

use super::envelope::{Request, Span};
use super::meta::RELATED_TASK;
use super::method::Method;
use super::object::{Object, may_say, quoted, text};
use super::translate::{Change, without};

/// What a result of `tools/call` that is a task says of its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Created<'a> {
    /// `resultType: "task"`, of the extension of the modern era (J2); the raw id, if there is one.
    Modern(Option<&'a str>),
    /// `task`, of 2025-11-25; the raw id.
    Legacy(&'a str),
}

/// What a result of `tools/call` says, if it is a task. Most results are none, which a look at their bytes tells.
pub fn created(result: &str) -> Option<Created<'_>> {
    let result = may_say(result, "\"task\"").then(|| Object::parse(result).ok()).flatten()?;
    if result.text("resultType").is_some_and(|t| t == "task") {
        return Some(Created::Modern(result.get("taskId")));
    }
    Object::parse(result.get("task")?).ok()?.get("taskId").map(Created::Legacy)
}

/// The raw id in an object that is a task, or in the params of a message about one.
pub fn id_in(object: &str) -> Option<&str> {
    Object::parse(object).ok()?.get("taskId")
}

/// The raw id of the task that an object with `_meta` says it belongs to (M9).
pub fn related(object: &str) -> Option<&str> {
    memchr::memmem::find(object.as_bytes(), RELATED_TASK.as_bytes())?;
    related_in_meta(Object::parse(object).ok()?.get("_meta")?)
}

/// The same in `_meta` itself.
pub fn related_in_meta(meta: &str) -> Option<&str> {
    memchr::memmem::find(meta.as_bytes(), RELATED_TASK.as_bytes())?;
    id_in(Object::parse(meta).ok()?.get(RELATED_TASK)?)
}

/// The change that puts `new` in the place of a raw id within `whole`.
pub fn written(raw: &str, whole: &[u8], new: &str) -> Change {
    (Span::of(raw, whole), quoted(new))
}

/// What to cut from a call so that it is none that becomes a task.
pub fn without_task(request: &Request) -> Vec<Change> {
    let Some(raw) = request.params() else { return Vec::new() };
    if memchr::memmem::find(raw.as_bytes(), b"\"task\"").is_none() {
        return Vec::new();
    }
    Object::parse(raw)
        .map(|params| without(request.bytes(), raw, &params, |n| n == "task"))
        .unwrap_or_default()
}

/// The questions in a result that a task of the modern era waits for: each method, and its raw params.
pub fn questions(result: &str) -> Vec<(Method, Option<&str>)> {
    let of = |raw| {
        let question = Object::parse(raw).ok()?;
        Some((Method::from(question.text("method")?), question.get("params")))
    };
    let all = Object::parse(result).ok().and_then(|r| Object::parse(r.get("inputRequests")?).ok());
    all.iter().flat_map(Object::iter).filter_map(|(_, raw)| of(raw)).collect()
}

/// Whether a raw id is this one.
pub fn is(raw: &str, id: &str) -> bool {
    text(raw).is_some_and(|text| text == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_told_from_other_results() {
        let modern = r#"{"resultType":"task","taskId":"t1","status":"working"}"#;
        assert_eq!(created(modern), Some(Created::Modern(Some("\"t1\""))));
        assert_eq!(created(r#"{"task":{"taskId":"t1"}}"#), Some(Created::Legacy("\"t1\"")));
        for other in [
            r#"{"content":[{"type":"text","text":"\"task\""}]}"#,
            r#"{"structuredContent":{"task":{"taskId":"t1"}}}"#,
            r#"{"resultType":"complete","taskId":"t1"}"#,
            r#"{"task":7}"#,
        ] {
            assert_eq!(created(other), None, "{other}");
        }
    }

    #[test]
    fn what_a_message_belongs_to_stands_in_meta() {
        let text = r#"{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t1"}},"x":1}"#;
        assert_eq!(related(text), Some("\"t1\""));
        assert_eq!(related(r#"{"io.modelcontextprotocol/related-task":{"taskId":"t1"}}"#), None);
    }
}
