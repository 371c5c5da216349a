//! What modern servers are told of the caller of a legacy session: the same with each request, so made once (X3, X4).

use super::Session;
use super::links::hello_of;
use crate::protocol::capability::CapabilityClass;
use crate::protocol::translate;
use crate::settings::ServerSettings;
use crate::upstream::Hello;

/// What modern servers are told of a caller.
pub(super) struct Presented {
    /// Members of `_meta`, raw.
    pub(super) meta: Box<str>,
    /// What the caller can be asked: of no other kind may an input request be (R4).
    pub(super) class: CapabilityClass,
}

/// What `server`, and every other modern one, is told of the caller of `session`.
pub(super) fn presented<'a>(session: &'a Session, server: &ServerSettings) -> &'a Presented {
    session.attached.presented.get_or_init(|| {
        // It depends on the session alone: which legacy revision the server would be asked for changes nothing.
        let hello = Hello { revision: session.revision(), ..hello_of(session, server) };
        let said = translate::capabilities(&hello.capabilities, hello.revision);
        Presented { meta: hello.meta().into(), class: CapabilityClass::of(&said) }
    })
}
