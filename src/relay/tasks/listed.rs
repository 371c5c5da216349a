//! `tasks/list` (2025-11-25): the tasks that the session knows, as their servers describe them now, in one page.

use std::sync::Arc;
use std::time::Duration;

use crate::protocol::edit::Edit;
use crate::protocol::error::RpcError;
use crate::protocol::method::Method;
use crate::protocol::object::{Object, items, text};
use crate::protocol::revision::Era;
use crate::protocol::task;
use crate::relay::request::{Next, no_cursor, respond};
use crate::relay::serving::Serving;
use crate::relay::shared::Pick;
use crate::relay::{Relay, Session};
use crate::settings::ServerSettings;
use crate::store::lock;
use crate::upstream::{Hello, Outgoing};

use super::{heard, no_tasks};

/// Pages read of one server's list; what stands behind them is left out.
const MOST_PAGES: usize = 100;

// === impl Relay ===

impl Relay {
    /// Answers `tasks/list`. A server that does not answer within `timeouts.list` is left out.
    ///
    /// # Errors
    /// -32601 where nobody has tasks, -32602 for a cursor.
    pub(in crate::relay) async fn list_tasks(
        self: &Arc<Self>,
        serving: Serving<'_>,
    ) -> Result<Next, RpcError> {
        let (session, request) = (serving.session, serving.request);
        if !self.has_tasks(serving.endpoint) {
            return Err(no_tasks(request));
        }
        no_cursor(request)?;
        let has = |server: &&Arc<ServerSettings>| lock(&session.attached.begun).any_at(&server.name);
        let servers: Vec<_> = serving.endpoint.servers.iter().filter(has).collect();
        let reads = servers.into_iter().map(|server| self.tasks_at(session, server));
        let tasks = futures_util::future::join_all(reads).await.concat();
        let result = format!(r#"{{"tasks":[{}]}}"#, tasks.join(","));
        Ok(Next::Caller(respond(request.id(), result.as_bytes()).into()))
    }

    async fn tasks_at(self: &Arc<Self>, session: &Arc<Session>, server: &Arc<ServerSettings>) -> Vec<String> {
        let mut tasks = Vec::new();
        let limit = server.timeouts.list;
        if self.read_tasks(session, server, limit, &mut tasks).await.is_none() {
            tracing::warn!(server = %server.name, "the tasks of server `{}` cannot be listed", server.name);
            self.metrics.list_failed(&server.name);
        }
        tasks
    }

    /// Reads all pages; `None` if one could not be read.
    async fn read_tasks(
        self: &Arc<Self>,
        session: &Arc<Session>,
        server: &Arc<ServerSettings>,
        limit: Duration,
        tasks: &mut Vec<String>,
    ) -> Option<()> {
        let deadline = tokio::time::Instant::now() + limit;
        let opening = self.link(session, server, Pick::Any);
        let connected = tokio::time::timeout_at(deadline, opening).await.ok()?.ok()?;
        let introduction = connected.link.introduction();
        let offered = Object::parse(&introduction.capabilities).ok()?.get("tasks");
        let listed = offered.and_then(|raw| Object::parse(raw).ok()?.get("list"));
        if listed.is_none() || connected.link.era() != Era::Legacy {
            return Some(());
        }
        let mut cursor = String::new();
        for _ in 0..MOST_PAGES {
            let id = connected.link.allot();
            let request = Outgoing::own(Era::Legacy, id, &Method::TasksList, &cursor, &Hello::own());
            let call = connected.link.call(id, request, connected.origin.clone());
            let response = tokio::time::timeout_at(deadline, call).await.ok()?.ok()?;
            let page = Object::parse(response.result()?).ok()?;
            for raw in items(page.get("tasks")?)? {
                tasks.extend(known(session, &server.name, raw));
            }
            match page.get("nextCursor").filter(|next| *next != "null") {
                Some(next) => cursor = format!(r#""cursor":{next}"#),
                None => return Some(()),
            }
        }
        None
    }
}

/// A task of a server's list as the caller knows it; none if the session does not know it.
fn known(session: &Session, server: &str, raw: &str) -> Option<String> {
    let id = task::id_in(raw)?;
    let sealed = lock(&session.attached.begun).sealed(server, &text(id)?)?;
    let edit = heard::with(Edit::of(raw.as_bytes()), task::written(id, raw.as_bytes(), &sealed));
    String::from_utf8(edit.finish().into()).ok()
}
