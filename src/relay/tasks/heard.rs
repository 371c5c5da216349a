//! Tasks in what is said outside of their own requests (2025-11-25): what a server tells of one reaches the session
//! that knows it, under the id that it has there (M9), and the other way round.

use bytes::Bytes;

use crate::protocol::edit::Edit;
use crate::protocol::envelope::{Notification, Span};
use crate::protocol::method::Method;
use crate::protocol::object::{Object, text};
use crate::protocol::task;
use crate::protocol::translate::Change;
use crate::relay::{Relay, Session};
use crate::store::lock;

/// A server's notification about a task as the caller of `session` understands it; `None` if the session knows no such
/// task, or it is no such notification.
pub(in crate::relay) fn about_task(session: &Session, server: &str, message: &Notification) -> Option<Bytes> {
    if lock(&session.attached.begun).is_empty() {
        return None;
    }
    let params = message.params()?;
    let change = match message.method() {
        Method::TaskStatus => known(session, server, task::id_in(params)?, message.bytes())?,
        Method::Progress => {
            let raw = Object::parse(params).ok()?.get("progressToken")?;
            let token = lock(&session.attached.begun).callers_token(server, raw.trim_matches('"'))?;
            (Span::of(raw, message.bytes()), token.to_string())
        }
        _ => return None,
    };
    let more = related_by_server(session, server, params, message.bytes());
    let edit = more.into_iter().chain([change]).fold(Edit::of(message.bytes()), with);
    Some(edit.finish())
}

/// Any other notification of a server, with the task it belongs to named as the caller knows it.
pub(in crate::relay) fn renamed(session: &Session, server: &str, message: &Notification) -> Bytes {
    let change = message.params().and_then(|p| related_by_server(session, server, p, message.bytes()));
    match change {
        Some(change) => with(Edit::of(message.bytes()), change).finish(),
        None => message.bytes().clone(),
    }
}

/// The change for the task that a server's `params` say they belong to.
pub(in crate::relay) fn related_by_server(
    session: &Session,
    server: &str,
    params: &str,
    whole: &[u8],
) -> Option<Change> {
    known(session, server, task::related(params)?, whole)
}

fn known(session: &Session, server: &str, raw: &str, whole: &[u8]) -> Option<Change> {
    let sealed = lock(&session.attached.begun).sealed(server, &text(raw)?)?;
    Some(task::written(raw, whole, &sealed))
}

/// Makes one change of many.
pub(in crate::relay) fn with(edit: Edit<'_>, (place, new): Change) -> Edit<'_> {
    edit.replace_owned(place, new)
}

// === impl Relay ===

impl Relay {
    /// The change for the task that a caller says its message belongs to; `raw` is the id it wrote. An id that was not
    /// given to it is no task of its own, and no server shall take it for one.
    pub(in crate::relay) fn related_by_caller(&self, session: &Session, raw: &str, whole: &[u8]) -> Change {
        let id = text(raw).and_then(|id| self.unseal_task(session, &id));
        task::written(raw, whole, id.as_ref().map_or("", |id| &id.own))
    }
}
