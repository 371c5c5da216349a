//! A caller takes a request back: its own, of its own session, and no other (case-H09).

use super::Session;
use crate::protocol::envelope::Notification;
use crate::protocol::object::Object;

/// Cancels what `notifications/cancelled` names; an unknown or finished id is ignored (P4).
pub(super) fn cancel(session: &Session, notification: &Notification) {
    let params = notification.params().and_then(|raw| Object::parse(raw).ok());
    let Some(id) = params.as_ref().and_then(|p| p.get("requestId")) else { return };
    if let Some(exchange) = session.attached.exchanges.by_caller_id(id) {
        exchange.cancelled.cancel();
    }
}
