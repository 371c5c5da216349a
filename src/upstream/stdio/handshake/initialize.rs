//! `initialize` with a legacy child (L1, L2).

use std::sync::Arc;

use super::{Deaf, Handshake};
use crate::protocol::envelope::Response;
use crate::protocol::error::Layer;
use crate::protocol::object::{self, Object};
use crate::protocol::revision::Revision;
use crate::upstream::{Delivery, Failure, Hello, Introduction};

/// What ends it, once the answer was good.
pub(super) const CONFIRMATION: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

// === impl Handshake ===

impl Handshake<'_> {
    /// Says hello to a legacy child and reads its answer.
    pub(super) async fn initialize(&self) -> Result<Introduction, Failure> {
        let Self { wire, hello: Hello { revision, capabilities, client_info }, .. } = self;
        let id = wire.allot();
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{capabilities},"clientInfo":{client_info}}}}}"#
        );
        let answer = wire.call(id, message, Arc::new(Deaf)).await;
        let response = answer.map_err(|failure| match failure.layer {
            Layer::Call => Failure { layer: Layer::Handshake, delivery: Delivery::NotDelivered, ..failure },
            // The same in the words for who has not called yet.
            _ => wire.pending.down().unwrap_or(failure),
        })?;
        read(&response).map_err(|why| {
            let message = format!("Server `{}` answered `initialize` badly: {why}.", wire.server());
            self.failure("bad_initialize", message)
        })
    }
}

fn read(response: &Response) -> Result<Introduction, String> {
    if let Some(error) = response.error() {
        let code = Object::parse(error).ok().and_then(|e| e.get("code").map(str::to_owned));
        return Err(format!("it refused with error {}", code.as_deref().unwrap_or("without a code")));
    }
    let result = Object::parse(response.result().unwrap_or_default()).map_err(|e| e.to_string())?;
    let version = result.text("protocolVersion").ok_or("it names no protocol version")?;
    let revision = Revision::legacy(&version).map_err(|e| format!("its {e}"))?;
    let part = |name| match result.get(name) {
        Some(raw) if raw.starts_with('{') => raw.into(),
        _ => "{}".into(),
    };
    Ok(Introduction {
        revision,
        capabilities: part("capabilities"),
        server_info: part("serverInfo"),
        instructions: result.get("instructions").and_then(object::text).map(Into::into),
    })
}
