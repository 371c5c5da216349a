//! Input requests: what a modern server wants to know before it goes on with a request (R1 to R3).

use std::borrow::Cow;

use super::members::{cut, put_first};
use crate::protocol::edit::Edit;
use crate::protocol::envelope::Response;
use crate::protocol::method::Method;
use crate::protocol::object::{Object, may_say, quoted};
use crate::protocol::revision::Revision;

/// What the result of a modern server is.
#[derive(Debug)]
pub enum ModernResult<'a> {
    /// The end of the request.
    Complete,
    /// The server wants input first.
    Wanting(InputRequired<'a>),
    /// Nothing the protocol knows in this place; why, for a person (R1, R2, M13).
    Malformed(&'static str),
}

/// What a server wants before it goes on.
#[derive(Debug)]
pub struct InputRequired<'a> {
    /// What its client is to be asked; empty if it only wants to be tried again (R7).
    pub requests: Vec<InputRequest<'a>>,
    /// What it must be given back exactly, raw.
    pub state: Option<&'a str>,
}

/// One thing a client is to be asked.
#[derive(Debug)]
pub struct InputRequest<'a> {
    /// By which the server knows the answer.
    pub key: Cow<'a, str>,
    /// One of `elicitation/create`, `sampling/createMessage` and `roots/list`.
    pub method: Method,
    /// A raw object, if there are any.
    pub params: Option<&'a str>,
}

/// Reads what a modern server answered to `method`. Only what looks like a want for input is parsed, so that a
/// complete result costs a look at its bytes.
pub fn read<'a>(method: &Method, response: &'a Response) -> ModernResult<'a> {
    let Some(result) = response.result() else { return ModernResult::Complete };
    let says = |word: &str| may_say(result, word);
    if !says("\"input_required\"") && (says("\"complete\"") || !says("\"resultType\"")) {
        return ModernResult::Complete;
    }
    // A result that cannot be read is for its caller to judge.
    let Ok(result) = Object::parse(result) else { return ModernResult::Complete };
    match result.text("resultType").as_deref() {
        Some("complete") => ModernResult::Complete,
        None if result.get("resultType").is_none() => ModernResult::Complete,
        Some("input_required") => {
            wanting(method, &result).map_or_else(ModernResult::Malformed, ModernResult::Wanting)
        }
        _ => ModernResult::Malformed("its result is of a type that was not agreed on"),
    }
}

fn wanting<'a>(method: &Method, result: &Object<'a>) -> Result<InputRequired<'a>, &'static str> {
    if !matches!(method, Method::ToolsCall | Method::PromptsGet | Method::ResourcesRead) {
        return Err("it wants input for a method that takes none");
    }
    let present = |name| result.get(name).filter(|raw| *raw != "null");
    let state = present("requestState");
    if state.is_some_and(|raw| !raw.starts_with('"')) {
        return Err("its requestState is no string");
    }
    let requests = requests(result)?;
    if requests.is_empty() && state.is_none() {
        return Err("it wants input and does not say which");
    }
    Ok(InputRequired { requests, state })
}

/// What a result wants its client to be asked.
///
/// # Errors
/// What of it the protocol does not allow, for a person.
pub fn requests<'a>(result: &Object<'a>) -> Result<Vec<InputRequest<'a>>, &'static str> {
    let Some(raw) = result.get("inputRequests").filter(|raw| *raw != "null") else { return Ok(Vec::new()) };
    let all = Object::parse(raw).map_err(|_| "its inputRequests cannot be read")?;
    all.into_members().map(|(key, raw)| InputRequest::read(key, raw)).collect()
}

// === impl InputRequest ===

impl<'a> InputRequest<'a> {
    fn read(key: Cow<'a, str>, raw: &'a str) -> Result<Self, &'static str> {
        let request = Object::parse(raw).map_err(|_| "one of its inputRequests cannot be read")?;
        let method = request.text("method").map(Method::from);
        let params = request.get("params").filter(|raw| *raw != "null");
        if params.is_some_and(|raw| Object::parse(raw).is_err()) {
            return Err("one of its inputRequests has params that cannot be read");
        }
        match (method, params) {
            (Some(method @ (Method::ElicitationCreate | Method::SamplingCreate)), Some(_))
            | (Some(method @ Method::RootsList), _) => Ok(Self { key, method, params }),
            (Some(Method::ElicitationCreate | Method::SamplingCreate), None) => {
                Err("one of its inputRequests has no params")
            }
            _ => Err("one of its inputRequests has a method that is none"),
        }
    }

    /// The request as a legacy caller of `revision` takes it, with a placeholder for its id. `elicitation_id` is for
    /// a request to open a URL, which needs one since no revision has both (X15).
    pub fn message(&self, revision: Revision, elicitation_id: impl FnOnce() -> String) -> String {
        let method = self.method.as_str();
        let head = format!(r#"{{"jsonrpc":"2.0","id":0,"method":"{method}""#);
        let Some(raw) = self.params else { return head + "}" };
        let params = Object::parse(raw).unwrap_or_default();
        let mut changes = Vec::new();
        if self.method == Method::ElicitationCreate {
            if params.text("mode").is_some_and(|mode| mode == "url") && params.get("elicitationId").is_none()
            {
                let member = format!(r#""elicitationId":{}"#, quoted(&elicitation_id()));
                changes.push(put_first(raw.as_bytes(), raw, &member));
            }
            // Before there were two modes, there was no word for them (X53).
            if revision < Revision::V2025_11_25 {
                changes.extend(cut(raw.as_bytes(), raw, &params, |name| name == "mode"));
            }
        }
        let edit =
            changes.into_iter().fold(Edit::of(raw.as_bytes()), |e, (at, new)| e.replace_owned(at, new));
        let params = edit.finish();
        format!(r#"{head},"params":{}}}"#, String::from_utf8_lossy(&params))
    }
}

#[cfg(test)]
mod tests;
