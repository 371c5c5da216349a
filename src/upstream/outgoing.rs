//! A request on its way to a server.

use bytes::Bytes;
use http::{HeaderName, HeaderValue};

use super::{Hello, UpstreamId};
use crate::protocol::method::Method;
use crate::protocol::revision::Era;

/// A request on its way to a server: its text, and what its headers say of it.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// The whole message.
    pub message: Bytes,
    /// What its headers repeat over HTTP; a request of the modern era has it, one of the legacy era has none.
    pub mirror: Option<Mirror>,
}

/// What the headers of a modern request repeat of its body (T43, T44, T48), ready to be sent.
#[derive(Clone, Debug)]
pub struct Mirror {
    /// `Mcp-Method`
    pub method: HeaderValue,
    /// `Mcp-Name`, of methods that have one.
    pub name: Option<HeaderValue>,
    /// `Mcp-Param-*`
    pub params: Vec<(HeaderName, HeaderValue)>,
}

// === impl Outgoing ===

impl Outgoing {
    /// A request that the gateway makes itself, to a server of `era`, on behalf of who says `hello`; `params` are raw
    /// members without the braces around them.
    pub fn own(era: Era, id: UpstreamId, method: &Method, params: &str, hello: &Hello) -> Self {
        if era == Era::Legacy {
            let params = if params.is_empty() { String::new() } else { format!(r#","params":{{{params}}}"#) };
            return format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"{params}}}"#).into();
        }
        let (meta, comma) = (hello.meta(), if params.is_empty() { "" } else { "," });
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}{comma}"_meta":{{{meta}}}}}}}"#
        );
        let method = HeaderValue::from_static(method.label());
        Self { message: message.into(), mirror: Some(Mirror { method, name: None, params: Vec::new() }) }
    }
}

impl From<Bytes> for Outgoing {
    fn from(message: Bytes) -> Self {
        Self { message, mirror: None }
    }
}

impl From<String> for Outgoing {
    fn from(message: String) -> Self {
        Self { message: message.into(), mirror: None }
    }
}
