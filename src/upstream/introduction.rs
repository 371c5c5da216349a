//! What both sides say of themselves: in `initialize`, or in each request and in `server/discover`.

use crate::protocol::meta;
use crate::protocol::revision::Revision;
use crate::protocol::translate;

/// What a server is told about the caller.
#[derive(Clone, Debug)]
pub struct Hello {
    /// The revision asked for.
    pub revision: Revision,
    /// The client capabilities, as a raw JSON object.
    pub capabilities: Box<str>,
    /// The client's name and version, as a raw JSON object.
    pub client_info: Box<str>,
}

// === impl Hello ===

impl Hello {
    /// The gateway itself, which can be asked nothing.
    pub fn own() -> Self {
        let client_info = format!(r#"{{"name":"mcpgate","version":"{}"}}"#, env!("CARGO_PKG_VERSION")).into();
        Self { revision: Revision::LATEST_LEGACY, capabilities: "{}".into(), client_info }
    }

    /// The same as members of the `_meta` of a modern request (X3, X4).
    pub fn meta(&self) -> String {
        format!(
            r#""{}":"{}","{}":{},"{}":{}"#,
            meta::PROTOCOL_VERSION,
            Revision::LATEST,
            meta::CLIENT_CAPABILITIES,
            translate::capabilities(&self.capabilities, self.revision),
            meta::CLIENT_INFO,
            self.client_info,
        )
    }
}

/// What a server said about itself.
#[derive(Clone, Debug)]
pub struct Introduction {
    /// The revision it chose.
    pub revision: Revision,
    /// Its capabilities, as a raw JSON object.
    pub capabilities: Box<str>,
    /// Its name and version, as a raw JSON object.
    pub server_info: Box<str>,
    /// How to use it, in its own words.
    pub instructions: Option<String>,
}

// === impl Introduction ===

impl Introduction {
    /// What a modern server is taken to offer that does not say: everything, so that it is asked for each.
    pub fn assumed() -> Self {
        Self {
            revision: Revision::LATEST,
            capabilities: r#"{"tools":{},"prompts":{},"resources":{},"completions":{}}"#.into(),
            server_info: "{}".into(),
            instructions: None,
        }
    }
}
