//! The tasks that a modern caller listens to (`taskIds` of `subscriptions/listen`, J5), and what it is told of them.

use std::collections::HashMap;

use bytes::Bytes;

use crate::catalog::Endpoint;
use crate::protocol::edit::Edit;
use crate::protocol::envelope::{Notification, Span};
use crate::protocol::meta::SUBSCRIPTION_ID;
use crate::protocol::object::{Object, text};
use crate::protocol::task;
use crate::protocol::translate::{Change, with_first};
use crate::relay::{Relay, Session};

/// The tasks of one listen at one server: the server's own id of each, and the caller's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Watched(HashMap<Box<str>, Box<str>>);

// === impl Watched ===

impl Watched {
    /// What the server calls them.
    pub(super) fn own_ids(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(|own| &**own)
    }

    /// The id that the caller wrote.
    pub(super) fn callers_id(&self, own: &str) -> Option<&str> {
        self.0.get(own).map(|id| &**id)
    }

    /// The server's `notifications/tasks` as the caller knows it, on its listen of this raw id; `None` if it did not
    /// ask for that task.
    pub(super) fn renamed(&self, message: &Notification, listen: &str) -> Option<Bytes> {
        let whole = message.bytes();
        let params = message.params()?;
        let raw = task::id_in(params)?;
        let id = task::written(raw, whole, self.callers_id(&text(raw)?)?);
        let changes = vec![id, subscription(whole, params, listen)];
        Some(Edit::of(whole).replace_all(changes).finish())
    }
}

/// The change that says to which listen a notification belongs (M7).
fn subscription(whole: &[u8], params: &str, listen: &str) -> Change {
    let member = format!(r#""{SUBSCRIPTION_ID}":{listen}"#);
    let meta = Object::parse(params).ok().and_then(|p| p.get("_meta")).filter(|raw| raw.starts_with('{'));
    let Some(meta) = meta else { return with_first(whole, params, &format!(r#""_meta":{{{member}}}"#)) };
    match Object::parse(meta).ok().and_then(|m| m.get(SUBSCRIPTION_ID)) {
        Some(raw) => (Span::of(raw, whole), listen.to_owned()),
        None => with_first(whole, meta, &member),
    }
}

// === impl Relay ===

impl Relay {
    /// The tasks that a listen of `session`'s caller asks for by `ids`, by server; an id that was not given to it is
    /// left out, and so is missing from what is acknowledged.
    pub(super) fn watched(
        &self,
        session: &Session,
        endpoint: &Endpoint,
        ids: &[String],
    ) -> HashMap<Box<str>, Watched> {
        let mut watched: HashMap<Box<str>, Watched> = HashMap::new();
        for id in ids {
            if let Some(task) = self.unseal_task(session, id)
                && endpoint.servers.iter().any(|s| *s.name == *task.server)
            {
                watched.entry(task.server).or_default().0.insert(task.own, id.as_str().into());
            }
        }
        watched
    }
}
