//! `initialize` with a child (L1, L2).

use std::sync::Arc;

use super::wire::Wire;
use crate::protocol::envelope::{Notification, Request, Response};
use crate::protocol::error::Layer;
use crate::protocol::object::{self, Object};
use crate::protocol::revision::Revision;
use crate::settings::ServerSettings;
use crate::upstream::{Delivery, Failure, Hello, Introduction, Known, Listener, Reply};

/// Finds out the era, if it is not known; says hello to a legacy server, reads the answer, confirms it.
pub(super) async fn run(wire: &Wire, _known: &Known, hello: &Hello) -> Result<Introduction, Failure> {
    let id = wire.allot();
    let Hello { revision, capabilities, client_info } = hello;
    let message = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{capabilities},"clientInfo":{client_info}}}}}"#
    );
    let answer = wire.call(id, message.into(), Arc::new(Deaf)).await;
    let response = answer.map_err(|failure| match failure.layer {
        Layer::Call => Failure { layer: Layer::Handshake, delivery: Delivery::NotDelivered, ..failure },
        // The same in the words for who has not called yet.
        _ => wire.pending.down().unwrap_or(failure),
    })?;
    let introduction = read(&response).map_err(|why| {
        let message = format!("Server `{}` answered `initialize` badly: {why}.", wire.server());
        wire.failure(Layer::Handshake, "bad_initialize", message, Delivery::NotDelivered)
    })?;
    let _ = wire.revision.set(introduction.revision);
    wire.notify(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.into()).await?;
    Ok(introduction)
}

/// The failure of a server that is late.
pub(super) fn too_slow(server: &ServerSettings, stderr: u64) -> Failure {
    let message = format!(
        "Server `{}` did not answer `initialize` within {:?} and was ended ({stderr} lines on stderr); if it needs \
         longer to start, raise its `timeouts.start`.",
        server.name, server.timeouts.start
    );
    Failure {
        server: server.name.clone(),
        layer: Layer::Handshake,
        reason: "start_timeout",
        message,
        delivery: Delivery::NotDelivered,
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

/// Hears the progress of `initialize`, of which there is none.
struct Deaf;

impl Listener for Deaf {
    fn notification(&self, _: Notification) {}
    fn request(&self, _: Request, _: Reply) {}
}
