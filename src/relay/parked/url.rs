//! The error -32042 of legacy servers: a call that needs URLs visited first (X44).
//!
//! The call has ended, so nothing is parked: the caller is asked to visit them, and its retry makes the call anew.

use bytes::Bytes;

use super::input_required;
use super::state::{GoesOn, State, request_digest};
use crate::protocol::capability::Capability;
use crate::protocol::envelope::Response;
use crate::protocol::error::{Code, Layer, RpcError};
use crate::protocol::object::Object;
use crate::protocol::revision::Era;
use crate::protocol::translate::required_urls;
use crate::relay::Relay;
use crate::relay::route::Route;
use crate::relay::serving::Serving;

// === impl Relay ===

impl Relay {
    /// The response that asks a modern caller to visit URLs, if that is what the response of a server of `era` wants;
    /// -32021 if this caller cannot be asked to (T42).
    pub(in crate::relay) fn wants_urls(
        &self,
        serving: Serving<'_>,
        route: &Route,
        response: &Response,
        era: Era,
    ) -> Option<Bytes> {
        let Serving { session, request, outlet, .. } = serving;
        if (session.revision().era(), era) != (Era::Modern, Era::Legacy) || outlet.questions().is_none() {
            return None;
        }
        let entries = required_urls(response.error()?).filter(|entries| !entries.is_empty())?;
        let server = &route.target.server;
        if !session.greeting.class.has(Capability::ElicitationUrl) {
            let message = format!(
                "Server `{}` wants URLs to be visited before this call, and this client did not declare elicitation.url.",
                server.name
            );
            let error = RpcError::new(Code::MissingCapability, "missing_capability", message)
                .at(&server.name, Layer::Call)
                .with_data(r#""requiredCapabilities":{"elicitation":{"url":{}}}"#);
            return Some(error.to_message(Some(request.id()), Some(&outlet.request_id())));
        }
        let requests =
            entries.iter().enumerate().map(|(n, entry)| format!(r#""elicitation-{}":{entry}"#, n + 1));
        let requests = format!("{{{}}}", requests.collect::<Vec<_>>().join(","));
        let params = request.params().and_then(|raw| Object::parse(raw).ok()).unwrap_or_default();
        let digest = request_digest(request.method(), &params);
        let state = State::new(GoesOn::Again, digest, server.timeouts.input);
        Some(input_required(request.id(), &requests, &state.seal(&self.sealer, &session.binding)))
    }
}
