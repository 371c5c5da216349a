//! The headers of a modern request that repeat its body (E9, E10): read by who routes without reading bodies, so
//! they must say the same as what is served (T45).

use std::borrow::Cow;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::http::reply::Refused;
use crate::protocol::error::Code;
use crate::protocol::header::{MCP_METHOD, MCP_NAME, MCP_PARAM_PREFIX, PROTOCOL_VERSION};
use crate::protocol::method::Method;
use crate::protocol::mirror;
use crate::protocol::object::Object;

/// How much of a value an error repeats, in characters.
const MOST_SHOWN: usize = 128;

/// Refuses a header that is sent twice: its first and its last reader would disagree (E9).
///
/// # Errors
/// 400 -32020
pub(super) fn once_each(headers: &HeaderMap) -> Result<(), Refused> {
    [PROTOCOL_VERSION, MCP_METHOD, MCP_NAME].iter().try_for_each(|name| once(headers, name).map(drop))
}

/// Compares `MCP-Protocol-Version` (T38).
///
/// # Errors
/// 400 -32020
pub(super) fn version(headers: &HeaderMap, claimed: &str) -> Result<(), Refused> {
    same(&PROTOCOL_VERSION, plain(headers, &PROTOCOL_VERSION), claimed)
}

/// Compares `Mcp-Method` (T43); the value's case counts.
///
/// # Errors
/// 400 -32020
pub(super) fn method(headers: &HeaderMap, method: &Method) -> Result<(), Refused> {
    same(&MCP_METHOD, plain(headers, &MCP_METHOD), method.as_str())
}

/// Compares `Mcp-Name` for the methods that have one (T44, T46). Params without a name and no header agree: what
/// they lack is for the method to say.
///
/// # Errors
/// 400 -32020
pub(super) fn name(headers: &HeaderMap, method: &Method, params: &Object<'_>) -> Result<(), Refused> {
    let Some(member) = named_by(method) else { return Ok(()) };
    match (headers.get(MCP_NAME), params.text(member)) {
        (None, None) => Ok(()),
        (Some(_), None) => Err(mismatch(format!("Mcp-Name is sent, and params have no `{member}`."))),
        (None, Some(name)) => same(&MCP_NAME, None, &name),
        (Some(value), Some(name)) => match mirror::decode(value.as_bytes()) {
            Ok(decoded) => same(&MCP_NAME, Some(decoded), &name),
            Err(why) => Err(mismatch(format!("Mcp-Name cannot be read: {why}."))),
        },
    }
}

/// The `Mcp-Param-*` of a tool call (T48). What they must say is in the tool's schema, which the relay knows.
///
/// # Errors
/// 400 -32020 if one is sent twice.
pub(super) fn params(
    headers: &HeaderMap,
    method: &Method,
) -> Result<Vec<(HeaderName, HeaderValue)>, Refused> {
    if *method != Method::ToolsCall {
        return Ok(Vec::new());
    }
    let named = headers.keys().filter(|name| name.as_str().starts_with(MCP_PARAM_PREFIX));
    named
        .filter_map(|name| Some(once(headers, name).transpose()?.map(|value| (name.clone(), value.clone()))))
        .collect()
}

/// The member of params that `Mcp-Name` repeats.
fn named_by(method: &Method) -> Option<&'static str> {
    match method {
        Method::ToolsCall | Method::PromptsGet => Some("name"),
        Method::ResourcesRead => Some("uri"),
        Method::TasksGet | Method::TasksUpdate | Method::TasksCancel => Some("taskId"),
        _ => None,
    }
}

/// The one value of a header.
///
/// # Errors
/// 400 -32020 if it is sent twice.
fn once<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h HeaderValue>, Refused> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    match values.next() {
        None => Ok(first),
        Some(_) => Err(mismatch(format!("{} is sent more than once.", spelled(name)))),
    }
}

/// A header that is never encoded, without the optional whitespace around it.
fn plain<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<Cow<'h, str>> {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes().trim_ascii()))
}

fn same(name: &HeaderName, header: Option<Cow<'_, str>>, body: &str) -> Result<(), Refused> {
    let name = spelled(name);
    match header {
        Some(header) if header == body => Ok(()),
        Some(header) => {
            let (header, body) = (shown(&header), shown(body));
            Err(mismatch(format!(
                "{name} is {header:?}, and the body says {body:?}; both must say the same."
            )))
        }
        None => {
            let body = shown(body);
            Err(mismatch(format!("{name} is missing; it must repeat what the body says, {body:?}.")))
        }
    }
}

fn shown(value: &str) -> String {
    value.chars().take(MOST_SHOWN).collect()
}

/// The header's name as the protocol writes it.
fn spelled(name: &HeaderName) -> &str {
    match name.as_str() {
        "mcp-protocol-version" => "MCP-Protocol-Version",
        "mcp-method" => "Mcp-Method",
        "mcp-name" => "Mcp-Name",
        other => other,
    }
}

/// Headers and body disagree.
fn mismatch(why: String) -> Refused {
    Refused::new(StatusCode::BAD_REQUEST, Code::HeaderMismatch, "header_mismatch", why)
}
