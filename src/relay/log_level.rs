//! `logging/setLevel`: kept in the session, sent to every link that supports it; and what a new link must be told.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::deaf::Deaf;
use super::{Relay, Session};
use crate::protocol::envelope::Request;
use crate::protocol::error::{Code, RpcError};
use crate::protocol::object::{Object, quoted};
use crate::settings::ServerSettings;
use crate::store::lock;
use crate::store::sessions::Change;
use crate::upstream::Link;

/// The levels, least severe first (P1).
const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
/// How long the caller waits for its servers to take the level; slower ones get it none the less.
const PATIENCE: Duration = Duration::from_secs(2);

// === impl Relay ===

impl Relay {
    /// Answers `logging/setLevel`.
    ///
    /// # Errors
    /// -32602 for a level that there is not (P2).
    pub(super) async fn set_level(
        &self,
        session: &Arc<Session>,
        request: &Request,
    ) -> Result<Bytes, RpcError> {
        let params = request.params().and_then(|raw| Object::parse(raw).ok());
        let level = params.as_ref().and_then(|p| p.text("level"));
        let Some(level) = level.and_then(|l| LEVELS.into_iter().find(|known| *known == l)) else {
            let message = format!("`level` must be one of {}", LEVELS.join(", "));
            return Err(RpcError::new(Code::InvalidParams, "invalid_params", message));
        };
        session.set_log_level(level);
        let _ = self.sessions.change(session, Change::LogLevel(level.into())).await;
        let tell = session
            .attached
            .links
            .all_live()
            .into_iter()
            .map(|(_, link)| self.tasks.spawn(async move { send_level(&link, level).await }));
        let all: Vec<_> = tell.collect();
        let _ = tokio::time::timeout(PATIENCE, futures_util::future::join_all(all)).await;
        Ok(super::request::respond(request.id(), b"{}"))
    }

    /// Brings a new link to the session's state: its log level and its subscriptions.
    pub(super) async fn restore(&self, session: &Session, server: &ServerSettings, link: &Arc<Link>) {
        if let Some(level) = session.log_level() {
            send_level(link, &level).await;
        }
        let subscribed: Vec<Arc<str>> = {
            let all = lock(&session.attached.subscriptions);
            all.values().filter(|s| *s.server == *server.name).map(|s| s.own.clone()).collect()
        };
        for uri in subscribed {
            let id = link.allot();
            let uri = quoted(&uri);
            let text = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"resources/subscribe","params":{{"uri":{uri}}}}}"#
            );
            let call = link.call(id, text.into(), Arc::new(Deaf));
            if !matches!(tokio::time::timeout(server.timeouts.list, call).await, Ok(Ok(r)) if r.result().is_some())
            {
                tracing::warn!(server = %server.name, "a resource subscription could not be made again");
            }
        }
    }
}

async fn send_level(link: &Arc<Link>, level: &str) {
    let introduction = link.introduction();
    let logs = Object::parse(&introduction.capabilities).is_ok_and(|c| c.get("logging").is_some());
    if !logs {
        return;
    }
    let id = link.allot();
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"logging/setLevel","params":{{"level":"{level}"}}}}"#
    );
    // A server that refuses the level goes on with its own (G13).
    let _ = tokio::time::timeout(PATIENCE, link.call(id, text.into(), Arc::new(Deaf))).await;
}
