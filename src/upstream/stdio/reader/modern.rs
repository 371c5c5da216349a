//! What a modern child writes beside its responses: each message names what it belongs to, or belongs to nobody.

use super::Reader;
use crate::protocol::envelope::{Notification, Request};
use crate::protocol::meta;
use crate::protocol::object::Object;
use crate::upstream::UpstreamId;
use crate::upstream::stdio::number::upstream_id;

// === impl Reader ===

impl Reader {
    /// T65: what names a `subscriptions/listen` is for that one. What names nothing, such as a log message, can only
    /// be for the one call that runs, if no other does (P1, X39).
    pub(super) fn attribute(&self, notification: Notification) {
        let pending = &self.wire.pending;
        let listener = match subscription(&notification) {
            Some(id) => id.and_then(|id| pending.listener(id)),
            None => pending.only_caller(),
        };
        match listener {
            Some(listener) => {
                listener.notification(notification);
                listener.settled();
            }
            None => self.wire.metrics.unattributed(self.wire.server()),
        }
    }

    /// T61: a modern child asks by its results. What it asks in another way is not passed on, and not answered, since
    /// a modern client writes no responses.
    pub(super) fn violation(&mut self, request: &Request) {
        self.wire.metrics.unattributed(self.wire.server());
        if let Some(hidden) = self.throttle.pass() {
            let (server, method) = (self.wire.server(), request.method().label());
            tracing::debug!(
                server,
                hidden,
                method,
                "a server of the modern era sent a request; it was dropped"
            );
        }
    }
}

/// The listen a notification names: `Some(None)` if that is none of ours.
fn subscription(notification: &Notification) -> Option<Option<UpstreamId>> {
    let params = Object::parse(notification.params()?).ok()?;
    let meta = Object::parse(params.get("_meta")?).ok()?;
    meta.get(meta::SUBSCRIPTION_ID).map(upstream_id)
}
