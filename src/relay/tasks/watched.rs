//! Tasks that a modern caller listens to (`taskIds` of `subscriptions/listen`, J5).

use std::collections::HashMap;

use bytes::Bytes;

use super::needs_tasks;
use crate::catalog::Endpoint;
use crate::protocol::capability::Capability;
use crate::protocol::edit::Edit;
use crate::protocol::envelope::Notification;
use crate::protocol::error::RpcError;
use crate::protocol::object::text;
use crate::protocol::task;
use crate::relay::{Relay, Session};

/// The tasks of one listen: by server, each server's own id and the caller's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::relay) struct Watched(HashMap<Box<str>, HashMap<Box<str>, Box<str>>>);

// === impl Watched ===

impl Watched {
    /// Whether there are none.
    pub(in crate::relay) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The servers that have one.
    pub(in crate::relay) fn servers(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(|server| &**server)
    }

    /// What a server calls those that it has.
    pub(in crate::relay) fn own_ids(&self, server: &str) -> Vec<&str> {
        self.0.get(server).into_iter().flat_map(HashMap::keys).map(|own| &**own).collect()
    }

    /// The ids as the caller wrote them of those a server takes to be listened to.
    pub(in crate::relay) fn callers_id(&self, server: &str, own: &str) -> Option<&str> {
        self.0.get(server)?.get(own).map(|id| &**id)
    }

    /// A server's `notifications/tasks` as the caller of this listen knows it; `None` if it did not ask for that task.
    pub(in crate::relay) fn renamed(&self, server: &str, message: &Notification) -> Option<Bytes> {
        let raw = task::id_in(message.params()?)?;
        let (place, id) = task::written(raw, message.bytes(), self.callers_id(server, &text(raw)?)?);
        Some(Edit::of(message.bytes()).replace_owned(place, id).finish())
    }
}

// === impl Relay ===

impl Relay {
    /// The tasks that a listen of `session`'s caller asks for by `ids`; an id that was not given to it is left out, and
    /// so is missing from what is acknowledged.
    ///
    /// # Errors
    /// -32021 if the caller did not declare the extension with this request (N9).
    pub(in crate::relay) fn watched(
        &self,
        session: &Session,
        endpoint: &Endpoint,
        ids: &[&str],
    ) -> Result<Watched, RpcError> {
        if !session.greeting.class.has(Capability::TasksExtension) {
            return Err(needs_tasks());
        }
        let mut watched = Watched::default();
        for id in ids {
            if let Some(task) = self.unseal_task(session, id)
                && endpoint.servers.iter().any(|s| *s.name == *task.server)
            {
                watched.0.entry(task.server).or_default().insert(task.own, (*id).into());
            }
        }
        Ok(watched)
    }
}
