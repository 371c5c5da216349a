//! An error of a request to the demo server.

use serde_json::Value;

use crate::protocol::envelope::Malformed;
use crate::protocol::error::Code;
use crate::protocol::object::quoted;

/// An error of a request.
#[derive(Debug)]
pub(super) struct Refusal {
    code: Code,
    message: String,
    data: Option<Value>,
}

// === impl Refusal ===

impl Refusal {
    pub(super) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// Wrong parameters.
    pub(super) fn params(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidParams, message)
    }

    /// A parameter that is not there, or of another type.
    pub(super) fn missing(name: &str) -> Self {
        Self::params(format!("`{name}` is missing or of another type"))
    }

    /// A line that is no message.
    pub(super) fn malformed(malformed: &Malformed) -> Self {
        let code = if matches!(malformed, Malformed::Json(_)) { Code::Parse } else { Code::InvalidRequest };
        Self::new(code, malformed.to_string())
    }

    /// The same with `data`.
    pub(super) fn with(self, data: Value) -> Self {
        Self { data: Some(data), ..self }
    }

    /// The response to the request with this raw id.
    pub(super) fn to_response(&self, id: &str) -> String {
        let (code, message) = (self.code.number(), quoted(&self.message));
        let data = self.data.as_ref().map(|data| format!(r#","data":{data}"#)).unwrap_or_default();
        format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{message}{data}}}}}"#)
    }
}
