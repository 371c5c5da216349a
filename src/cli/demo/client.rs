//! Who sends a request to the demo server, and what a result looks like to them.
//!
//! A legacy client introduced itself once; a modern one says it all in each request (M1, M2).

use serde_json::{Value, json};

use super::refusal::Refusal;
use crate::protocol::capability::{Capability, CapabilityClass};
use crate::protocol::error::Code;
use crate::protocol::meta::{self, RequestMeta};
use crate::protocol::method::Method;
use crate::protocol::object::Object;
use crate::protocol::revision::{Era, Revision};

/// Who sends a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Client {
    /// The revision it speaks.
    pub(super) revision: Revision,
    class: CapabilityClass,
}

const INSTRUCTIONS: &str = "A server to try things out with: count words, wait with progress, ask the user.";
/// How long a list or a text may be kept, in milliseconds (K1): they never change.
const FRESH: u32 = 3_600_000;

// === impl Client ===

impl Client {
    /// A client that has not introduced itself.
    pub(super) fn unknown() -> Self {
        Self { revision: Revision::LATEST_LEGACY, class: CapabilityClass::NONE }
    }

    /// A client that introduces itself with the params of `initialize`.
    pub(super) fn introduced(params: &Object<'_>) -> Self {
        let asked = params.text("protocolVersion").unwrap_or_default();
        let revision = Revision::legacy(&asked).unwrap_or(Revision::LATEST_LEGACY);
        Self { revision, class: CapabilityClass::of(params.get("capabilities").unwrap_or_default()) }
    }

    /// The sender of a request with these params: a modern one says so, anybody else is `known`.
    pub(super) fn of(params: &Object<'_>, known: Self) -> Result<Self, Refusal> {
        let meta = RequestMeta::of(params).map_err(Refusal::params)?;
        if meta.get(meta::PROTOCOL_VERSION).is_none() {
            return Ok(known);
        }
        let version = meta.version().unwrap_or_default();
        let Some(revision) = Revision::modern(&version) else {
            let data = json!({"supported": versions(), "requested": version});
            return Err(Refusal::new(Code::UnsupportedVersion, "that version is not spoken here").with(data));
        };
        let capabilities = meta
            .object(meta::CLIENT_CAPABILITIES)
            .ok_or_else(|| Refusal::missing(&format!("_meta.{}", meta::CLIENT_CAPABILITIES)))?;
        Ok(Self { revision, class: CapabilityClass::of(capabilities) })
    }

    pub(super) fn era(self) -> Era {
        self.revision.era()
    }

    /// Whether it shows forms.
    pub(super) fn shows_forms(self) -> bool {
        self.class.has(Capability::ElicitationForm)
    }

    /// What the server says of itself, once for all or whenever it is asked.
    pub(super) fn introduction(self) -> Value {
        match self.era() {
            Era::Legacy => json!({
                "protocolVersion": self.revision.as_str(),
                "capabilities": {"tools": {}, "resources": {}, "prompts": {}, "completions": {}, "logging": {}},
                "serverInfo": server_info(),
                "instructions": INSTRUCTIONS,
            }),
            Era::Modern => json!({
                "supportedVersions": versions(),
                "capabilities": {"tools": {}, "resources": {}, "prompts": {}, "completions": {}},
                "instructions": INSTRUCTIONS,
            }),
        }
    }

    /// A result of `method`, with what its era adds to every result (M6, K1, R8).
    pub(super) fn dress(self, method: &Method, mut result: Value) -> Value {
        let (Era::Modern, Value::Object(members)) = (self.era(), &mut result) else { return result };
        if !members.contains_key("resultType") {
            members.insert("resultType".to_owned(), json!("complete"));
            if !matches!(method, Method::ToolsCall | Method::PromptsGet | Method::Complete) {
                members.insert("ttlMs".to_owned(), json!(FRESH));
                members.insert("cacheScope".to_owned(), json!("public"));
            }
        }
        members.insert("_meta".to_owned(), json!({meta::SERVER_INFO: server_info()}));
        result
    }
}

fn server_info() -> Value {
    json!({"name": "mcpgate-demo", "version": env!("CARGO_PKG_VERSION")})
}

/// What can be claimed in a request (D7).
fn versions() -> Value {
    json!(Revision::MODERN.map(Revision::as_str))
}
