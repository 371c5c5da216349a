//! `initialize`: answered from what the gateway knows; it never waits for a server (case-C09).

use std::sync::Arc;

use bytes::Bytes;

use super::lists::SERVER_INFO;
use super::offered::{Offered, instructions};
use super::{Caller, Conversation, Relay, Session, extensions};
use crate::catalog::Endpoint;
use crate::protocol::capability::CapabilityClass;
use crate::protocol::envelope::Request;
use crate::protocol::error::{Code, RpcError};
use crate::protocol::object::{Object, quoted};
use crate::protocol::revision::Revision;
use crate::session::Binding;
use crate::session::live::Greeting;
use crate::session::sessions::OpenError;
use crate::store::Epoch;
use crate::upstream::Introduction;

/// The largest params of `initialize`, bytes: a session keeps them for as long as it lives.
const MOST_PARAMS: usize = 64 << 10;

/// Why a session was not opened.
#[derive(Debug, thiserror::Error)]
pub enum InitializeError {
    /// The params are not those of `initialize`.
    #[error("{}", .0.message)]
    Params(RpcError),
    /// No place or no store.
    #[error(transparent)]
    Open(#[from] OpenError),
}

// === impl Relay ===

impl Relay {
    /// Opens a session; gives it and the whole response.
    ///
    /// # Errors
    /// [`InitializeError`]
    pub async fn initialize(
        &self,
        caller: &Caller,
        endpoint: &Endpoint,
        request: &Request,
    ) -> Result<(Arc<Session>, Bytes), InitializeError> {
        let mut greeting = greeting(request).map_err(InitializeError::Params)?;
        greeting.capabilities = extensions::admitted(endpoint, &greeting.capabilities);
        let revision = greeting.revision;
        let binding = Binding { principal: caller.binding, endpoint: endpoint.path.clone() };
        let conversation =
            Conversation::new(caller.principal.tenant.clone(), Epoch::FIRST.0, self.tasks.clone());
        let session = self.sessions.open(binding, greeting, caller.cap, conversation).await?;
        let known: Vec<_> = endpoint.servers.iter().map(|s| (s, self.catalog.introduction(s))).collect();
        let capabilities = capabilities(known.iter().map(|(_, i)| i.as_deref()), revision);
        let servers: Vec<_> = known.iter().map(|(s, i)| (&***s, i.as_deref())).collect();
        let capabilities = capabilities.written(extensions::declared(endpoint, revision, &servers));
        let instructions =
            instructions(endpoint, known.iter().filter_map(|(s, i)| Some((s.name.as_str(), i.as_deref()?))));
        let instructions =
            instructions.map_or_else(String::new, |text| format!(r#","instructions":{}"#, quoted(&text)));
        let result = format!(
            r#"{{"protocolVersion":"{revision}","capabilities":{capabilities},"serverInfo":{SERVER_INFO}{instructions}}}"#,
        );
        Ok((session, super::request::respond(request.id(), result.as_bytes())))
    }
}

fn greeting(request: &Request) -> Result<Greeting, RpcError> {
    let wrong = |why: String| RpcError::new(Code::InvalidParams, "invalid_params", why);
    greeting_of(request.params().ok_or_else(|| wrong("initialize needs params".into()))?)
}

/// What a caller said in the raw params of `initialize`.
pub(super) fn greeting_of(raw: &str) -> Result<Greeting, RpcError> {
    let wrong = |why: String| RpcError::new(Code::InvalidParams, "invalid_params", why);
    if raw.len() > MOST_PARAMS {
        return Err(wrong(format!("the params of initialize are larger than {MOST_PARAMS} bytes")));
    }
    let params = Object::parse(raw).map_err(|e| wrong(format!("params cannot be read: {e}")))?;
    let version = params.text("protocolVersion");
    let version = version.ok_or_else(|| wrong("params.protocolVersion must be a string".into()))?;
    let object = |name: &str| params.get(name).filter(|raw| raw.starts_with('{')).unwrap_or("{}");
    let capabilities = object("capabilities");
    let mut client_info = object("clientInfo");
    if client_info == "{}" {
        client_info = r#"{"name":"unknown","version":"0"}"#;
    }
    Ok(Greeting {
        // A version nobody here knows is answered with the newest legacy one; the caller decides (L2).
        revision: Revision::legacy(&version).unwrap_or(Revision::LATEST_LEGACY),
        params: raw.into(),
        capabilities: capabilities.into(),
        client_info: client_info.into(),
        class: CapabilityClass::of(capabilities),
    })
}

/// What is declared: all that any server has; and everything, while some server is not known yet.
fn capabilities<'a>(servers: impl Iterator<Item = Option<&'a Introduction>>, revision: Revision) -> Offered {
    let mut all = Offered::default();
    for server in servers {
        all = all.or(server.map_or(Offered::ANYTHING, Offered::by));
    }
    // Lists change here when servers come and go, whatever they tell themselves.
    all.tells = all.has;
    // 2024-11-05 has no such capability.
    all.completions &= revision > Revision::V2024_11_05;
    all
}
