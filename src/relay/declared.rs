//! What modern servers are told of the caller of a legacy session: the same with each request, so made once (X3, X4).

use super::Session;
use super::links::relayable;
use crate::protocol::capability::CapabilityClass;
use crate::protocol::translate;
use crate::upstream::Hello;

/// What modern servers are told of a caller.
pub(super) struct Declared {
    /// Members of `_meta`, raw.
    pub(super) meta: Box<str>,
    /// What the caller can be asked: of no other kind may an input request be (R4).
    pub(super) class: CapabilityClass,
}

/// What modern servers are told of the caller of `session`.
pub(super) fn declared(session: &Session) -> &Declared {
    session.attached.declared.get_or_init(|| {
        let greeting = &session.greeting;
        let hello = Hello {
            revision: greeting.revision,
            capabilities: relayable(&greeting.capabilities),
            client_info: greeting.client_info.clone(),
        };
        let said = translate::capabilities(&hello.capabilities, hello.revision);
        Declared { meta: hello.meta().into(), class: CapabilityClass::of(&said) }
    })
}
