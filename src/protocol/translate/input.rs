//! Questions of legacy servers as modern callers are asked them, and the answers that may go back (R2, R3, X34).

use crate::protocol::meta;
use crate::protocol::method::Method;
use crate::protocol::object::{Object, items, quoted};

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
    let stays = |(name, raw): (&str, &str)| match name {
        "_meta" => kept_meta(raw).map(|meta| format!(r#""_meta":{meta}"#)),
        name if GONE.contains(&name) => None,
        name => Some(format!("{}:{raw}", quoted(name))),
    };
    let touched = params.iter().any(|(name, _)| name == "_meta" || GONE.contains(&name));
    let params = if touched {
        format!("{{{}}}", params.iter().filter_map(stays).collect::<Vec<_>>().join(","))
    } else {
        raw.to_owned()
    };
    Ok(format!(r#"{{"method":"{method}","params":{params}}}"#))
}

/// What stays of a question's `_meta`: not the progress token, for nothing can be told under it, and nothing that
/// the protocol reserves.
fn kept_meta(raw: &str) -> Option<String> {
    let meta = Object::parse(raw).ok()?;
    let stays = |name: &str| name != meta::PROGRESS_TOKEN && !name.starts_with(meta::RESERVED);
    let kept = meta.iter().filter(|(name, _)| stays(name));
    let kept: Vec<String> = kept.map(|(name, raw)| format!("{}:{raw}", quoted(name))).collect();
    (!kept.is_empty()).then(|| format!("{{{}}}", kept.join(",")))
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
        Method::SamplingCreate if !(is("role", &['"']) && is("model", &['"']) && is("content", &['{', '['])) => {
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
    Object::parse(elicitation).is_ok_and(|e| e.text("mode").as_deref() == Some("url") && e.text("url").is_some())
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
        let meta = r#"{"_meta":{"progressToken":1,"a.b/c":1.0,"io.modelcontextprotocol/related-task":{}},"y":2}"#;
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
        let wanted = r#"{"method":"elicitation/create","params":{"mode":"url","url":"https://x.test","message":"?"}}"#;
        assert_eq!(required_urls(error), Some(vec![wanted.to_owned()]));
        assert_eq!(required_urls(r#"{"code":-32042,"message":"m"}"#), Some(vec![]));
        assert_eq!(required_urls(r#"{"code":-1,"message":"-32042"}"#), None);
    }
}
