//! `Mcp-Param-*` against the schema that the caller was shown: where a tool wants arguments repeated in headers, what
//! others routed by must be what its server reads (T50, T51, E14).

use std::sync::Arc;

use http::{HeaderName, HeaderValue};

use super::{Relay, Session};
use crate::catalog::{Endpoint, Kind};
use crate::protocol::envelope::Request;
use crate::protocol::error::{Code, RpcError};
use crate::protocol::method::Method;
use crate::protocol::mirror;
use crate::protocol::object::{Object, is_variant, text};
use crate::protocol::param_header::{Annotation, value_at};

/// The `Mcp-Param-*` headers of one request, each sent once.
type ParamHeaders = [(HeaderName, HeaderValue)];

// === impl Relay ===

impl Relay {
    /// Compares the headers of a call with its arguments, if the tool is listed to this caller and wants any; headers
    /// that no schema speaks of are nobody's (T51).
    ///
    /// # Errors
    /// -32020 for a header that is missing, wrong or not to be; -32602 for arguments that cannot be read.
    pub(super) fn check_param_headers(
        self: &Arc<Self>,
        session: &Arc<Session>,
        endpoint: &Endpoint,
        request: &Request,
        said: &ParamHeaders,
    ) -> Result<(), RpcError> {
        if *request.method() != Method::ToolsCall {
            return Ok(());
        }
        let view = self.known_view(session, endpoint, Kind::Tools);
        if !view.has_annotations() {
            return Ok(());
        }
        // Params that cannot be read, or name nothing, are refused by those who read them.
        let Some(params) = request.params().and_then(|raw| Object::parse(raw).ok()) else { return Ok(()) };
        let wanted = params.text("name").and_then(|name| view.annotations(&name));
        wanted.map_or(Ok(()), |wanted| check(wanted, &params, said))
    }
}

fn check(wanted: &[Annotation], params: &Object<'_>, said: &ParamHeaders) -> Result<(), RpcError> {
    if params.iter().any(|(name, _)| is_variant(name, "arguments")) {
        return Err(unreadable("a member of params differs from `arguments` in case only"));
    }
    let raw = params.get("arguments").filter(|raw| *raw != "null").unwrap_or("{}");
    let arguments =
        Object::parse(raw).map_err(|why| unreadable(format!("arguments cannot be read: {why}")))?;
    for annotation in wanted {
        if let Some(why) = ambiguous(&arguments, &annotation.path) {
            return Err(unreadable(format!("arguments cannot be read: {why}")));
        }
        let header = said.iter().find(|(name, _)| *name == annotation.header).map(|(_, value)| value);
        compare(annotation, &arguments, header).map_err(|why| {
            let (header, path) = (annotation.header.as_str(), annotation.path.join("."));
            let message = format!("{header} {why}; it must repeat the argument `{path}`, if there is one.");
            RpcError::new(Code::HeaderMismatch, "header_mismatch", message)
        })?;
    }
    Ok(())
}

/// What is wrong with one header.
fn compare(
    annotation: &Annotation,
    arguments: &Object<'_>,
    header: Option<&HeaderValue>,
) -> Result<(), String> {
    match (value_at(arguments, &annotation.path), header) {
        (None, None) => Ok(()),
        (Some(_), None) => Err("is missing".to_owned()),
        (None, Some(_)) => Err("is sent without a value to repeat".to_owned()),
        (Some(value), Some(header)) => match mirror::decode(header.as_bytes()) {
            Ok(said) if annotation.agrees(&said, &value) => Ok(()),
            Ok(_) => Err("is another value than the body has".to_owned()),
            Err(why) => Err(format!("cannot be read: {why}")),
        },
    }
}

/// Why the objects on the way to a value may be read in two ways (case-G07).
fn ambiguous(arguments: &Object<'_>, path: &[Box<str>]) -> Option<String> {
    let (first, rest) = path.split_first()?;
    let mut raw = arguments.get(first)?;
    for name in rest {
        if !raw.starts_with('{') {
            return None;
        }
        match Object::parse(raw) {
            Ok(object) => raw = object.get(name)?,
            Err(why) => return Some(why.to_string()),
        }
    }
    // A string that is none, such as a lone surrogate, is read differently by different readers.
    (raw.starts_with('"') && text(raw).is_none()).then(|| "a string is not legal".to_owned())
}

fn unreadable(why: impl Into<String>) -> RpcError {
    RpcError::new(Code::InvalidParams, "invalid_params", why)
}

#[cfg(test)]
mod tests;
