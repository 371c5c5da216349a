//! Reading a server's list onto the shelf: one reader at a time, tried again for as long as somebody misses it.

use std::sync::Arc;

use tokio::time::Instant;

use super::links::{Opened, hello_of};
use super::lists::class_for;
use super::shared::{Pick, SHARED_CLASS};
use super::{Relay, Session};
use crate::catalog::fetch::fetch;
use crate::catalog::shelf::{Reading, Waiting};
use crate::catalog::{CallerClass, Kind, List};
use crate::settings::ServerSettings;
use crate::settings::servers::Isolation;
use crate::upstream::failure::ERA_CHANGED;
use crate::upstream::{Failure, Hello};

/// Over whose link a list is read.
#[derive(Clone)]
pub(super) enum Reader {
    /// This session's own.
    Session(Arc<Session>),
    /// One that all sessions of a tenant share.
    Tenant(Option<Box<str>>),
}

// === impl Reader ===

impl Reader {
    /// The reader for a list that a session misses.
    pub(super) fn for_session(session: &Arc<Session>, server: &ServerSettings) -> Self {
        match server.isolation {
            Isolation::Session => Self::Session(session.clone()),
            Isolation::Shared { .. } => Self::Tenant(session.attached.tenant.clone()),
        }
    }

    fn class(&self, server: &ServerSettings) -> CallerClass {
        match self {
            Self::Session(session) => class_for(session, server),
            Self::Tenant(_) => SHARED_CLASS,
        }
    }

    /// For whom the list is read.
    fn hello(&self, server: &ServerSettings) -> Hello {
        match self {
            Self::Session(session) => hello_of(session, server),
            Self::Tenant(_) => Hello::own(),
        }
    }

    /// Whether somebody is left who may want the list.
    fn is_of_use(&self, relay: &Relay) -> bool {
        match self {
            Self::Session(session) => !session.ended.is_cancelled(),
            Self::Tenant(tenant) => !relay.sessions_of(tenant.as_deref()).is_empty(),
        }
    }
}

// === impl Relay ===

impl Relay {
    /// Has a list read on a task of its own, unless somebody reads it already.
    pub(super) fn read_list(
        self: &Arc<Self>,
        reader: &Reader,
        server: &Arc<ServerSettings>,
        kind: Kind,
    ) -> Waiting {
        let shelf = self.catalog.of(server).shelf(reader.class(server));
        match shelf.read(kind) {
            Reading::Theirs(waiting) => waiting,
            Reading::Yours(done, waiting) => {
                let (relay, reader, server) = (self.clone(), reader.clone(), server.clone());
                self.tasks.spawn(async move {
                    let outcome = relay.read_now(&reader, &server, kind).await;
                    let failed = outcome.is_err();
                    done.send_replace(Some(outcome.ok()));
                    drop(done);
                    if failed {
                        relay.try_again(reader, server, kind).await;
                    }
                });
                waiting
            }
        }
    }

    async fn read_now(
        self: &Arc<Self>,
        reader: &Reader,
        server: &Arc<ServerSettings>,
        kind: Kind,
    ) -> Result<Arc<List>, Failure> {
        let shelves = self.catalog.of(server);
        let class = reader.class(server);
        let shelf = shelves.shelf(class);
        let read = async || {
            let connected = self.link_of(reader, server).await?;
            let changes = shelf.changes(kind);
            let hello = reader.hello(server);
            let list =
                fetch(&connected.link, server, kind, &hello, class.revision, connected.origin.clone()).await;
            // A link that does not open is logged where it was to be opened.
            let list = list.inspect_err(|failure| {
                let layer = failure.layer.as_str();
                tracing::warn!(server = %server.name, layer, kind = kind.member(), "a list cannot be read: {failure}");
            })?;
            let before = shelf.last_good(kind);
            let list = self.catalog.put(&shelves, class, kind, list, changes);
            // Whichever replica a caller comes to next is to show the same.
            if before.is_none_or(|before| before.digest != list.digest) {
                self.tell_peers(server);
            }
            Ok(list)
        };
        let mut outcome: Result<_, Failure> = read().await;
        if outcome.as_ref().is_err_and(|failure| failure.reason == ERA_CHANGED) {
            outcome = read().await;
        }
        outcome.inspect_err(|_| {
            if shelf.fail(kind) {
                tracing::warn!(server = %server.name, kind = kind.member(), "its last good list is shown no longer");
                self.catalog.note_change();
            }
        })
    }

    /// After a failure: reads again when it is time, for a caller who would else never learn that the server is
    /// back. One such wait runs for each list, since a new failure begins the next.
    async fn try_again(self: &Arc<Self>, reader: Reader, server: Arc<ServerSettings>, kind: Kind) {
        let shelf = self.catalog.of(&server).shelf(reader.class(&server));
        let Some(at) = shelf.retry_at(kind) else { return };
        let wait = at.saturating_duration_since(Instant::now());
        match &reader {
            Reader::Session(session) => {
                tokio::select! {
                    () = tokio::time::sleep(wait) => {}
                    () = session.ended.cancelled() => return,
                }
            }
            Reader::Tenant(_) => {
                tokio::select! {
                    () = tokio::time::sleep(wait) => {}
                    () = self.stopping.cancelled() => return,
                }
            }
        }
        if reader.is_of_use(self) && self.catalog.knows(&server) && shelf.is_due(kind) {
            self.read_list(&reader, &server, kind);
        }
    }

    async fn link_of(self: &Arc<Self>, reader: &Reader, server: &Arc<ServerSettings>) -> Opened {
        match (reader, server.isolation) {
            (Reader::Session(session), _) => self.link(session, server, Pick::Any).await,
            (Reader::Tenant(tenant), Isolation::Shared { size }) => {
                self.shared_link(tenant.as_deref(), server, size, Pick::Any).await
            }
            (Reader::Tenant(_), Isolation::Session) => unreachable!("it reads over a shared link"),
        }
    }
}
