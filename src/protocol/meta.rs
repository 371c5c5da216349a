//! The keys of `_meta` that the protocol reserves (M1 to M8), and reading them from a request.

use std::borrow::Cow;

use super::object::{Object, text};

/// The prefix of every reserved key; `traceparent` and its kin stand outside of it (M8, M11).
pub const RESERVED: &str = "io.modelcontextprotocol/";
/// The revision a request is written in; by it a request claims the modern era (M1, E7).
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The capabilities of the client (M2).
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// Name and version of the client (M3).
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// The least severe log messages wanted with the response (M4).
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// Its values, least severe first (P1).
pub const LOG_LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
/// Name and version of the server, in results (M6).
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The gateway, as results name it; raw.
pub const GATEWAY_INFO: &str =
    concat!(r#"{"name":"mcpgate","version":""#, env!("CARGO_PKG_VERSION"), r#""}"#);
/// The id of the `subscriptions/listen` a notification belongs to (M7).
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// The task that a message of 2025-11-25 belongs to (M9).
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
/// The caller's name for the progress of its request (M5).
pub const PROGRESS_TOKEN: &str = "progressToken";

/// The `_meta` of one request, its members raw.
#[derive(Debug, Default)]
pub struct RequestMeta<'a>(Object<'a>);

// === impl RequestMeta ===

impl<'a> RequestMeta<'a> {
    /// Reads the `_meta` of a request's params; what is absent is empty.
    ///
    /// # Errors
    /// Why it cannot be read, for a person.
    pub fn of(params: &Object<'a>) -> Result<Self, String> {
        match params.get("_meta").filter(|raw| *raw != "null") {
            None => Ok(Self::default()),
            Some(raw) => {
                Object::parse(raw).map(Self).map_err(|e| format!("params._meta cannot be read: {e}"))
            }
        }
    }

    /// A member, raw.
    pub fn get(&self, key: &str) -> Option<&'a str> {
        self.0.get(key)
    }

    /// The version it claims, decoded; `None` if there is none or it is no string.
    pub fn version(&self) -> Option<Cow<'a, str>> {
        text(self.0.get(PROTOCOL_VERSION)?)
    }

    /// A member that must be an object, raw.
    pub fn object(&self, key: &str) -> Option<&'a str> {
        self.0.get(key).filter(|raw| raw.starts_with('{'))
    }

    /// All members, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.0.iter()
    }
}

/// The member of a result's `_meta` that says who served it (M6), raw.
pub fn served_by() -> String {
    format!(r#""{SERVER_INFO}":{GATEWAY_INFO}"#)
}
