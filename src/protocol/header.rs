//! The names of the headers that MCP over HTTP uses.

use http::HeaderName;

/// `Mcp-Session-Id`: the session a message belongs to (T29).
pub const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// `MCP-Protocol-Version`: the negotiated revision (T34).
pub const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// `Mcp-Method`: the method of a modern request, as in its body (T43).
pub const MCP_METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// `Mcp-Name`: what a modern request is about, as in its body (T44).
pub const MCP_NAME: HeaderName = HeaderName::from_static("mcp-name");
/// `Mcp-Param-*`: arguments of a modern tool call that its schema wants mirrored (T48).
pub const MCP_PARAM_PREFIX: &str = "mcp-param-";
/// `Last-Event-ID`: the cursor of a resumed stream (T28).
pub const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// `X-Request-Id`: the gateway's id of one HTTP request, which finds its log lines.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// `X-Accel-Buffering: no`: asks proxies not to buffer a stream (T12).
pub const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
/// `X-API-Key`: a caller's key, beside `Authorization: Bearer`.
pub const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
