//! Listening to tasks for a modern caller (J5).
//!
//! What one caller asks for is its own, so its listen has one upstream listen at each server of its tasks. When one of
//! those ends, the caller's listen does too, with its result: its caller asks by `tasks/get` what it may have missed,
//! and listens anew.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::answer::undeclared;
use super::watched::Watched;
use crate::catalog::Endpoint;
use crate::protocol::capability::CapabilityClass;
use crate::protocol::envelope::{Notification, Request};
use crate::protocol::error::Code;
use crate::protocol::method::Method;
use crate::protocol::object::{Object, items, quoted, text};
use crate::protocol::revision::Era;
use crate::relay::links::hello_of;
use crate::relay::shared::Pick;
use crate::relay::{Relay, Session};
use crate::session::Streams;
use crate::session::log::EventKind;
use crate::settings::ServerSettings;
use crate::store::lock;
use crate::upstream::{Link, Listener, Outgoing, Reply, UpstreamId};

/// How many tasks one listen may name.
const MOST_TASKS: usize = 1000;
/// Notifications kept for a listen that is not acknowledged yet; more are lost, as they are before a listen.
const MOST_EARLY: usize = 64;

/// What a caller's listen is told of tasks, for as long as this lives.
pub(in crate::relay) struct TaskListens {
    caller: Arc<Caller>,
    /// The ids of tasks that are listened to, as the caller wrote them.
    accepted: Vec<String>,
    _end: DropGuard,
}

/// A caller's listen.
pub(in crate::relay) struct Caller {
    streams: Arc<Streams>,
    /// Its id, raw.
    listen: Box<str>,
    declared: CapabilityClass,
    /// What came before the acknowledgement went out; none once it has.
    early: Mutex<Option<Vec<Bytes>>>,
    /// Ends the listen with its result.
    ending: CancellationToken,
}

/// Hears the upstream listen at one server.
struct Ear {
    caller: Arc<Caller>,
    watched: Watched,
    /// The server's own ids that it acknowledged, once it has, or that nothing came of it.
    acknowledged: watch::Sender<Option<Vec<String>>>,
}

/// The ids of tasks in the raw `notifications` of a listen.
///
/// # Errors
/// What is wrong with them, for a person.
pub(in crate::relay) fn task_ids(notifications: &str) -> Result<Vec<String>, String> {
    let all = Object::parse(notifications).map_err(|e| e.to_string())?;
    let Some(raw) = all.get("taskIds").filter(|raw| *raw != "null") else { return Ok(Vec::new()) };
    let ids: Option<Vec<String>> =
        items(raw).and_then(|ids| ids.into_iter().map(|id| Some(text(id)?.into_owned())).collect());
    let ids = ids.ok_or("`notifications.taskIds` must be an array of strings")?;
    if ids.len() > MOST_TASKS {
        return Err(format!("a listen may name at most {MOST_TASKS} tasks"));
    }
    Ok(ids)
}

// === impl Relay ===

impl Relay {
    /// Has the servers of the tasks `ids` listened to, each within `timeouts.list`.
    pub(in crate::relay) async fn listen_to_tasks(
        self: &Arc<Self>,
        session: &Arc<Session>,
        endpoint: &Endpoint,
        ids: &[String],
        caller: Caller,
    ) -> TaskListens {
        let caller = Arc::new(caller);
        let end = CancellationToken::new();
        let guard = end.clone().drop_guard();
        let mut watched = self.watched(session, endpoint, ids);
        let listens = endpoint.servers.iter().filter_map(|server| {
            let watched = watched.remove(server.name.as_str())?;
            let ear = Ear { caller: caller.clone(), watched, acknowledged: watch::Sender::new(None) };
            Some(self.listen_at(session, server, Arc::new(ear), end.child_token()))
        });
        let listens: Vec<_> = listens.collect();
        let accepted = futures_util::future::join_all(listens).await.concat();
        TaskListens { caller, accepted, _end: guard }
    }

    /// Listens at one server; gives the ids of the tasks that it tells of, as the caller wrote them.
    async fn listen_at(
        self: &Arc<Self>,
        session: &Arc<Session>,
        server: &Arc<ServerSettings>,
        ear: Arc<Ear>,
        end: CancellationToken,
    ) -> Vec<String> {
        // What is not acknowledged in time is not listened to at all.
        let guard = end.clone().drop_guard();
        let acknowledged = async {
            // It would tell nothing, and the link may be another replica's to open.
            if self.known(server).era() == Some(Era::Legacy) {
                return None;
            }
            let connected = self.link(session, server, Pick::First).await.ok()?;
            if connected.link.era() == Era::Legacy {
                return None;
            }
            let link = connected.link;
            let id = link.allot();
            let ids: Vec<String> = ear.watched.own_ids().map(quoted).collect();
            let params = format!(r#""notifications":{{"taskIds":[{}]}}"#, ids.join(","));
            let request =
                Outgoing::own(Era::Modern, id, &Method::Listen, &params, &hello_of(session, server));
            self.tasks.spawn(keep(link, id, request, ear.clone(), end));
            let mut acknowledged = ear.acknowledged.subscribe();
            let own = acknowledged.wait_for(Option::is_some).await.ok()?.clone()?;
            Some(own.iter().filter_map(|own| Some(ear.watched.callers_id(own)?.to_owned())).collect())
        };
        let limit = server.timeouts.list;
        let accepted: Vec<String> =
            tokio::time::timeout(limit, acknowledged).await.ok().flatten().unwrap_or_default();
        if !accepted.is_empty() {
            guard.disarm();
        }
        accepted
    }
}

/// Keeps an upstream listen until `end`, or until its server ends it.
async fn keep(link: Arc<Link>, id: UpstreamId, request: Outgoing, ear: Arc<Ear>, end: CancellationToken) {
    tokio::select! {
        _ = link.call(id, request, ear.clone()) => {
            let told = ear.acknowledged.borrow().as_ref().is_some_and(|ids| !ids.is_empty());
            if told {
                ear.caller.ending.cancel();
            } else {
                ear.acknowledged.send_replace(Some(Vec::new()));
            }
        }
        () = end.cancelled() => link.forget(id, "no longer wanted").await,
    }
}

// === impl TaskListens ===

impl TaskListens {
    /// Whether no task is listened to.
    pub(in crate::relay) fn is_empty(&self) -> bool {
        self.accepted.is_empty()
    }

    /// What is acknowledged: `granted`, a raw object, and the tasks (N2).
    pub(in crate::relay) fn acknowledged(&self, granted: &str) -> String {
        if self.is_empty() {
            return granted.to_owned();
        }
        let ids: Vec<String> = self.accepted.iter().map(|id| quoted(id)).collect();
        let rest = granted.strip_prefix('{').unwrap_or("}");
        let comma = if rest == "}" { "" } else { "," };
        format!(r#"{{"taskIds":[{}]{comma}{rest}"#, ids.join(","))
    }

    /// The acknowledgement is out: what came before it goes behind it, and the rest as it comes.
    pub(in crate::relay) fn begin(&self) {
        let mut early = lock(&self.caller.early);
        for message in early.take().into_iter().flatten() {
            self.caller.streams.push_get(EventKind::Notification, message);
        }
    }
}

// === impl Caller ===

impl Caller {
    /// The caller of `session` whose listen of the raw id `listen` goes out on `streams`; `ending` ends it.
    pub(in crate::relay) fn new(
        session: &Session,
        streams: Arc<Streams>,
        listen: &str,
        ending: CancellationToken,
    ) -> Self {
        let early = Mutex::new(Some(Vec::new()));
        Self { streams, listen: listen.into(), declared: session.greeting.class, early, ending }
    }

    fn tell(&self, message: Bytes) {
        let mut early = lock(&self.early);
        match &mut *early {
            Some(kept) if kept.len() < MOST_EARLY => kept.push(message),
            Some(_) => {}
            None => drop(self.streams.push_get(EventKind::Notification, message)),
        }
    }
}

impl Listener for Ear {
    fn notification(&self, message: Notification) {
        let Some(params) = message.params() else { return };
        match message.method() {
            Method::Acknowledged => {
                let granted = Object::parse(params).ok().and_then(|p| p.get("notifications"));
                // An acknowledgement that cannot be read grants nothing.
                let ids = granted.and_then(|raw| task_ids(raw).ok()).unwrap_or_default();
                self.acknowledged.send_replace(Some(ids));
            }
            // R4: what waits for more than its caller declared is not for it to answer.
            Method::TaskChanged if undeclared(self.caller.declared, params).is_none() => {
                if let Some(message) = self.watched.renamed(&message, &self.caller.listen) {
                    self.caller.tell(message);
                }
            }
            // N3: nothing else belongs here.
            _ => {}
        }
    }

    fn request(&self, _message: Request, reply: Reply) {
        reply.refuse(Code::MethodNotFound.number(), "servers of this revision ask nothing");
    }
}
