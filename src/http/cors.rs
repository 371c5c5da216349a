//! CORS: preflights are answered before authentication, and every answer to an allowed origin says so (case-E05).

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method};

/// Headers a page may send. `Mcp-Param-*` has no closed set of names, so those asked for are added by name.
const ALLOWED: &str = "Authorization, X-API-Key, Content-Type, Accept, Mcp-Session-Id, MCP-Protocol-Version, \
                       Last-Event-ID, Mcp-Method, Mcp-Name";
/// Headers a page may read.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, X-Request-Id, Retry-After",
);

/// Whether a request is a preflight: browsers ask for a method, some other programs for headers only.
pub(super) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    *method == Method::OPTIONS
        && headers.contains_key(ORIGIN)
        && (headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
            || headers.contains_key(ACCESS_CONTROL_REQUEST_HEADERS))
}

/// What the answer to a preflight of an allowed origin says.
pub(super) fn permit(request: &HeaderMap, answer: &mut HeaderMap) {
    answer.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, DELETE"));
    answer.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    let asked = request.get(ACCESS_CONTROL_REQUEST_HEADERS).and_then(|v| v.to_str().ok());
    let params = asked.unwrap_or_default().split(',').map(str::trim).filter(|name| is_param(name));
    let all = std::iter::once(ALLOWED).chain(params.take(64)).collect::<Vec<_>>().join(", ");
    let all = HeaderValue::from_str(&all).unwrap_or(HeaderValue::from_static(ALLOWED));
    answer.insert(ACCESS_CONTROL_ALLOW_HEADERS, all);
}

/// What every answer to an allowed origin says.
pub(super) fn expose(request: &HeaderMap, answer: &mut HeaderMap) {
    if let Some(origin) = request.get(ORIGIN) {
        answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        answer.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
        answer.append(VARY, HeaderValue::from_static("Origin"));
    }
}

fn is_param(name: &str) -> bool {
    let prefix = name.get(.."mcp-param-".len());
    prefix.is_some_and(|p| p.eq_ignore_ascii_case("mcp-param-")) && name.len() <= 128
}
