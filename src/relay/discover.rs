//! `server/discover`: what the gateway is to a modern caller, written once for each endpoint and state of the catalog.
//!
//! Unlike `initialize`, a caller can ask again, so a server of which nothing is known is waited for, within
//! `timeouts.list`; while one stays unknown, everything it might have is declared, and the answer is not to be kept.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::lists::complete;
use super::offered::{Offered, instructions};
use super::shared::Pick;
use super::{Relay, Session, extensions};
use crate::catalog::{Endpoint, Hints, Scope};
use crate::protocol::edit::Text;
use crate::protocol::envelope::Request;
use crate::protocol::object::quoted;
use crate::protocol::revision::{Era, Revision};
use crate::settings::ServerSettings;
use crate::settings::servers::TransportSettings;
use crate::upstream::{Heard, Introduction};

/// How long callers may keep the answer. A server that says something else of itself meanwhile does so mostly
/// because it was begun anew, and its callers learn by the error of a call.
const TTL: Duration = Duration::from_mins(1);

/// How long a server that did not answer is not waited for again.
const PATIENCE: Duration = Duration::from_secs(5);

/// The answer for one endpoint.
pub(super) struct Discovery {
    endpoint: Arc<Endpoint>,
    generation: u64,
    whole: Whole,
    /// The result without its first brace, and the brace that closes a response.
    closed: Bytes,
}

/// Whether something is known of every server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whole {
    Yes,
    /// Not, at that time.
    NotAt(Instant),
}

// === impl Discovery ===

impl Discovery {
    fn is_current(&self, endpoint: &Arc<Endpoint>, generation: u64) -> bool {
        let told = match self.whole {
            Whole::Yes => true,
            Whole::NotAt(at) => at.elapsed() < PATIENCE,
        };
        told && self.generation == generation && Arc::ptr_eq(&self.endpoint, endpoint)
    }
}

// === impl Relay ===

impl Relay {
    /// Answers `server/discover`.
    pub(super) async fn discover(
        self: &Arc<Self>,
        session: &Arc<Session>,
        endpoint: &Arc<Endpoint>,
        request: &Request,
    ) -> Text {
        let current = |d: &Arc<Discovery>| d.is_current(endpoint, self.catalog.generation());
        let written = match self.discoveries.get(&endpoint.path).filter(current) {
            Some(written) => written,
            None => self.meet_and_write(session, endpoint).await,
        };
        let head = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"#, request.id());
        Text { head: head.into(), tail: written.closed.clone() }
    }

    async fn meet_and_write(
        self: &Arc<Self>,
        session: &Arc<Session>,
        endpoint: &Arc<Endpoint>,
    ) -> Arc<Discovery> {
        let before = self.discoveries.get(&endpoint.path);
        // A server that did not answer a moment ago is not waited for, whatever else has changed.
        let waited = before.and_then(|d| match d.whole {
            Whole::NotAt(at) if at.elapsed() < PATIENCE => Some(at),
            Whole::NotAt(_) | Whole::Yes => None,
        });
        if waited.is_none() {
            let unmet = endpoint.servers.iter().filter(|server| self.catalog.introduction(server).is_none());
            futures_util::future::join_all(unmet.map(|server| self.meet(session, server))).await;
        }
        // Taken before the servers are looked at, so that a change meanwhile makes this an old one.
        let generation = self.catalog.generation();
        let known: Vec<_> = endpoint.servers.iter().map(|s| (s, self.catalog.introduction(s))).collect();
        let servers: Vec<_> = known.iter().map(|(s, i)| (&***s, i.as_deref())).collect();
        let declared =
            known.iter().map(|(server, introduction)| self.declared(server, introduction.as_deref()));
        let declared = declared.fold(Offered::default(), Offered::or);
        let whole = known.iter().all(|(_, introduction)| introduction.is_some());
        let ttl = if whole { TTL } else { Duration::ZERO };
        let said = known.iter().filter_map(|(s, i)| Some((s.name.as_str(), i.as_deref()?)));
        let instructions = instructions(endpoint, said);
        let instructions =
            instructions.map_or_else(String::new, |text| format!(r#","instructions":{}"#, quoted(&text)));
        let versions: Vec<String> = Revision::MODERN.iter().map(|r| format!(r#""{r}""#)).collect();
        let closed = format!(
            r#"{},"supportedVersions":[{}],"capabilities":{}{instructions}}}}}"#,
            complete(Hints { ttl, scope: Scope::Private }),
            versions.join(","),
            declared.written(extensions::declared(endpoint, Revision::LATEST, &servers)),
        );
        let whole = if whole { Whole::Yes } else { Whole::NotAt(waited.unwrap_or_else(Instant::now)) };
        let discovery =
            Arc::new(Discovery { endpoint: endpoint.clone(), generation, whole, closed: closed.into() });
        self.discoveries.insert(endpoint.path.clone(), discovery.clone());
        discovery
    }

    /// Learns what a server says of itself, within `timeouts.list`.
    async fn meet(self: &Arc<Self>, session: &Arc<Session>, server: &Arc<ServerSettings>) {
        let limit = server.timeouts.list;
        // On a task of its own: what the server says later than that is none the less known then.
        let met = {
            let (relay, session, server) = (self.clone(), session.clone(), server.clone());
            self.tasks.spawn(async move {
                let opened = relay.link(&session, &server, Pick::First).await;
                if opened.is_ok_and(|connected| connected.link.era() == Era::Legacy) {
                    relay.telling(&server, Instant::now() + limit).await;
                }
            })
        };
        if tokio::time::timeout(limit, met).await.is_err() {
            tracing::debug!(server = %server.name, ?limit, "a server did not say in time what it is");
        }
    }

    /// What a server offers of which callers can be told here.
    fn declared(&self, server: &Arc<ServerSettings>, introduction: Option<&Introduction>) -> Offered {
        let Some(introduction) = introduction else { return Offered::ANYTHING };
        let declared = Offered::by(introduction);
        let by_http = matches!(server.transport, TransportSettings::Http(_));
        let deaf = by_http
            && introduction.revision.era() == Era::Legacy
            && self.catalog.heard_now(server) == Some(Heard::Never);
        if deaf { declared.untold() } else { declared }
    }
}
