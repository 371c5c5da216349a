//! `logging/setLevel`: kept in the session, sent to every link that supports it; and what a link is told that is
//! opened later.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::exchange::Exchange;
use super::links::Connected;
use super::{Relay, Session};
use crate::catalog::Endpoint;
use crate::protocol::envelope::{Notification, Request};
use crate::protocol::error::{Code, RpcError};
use crate::protocol::meta::LOG_LEVELS as LEVELS;
use crate::protocol::object::Object;
use crate::protocol::revision::Era;
use crate::settings::servers::Isolation;
use crate::store::sessions::Change;

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
        endpoint: &Endpoint,
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
        self.tell_level(session, endpoint, level).await;
        Ok(super::request::respond(request.id(), b"{}"))
    }

    /// Makes the servers of a modern caller's session as verbose as this request wants; they never become less so,
    /// for what each request wants is looked at when a message comes (X39).
    pub(super) async fn raise_level(&self, session: &Arc<Session>, endpoint: &Endpoint, level: &str) {
        let Some(wanted) = LEVELS.into_iter().find(|known| *known == level) else { return };
        let now = session.log_level().and_then(|level| severity(&level));
        if now.is_none_or(|now| Some(now) > severity(wanted)) {
            session.set_log_level(wanted);
            self.tell_level(session, endpoint, wanted).await;
        }
    }

    /// Tells all links that a session may hear.
    async fn tell_level(&self, session: &Arc<Session>, endpoint: &Endpoint, level: &'static str) {
        let own = session.attached.links.all_live().into_iter();
        let mut links: Vec<(Connected, &'static str)> = own.map(|(_, link)| (link, level)).collect();
        links.extend(self.shared_levels(session, endpoint));
        let tell =
            links.into_iter().map(|(link, level)| self.tasks.spawn(async move { send(&link, level).await }));
        let all: Vec<_> = tell.collect();
        let _ = tokio::time::timeout(PATIENCE, futures_util::future::join_all(all)).await;
    }

    /// The shared links that `session` may hear, with the level each shall have: the most verbose asked for.
    fn shared_levels(&self, session: &Session, endpoint: &Endpoint) -> Vec<(Connected, &'static str)> {
        let tenant = session.attached.tenant.as_deref();
        let mut links = self.shared.live(tenant);
        links.retain(|(server, _)| endpoint.servers.iter().any(|s| Arc::ptr_eq(s, server)));
        if links.is_empty() {
            return Vec::new();
        }
        let Some(level) = most_verbose(&self.sessions_of(tenant)) else { return Vec::new() };
        links.into_iter().map(|(_, link)| (link, level)).collect()
    }

    /// Brings a link to the session's level, if it ever set one.
    pub(super) async fn restore_level(&self, session: &Session, link: &Connected) {
        if let Some(level) = session.log_level() {
            send(link, &level).await;
        }
    }
}

/// The most verbose level that any of these sessions set.
pub(super) fn most_verbose(sessions: &[Arc<Session>]) -> Option<&'static str> {
    let levels = sessions.iter().filter_map(|s| severity(&s.log_level()?));
    levels.min().and_then(|least| LEVELS.get(least)).copied()
}

/// Whether the caller of an exchange wants a log message. Over a link of its own the server knows what it wants;
/// a shared one speaks as verbosely as any of its callers asked for. A modern server is told with each request, and
/// before the caller set a level it wants nothing (X7).
pub(super) fn wanted(exchange: &Exchange, message: &Notification) -> bool {
    if let Some(modern) = exchange.outlet.for_modern() {
        return modern.wanted.log(message);
    }
    let Some(session) = exchange.session.upgrade() else { return true };
    let modern = exchange.link.era() == Era::Modern;
    if !modern && exchange.server.isolation == Isolation::Session {
        return true;
    }
    let level = session.log_level().and_then(|level| severity(&level));
    if modern && level.is_none() {
        return false;
    }
    let of = message.params().and_then(|p| severity(&Object::parse(p).ok()?.text("level")?));
    match (of, level) {
        (Some(of), Some(level)) => of >= level,
        _ => true,
    }
}

/// Tells a server the level, if it logs at all. A modern one hears it with each request instead (X7).
pub(super) async fn send(connected: &Connected, level: &str) {
    let Connected { link, origin } = connected;
    let introduction = link.introduction();
    if introduction.revision.era() == Era::Modern {
        return;
    }
    let logs = Object::parse(&introduction.capabilities).is_ok_and(|c| c.get("logging").is_some());
    if !logs {
        return;
    }
    let id = link.allot();
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"logging/setLevel","params":{{"level":"{level}"}}}}"#
    );
    // A server that refuses the level goes on with its own (G13).
    let _ = tokio::time::timeout(PATIENCE, link.call(id, text, origin.clone())).await;
}

/// How severe a level is; none if there is no such level.
pub(super) fn severity(level: &str) -> Option<usize> {
    LEVELS.iter().position(|known| *known == level)
}
