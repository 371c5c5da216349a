//! JSON-RPC error codes and the one way this gateway writes an error of its own.
//!
//! Every such error carries `data.mcpgate`: the reason in one word, the layer it failed in, the server if one
//! was meant, and whether trying again can help. An upstream's own error never passes through here.

use std::fmt::Write as _;

use bytes::Bytes;

use super::object::quoted;

/// A JSON-RPC error code (JSON-RPC 2.0 section 5.1 and the schema of MCP).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// -32700: not JSON.
    Parse,
    /// -32600: not a request, or one that cannot be taken in this state.
    InvalidRequest,
    /// -32601: no such method.
    MethodNotFound,
    /// -32602: wrong parameters, an unknown tool, prompt or cursor.
    InvalidParams,
    /// -32603: ours or an upstream's failure.
    Internal,
    /// -32002: no such resource (legacy revisions).
    ResourceNotFound,
    /// -32020: headers and body disagree (2026-07-28, T45).
    HeaderMismatch,
    /// -32021: the request needs a client capability that it does not declare (2026-07-28, T42).
    MissingCapability,
    /// -32022: the version is not served (2026-07-28, T39).
    UnsupportedVersion,
}

/// Where something failed: the words of `docs/lexicon.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layer {
    /// A child process: it did not start, or ended.
    Process,
    /// Bytes to or from a server: connect, TLS, HTTP status, a broken stream.
    Transport,
    /// `initialize` with a server.
    Handshake,
    /// Reading a server's lists.
    List,
    /// The call itself.
    Call,
    /// A rule of the operator.
    Policy,
    /// The gateway.
    Gateway,
}

/// An error of the gateway's own, ready to be written for any request id.
#[derive(Clone, Debug)]
pub struct RpcError {
    /// The code on the wire.
    pub code: Code,
    /// One sentence: what happened, where, what to do. It leaves the process, so it holds no secret.
    pub message: String,
    /// One word for programs, such as `unknown_session`.
    pub reason: &'static str,
    /// Where it failed.
    pub layer: Layer,
    /// The configured name of the server meant, if any.
    pub server: Option<String>,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// Members of `data` that the protocol wants beside `mcpgate`, raw: `"supported":["2026-07-28"]`.
    pub data: Option<Box<str>>,
}

// === impl Code ===

impl Code {
    /// The number on the wire.
    pub const fn number(self) -> i32 {
        match self {
            Self::Parse => -32700,
            Self::InvalidRequest => -32600,
            Self::MethodNotFound => -32601,
            Self::InvalidParams => -32602,
            Self::Internal => -32603,
            Self::ResourceNotFound => -32002,
            Self::HeaderMismatch => -32020,
            Self::MissingCapability => -32021,
            Self::UnsupportedVersion => -32022,
        }
    }
}

// === impl Layer ===

impl Layer {
    /// The word on the wire, in logs and in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Transport => "transport",
            Self::Handshake => "handshake",
            Self::List => "list",
            Self::Call => "call",
            Self::Policy => "policy",
            Self::Gateway => "gateway",
        }
    }
}

// === impl RpcError ===

impl RpcError {
    /// An error of the gateway itself that trying again will not mend.
    pub fn new(code: Code, reason: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, message, reason, layer: Layer::Gateway, server: None, retryable: false, data: None }
    }

    /// The same, as a failure of `server` in `layer`.
    #[must_use]
    pub fn at(mut self, server: &str, layer: Layer) -> Self {
        self.server = Some(server.to_owned());
        self.layer = layer;
        self
    }

    /// The same, worth another try.
    #[must_use]
    pub fn retryable(mut self) -> Self {
        self.retryable = true;
        self
    }

    /// The same with members of `data` that the protocol wants, raw.
    #[must_use]
    pub fn with_data(mut self, members: impl Into<Box<str>>) -> Self {
        self.data = Some(members.into());
        self
    }

    /// The whole message for the request `id` (raw JSON; `None` writes null), with the HTTP request's id in it.
    pub fn to_message(&self, id: Option<&str>, request_id: Option<&str>) -> Bytes {
        let mut out = String::with_capacity(256);
        let _ = write!(
            out,
            r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":{},"message":{},"data":{{"#,
            id.unwrap_or("null"),
            self.code.number(),
            quoted(&self.message),
        );
        if let Some(members) = &self.data {
            let _ = write!(out, "{members},");
        }
        let _ = write!(out, r#""mcpgate":{{"reason":"{}","layer":"{}""#, self.reason, self.layer.as_str(),);
        if let Some(server) = &self.server {
            let _ = write!(out, r#","server":{}"#, quoted(server));
        }
        if let Some(request_id) = request_id {
            let _ = write!(out, r#","requestId":{}"#, quoted(request_id));
        }
        let _ = write!(out, r#","retryable":{}}}}}}}}}"#, self.retryable);
        out.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_server_layer_and_request() {
        let error = RpcError::new(Code::Internal, "server_down", "Server `a` is down.")
            .at("a", Layer::Process)
            .retryable();
        assert_eq!(
            error.to_message(Some("\"x\""), Some("r1")),
            concat!(
                r#"{"jsonrpc":"2.0","id":"x","error":{"code":-32603,"message":"Server `a` is down.","data":{"mcpgate":"#,
                r#"{"reason":"server_down","layer":"process","server":"a","requestId":"r1","retryable":true}}}}"#
            )
        );
    }
}
