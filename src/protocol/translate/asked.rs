//! Questions of legacy servers as modern callers are asked them, and the answers that may go back (R2, R3, X34).

use bytes::Bytes;

use super::Change;
use super::members::cut;
use crate::protocol::edit::Edit;
use crate::protocol::envelope::Request;
use crate::protocol::meta;
use crate::protocol::method::Method;
use crate::protocol::object::{Object, items};

/// Members of a question's params that 2026-07-28 does not know: the id of a URL elicitation (X15), and what would
/// make a task of the question.
const GONE: [&str; 2] = ["elicitationId", "task"];

/// A question as an entry of `inputRequests`: its method, and its params as the server wrote them but for what
/// 2026-07-28 does not know.
///
/// # Errors
/// Why the params cannot be read.
pub fn input_request(method: &Method, params: Option<&str>) -> Result<String, String> {
    let raw = params.unwrap_or("{}");
    let params = Object::parse(raw).map_err(|e| format!("params cannot be read: {e}"))?;
    let meta_raw = params.get("_meta");
    let meta = meta_raw.and_then(|raw| Object::parse(raw).ok()).unwrap_or_default();
    let keeps_meta = meta.iter().any(|(name, _)| !is_gone_meta(name));
    let gone = |name: &str| GONE.contains(&name) || (name == "_meta" && !keeps_meta);
    let mut changes = cut(raw.as_bytes(), raw, &params, gone);
    if let Some(meta_raw) = meta_raw.filter(|_| keeps_meta) {
        changes.extend(cut(raw.as_bytes(), meta_raw, &meta, is_gone_meta));
    }
    let params = edited(raw.as_bytes(), changes);
    Ok(format!(r#"{{"method":"{method}","params":{}}}"#, String::from_utf8_lossy(&params)))
}

/// A response that asks the caller: `requests` is raw, `state` such that no quoting is needed (R2).
pub fn input_required(id: &str, requests: &str, state: &str) -> Bytes {
    let served_by = meta::served_by();
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"input_required","inputRequests":{requests},"requestState":"{state}","_meta":{{{served_by}}}}}}}"#
    )
    .into()
}

/// What goes from a question's `_meta`: the progress token, for nothing can be told under it, and all that the
/// protocol reserves.
fn is_gone_meta(name: &str) -> bool {
    name == meta::PROGRESS_TOKEN || name.starts_with(meta::RESERVED)
}

/// A retry as its request was at first: without the state and the answers.
pub fn at_first(retry: &Request) -> Bytes {
    let raw = retry.params().unwrap_or_default();
    let params = Object::parse(raw).unwrap_or_default();
    let changes = cut(retry.bytes(), raw, &params, |name| matches!(name, "requestState" | "inputResponses"));
    edited(retry.bytes(), changes)
}

fn edited(text: &[u8], changes: Vec<Change>) -> Bytes {
    changes.into_iter().fold(Edit::of(text), |edit, (place, new)| edit.replace_owned(place, new)).finish()
}

/// Whether `raw` is an answer to a question of this method (R3, R6).
///
/// # Errors
/// What is wrong with it.
pub fn check_answer(method: &Method, raw: &str) -> Result<(), &'static str> {
    let answer = Object::parse(raw).map_err(|_| "must be an object that names no member twice")?;
    let is = |name: &str, first: &[char]| answer.get(name).is_some_and(|raw| raw.starts_with(first));
    match method {
        Method::ElicitationCreate => match answer.text("action").as_deref() {
            Some("accept" | "decline" | "cancel") => {
                let content = answer.get("content").filter(|raw| *raw != "null");
                if content.is_some_and(|raw| !raw.starts_with('{')) {
                    return Err("needs an object as `content`");
                }
                Ok(())
            }
            _ => Err("needs an `action`: \"accept\", \"decline\" or \"cancel\""),
        },
        Method::RootsList if !is("roots", &['[']) => Err("needs an array `roots`"),
        Method::SamplingCreate
            if !(is("role", &['"']) && is("model", &['"']) && is("content", &['{', '['])) =>
        {
            Err("needs `role`, `content` and `model`")
        }
        _ => Ok(()),
    }
}

/// The URL elicitations that a legacy server wants done before a call (-32042), as entries of `inputRequests`;
/// `None` if this is another error.
pub fn required_urls(error: &str) -> Option<Vec<String>> {
    memchr::memmem::find(error.as_bytes(), b"-32042")?;
    let error = Object::parse(error).ok()?;
    (error.get("code")? == "-32042").then_some(())?;
    let data = Object::parse(error.get("data").unwrap_or("{}")).unwrap_or_default();
    let all = data.get("elicitations").and_then(items).unwrap_or_default();
    let wanted = all.into_iter().filter(|raw| is_url(raw));
    Some(wanted.filter_map(|raw| input_request(&Method::ElicitationCreate, Some(raw)).ok()).collect())
}

fn is_url(elicitation: &str) -> bool {
    Object::parse(elicitation)
        .is_ok_and(|e| e.text("mode").as_deref() == Some("url") && e.text("url").is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn params_pass_but_for_what_the_era_does_not_know() {
        let asked = |params| input_request(&Method::ElicitationCreate, params).expect("an entry");
        let plain = r#"{ "mode":"form", "message" : "?","x":1.0 }"#;
        assert_eq!(asked(Some(plain)), format!(r#"{{"method":"elicitation/create","params":{plain}}}"#));
        let url = r#"{"mode":"url","elicitationId":"e","url":"https://x.test","task":{"ttl":1},"_meta":{"progressToken":1}}"#;
        assert_eq!(
            asked(Some(url)),
            r#"{"method":"elicitation/create","params":{"mode":"url","url":"https://x.test"}}"#
        );
        let meta =
            r#"{"_meta":{"progressToken":1,"a.b/c":1.0,"io.modelcontextprotocol/related-task":{}},"y":2}"#;
        assert_eq!(
            asked(Some(meta)),
            r#"{"method":"elicitation/create","params":{"_meta":{"a.b/c":1.0},"y":2}}"#
        );
        assert_eq!(asked(None), r#"{"method":"elicitation/create","params":{}}"#);
    }

    #[test]
    fn an_answer_has_the_form_of_its_question() {
        use Method::{ElicitationCreate, RootsList, SamplingCreate};
        for (method, raw, good) in [
            (&ElicitationCreate, r#"{"action":"accept","content":{}}"#, true),
            (&ElicitationCreate, r#"{"action":"decline","content":null}"#, true),
            (&ElicitationCreate, r#"{"action":"accept","content":[]}"#, false),
            (&ElicitationCreate, r#"{"action":"yes"}"#, false),
            (&ElicitationCreate, "null", false),
            (&RootsList, r#"{"roots":[]}"#, true),
            (&RootsList, r#"{"roots":{}}"#, false),
            (&SamplingCreate, r#"{"role":"assistant","content":{"type":"text"},"model":"m"}"#, true),
            (&SamplingCreate, r#"{"role":"assistant","content":[],"model":"m"}"#, true),
            (&SamplingCreate, r#"{"role":"assistant","content":"text","model":"m"}"#, false),
            (&SamplingCreate, "[]", false),
        ] {
            assert_eq!(check_answer(method, raw).is_ok(), good, "{method} {raw}");
        }
    }

    #[test]
    fn only_url_elicitations_are_required() {
        let error = r#"{"code":-32042,"message":"m","data":{"elicitations":[{"mode":"url","elicitationId":"e","url":"https://x.test","message":"?"},{"mode":"form"}]}}"#;
        let wanted =
            r#"{"method":"elicitation/create","params":{"mode":"url","url":"https://x.test","message":"?"}}"#;
        assert_eq!(required_urls(error), Some(vec![wanted.to_owned()]));
        assert_eq!(required_urls(r#"{"code":-32042,"message":"m"}"#), Some(vec![]));
        assert_eq!(required_urls(r#"{"code":-1,"message":"-32042"}"#), None);
    }
}
