//! The failures of a handshake, in words for a person.

use super::{Handshake, Meeting};
use crate::protocol::error::Layer;
use crate::protocol::revision::Revision;
use crate::upstream::{Delivery, Failure};

// === impl Meeting ===

impl Meeting {
    /// What the child is asked, for a message.
    fn questions(self) -> &'static str {
        match self {
            Self::Discover => "neither `server/discover` nor `initialize`",
            Self::DiscoverOnly => "no `server/discover`",
            Self::Initialize | Self::InitializeOnly => "no `initialize`",
        }
    }
}

// === impl Handshake ===

impl Handshake<'_> {
    pub(super) fn failure(&self, reason: &'static str, message: String) -> Failure {
        self.wire.failure(Layer::Handshake, reason, message, Delivery::NotDelivered)
    }

    pub(super) fn too_new(&self, versions: &str) -> Failure {
        let server = self.wire.server();
        let why = format!(
            "Server `{server}` speaks only protocol versions that are not served here: {versions}; served are {} and {}.",
            Revision::dates(&Revision::LEGACY),
            Revision::dates(&Revision::MODERN),
        );
        self.failure("unsupported_revision", why)
    }

    pub(super) fn not_modern(&self) -> Failure {
        let (server, latest) = (self.wire.server(), Revision::LATEST);
        let why = format!(
            "Server `{server}` is configured for protocol {latest}, but did not answer `server/discover` as a server of \
             that protocol does; correct its `protocol`, or leave that out."
        );
        self.failure("bad_discover", why)
    }

    /// The failure of a child that is late.
    pub(super) fn too_slow(&self, meeting: Meeting, stderr: u64) -> Failure {
        if let Some(refusal) = self.refusal.get() {
            return refusal.clone();
        }
        let (server, start) = (self.wire.server(), self.wire.settings.timeouts.start);
        let why = format!(
            "Server `{server}` answered {} within {start:?} and was ended ({stderr} lines on stderr); if it needs \
             longer to start, raise its `timeouts.start`.",
            meeting.questions(),
        );
        self.failure("start_timeout", why)
    }
}
