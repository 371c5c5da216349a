//! Tasks: calls whose results are fetched later. Those of 2025-11-25 are between legacy callers and legacy servers, those
//! of the extension of 2026-07-28 between modern ones; neither is translated into the other.
//!
//! A caller knows a task by a sealed id ([`id`]), which leads to its server, so that any later request finds it. What
//! servers tell of tasks unasked goes to the session that began them ([`begun`]).

mod answer;
mod begun;
mod heard;
mod id;
mod listed;
mod listened;
mod watched;

use std::sync::Arc;

use super::extensions::carries_tasks;
use super::request::no_such_method;
use super::route::{Route, invalid, meta_of, no_variants};
use super::serving::Serving;
use super::{Relay, extensions};
use crate::catalog::{Endpoint, Target};
use crate::protocol::capability::{Capability, TASKS_EXTENSION};
use crate::protocol::envelope::{Request, Span};
use crate::protocol::error::{Code, RpcError};
use crate::protocol::method::Method;
use crate::protocol::object::{Object, quoted, text};
use crate::protocol::revision::Era;
use crate::protocol::task;
use crate::protocol::translate::Change;
use crate::settings::ServerSettings;
use crate::store::lock;

pub(super) use begun::Begun;
pub(super) use heard::{about_task, related_by_server, renamed, with};
pub(super) use listened::{Caller as TaskListener, TaskListens, task_ids};

// === impl Relay ===

impl Relay {
    /// The way of a request about one task.
    ///
    /// # Errors
    /// -32602 for an id that was not given to this caller (J6), -32021 for a modern caller that does not declare the
    /// extension, -32601 for a method that its era does not have, or where nobody has tasks.
    pub(super) fn task_route(&self, serving: Serving<'_>) -> Result<Route, RpcError> {
        let (session, request) = (serving.session, serving.request);
        match (session.revision().era(), request.method()) {
            (Era::Modern, Method::TasksResult) | (Era::Legacy, Method::TasksUpdate) => {
                return Err(no_such_method(request));
            }
            (Era::Modern, _) if !session.greeting.class.has(Capability::TasksExtension) => {
                return Err(needs_tasks());
            }
            (Era::Modern | Era::Legacy, _) => {}
        }
        let params = Object::parse(request.params().unwrap_or("{}"));
        let params = params.map_err(|e| invalid(format!("params cannot be read: {e}")))?;
        no_variants(&params, &["taskId"])?;
        let raw = params.get("taskId").ok_or_else(|| invalid("params need a `taskId`"))?;
        let id = text(raw).ok_or_else(|| invalid("`taskId` must be a string"))?;
        let task = self.unseal_task(session, &id);
        let server =
            task.as_ref().and_then(|t| serving.endpoint.servers.iter().find(|s| *s.name == *t.server));
        let (Some(task), Some(server)) = (&task, server) else {
            return Err(match session.revision().era() {
                Era::Legacy if !self.has_tasks(serving.endpoint) => no_tasks(request),
                Era::Legacy | Era::Modern => unknown_task(),
            });
        };
        if session.revision().era() == Era::Legacy {
            // What the server says of it from now on reaches this session too, and under this id.
            lock(&session.attached.begun).add(&server.name, &task.own, &id, None);
        }
        let rename = Some((Span::of(raw, request.bytes()), quoted(&task.own)));
        let (meta, token) = meta_of(&params, request)?;
        let target = Target { server: server.clone(), own: task.own.as_ref().into() };
        Ok(Route { target, rename, meta, token })
    }

    /// What must change for tasks in a call on its way to a server of `era`: `task` goes where it cannot be honoured,
    /// and then the server takes it for an ordinary call; ids of related tasks become the server's own (M9).
    pub(super) fn task_in_call(&self, serving: Serving<'_>, route: &Route, era: Era) -> Vec<Change> {
        let (session, request) = (serving.session, serving.request);
        let carried = match (session.revision().era(), era) {
            // The word means nothing there, and what means nothing passes.
            (Era::Modern, Era::Modern) => return Vec::new(),
            (Era::Legacy, Era::Legacy) => carries_tasks(&route.target.server),
            (Era::Legacy, Era::Modern) | (Era::Modern, Era::Legacy) => false,
        };
        if !carried {
            let is_call = *request.method() == Method::ToolsCall;
            return if is_call { task::without_task(request) } else { Vec::new() };
        }
        let meta = route.meta.map(|place| place.text(request.bytes()));
        let related = meta.and_then(task::related_in_meta);
        related.map(|raw| self.related_by_caller(session, raw, request.bytes())).into_iter().collect()
    }

    /// Whether a server of `endpoint` offers tasks of 2025-11-25, as far as is known.
    fn has_tasks(&self, endpoint: &Endpoint) -> bool {
        endpoint.servers.iter().any(|server: &Arc<ServerSettings>| {
            let said = self.catalog.introduction(server);
            extensions::offered_tasks(server, said.as_deref()).is_some()
        })
    }
}

/// The caller must declare the extension to say anything about tasks (J6, T42).
pub(super) fn needs_tasks() -> RpcError {
    let message = format!("Requests about tasks must declare the extension {TASKS_EXTENSION}.");
    let needed = format!(r#""requiredCapabilities":{{"extensions":{{"{TASKS_EXTENSION}":{{}}}}}}"#);
    RpcError::new(Code::MissingCapability, "missing_capability", message).with_data(needed)
}

fn unknown_task() -> RpcError {
    let message = "Unknown task: the id was not given to this caller at this endpoint, or too long ago.";
    RpcError::new(Code::InvalidParams, "unknown_task", message)
}

fn no_tasks(request: &Request) -> RpcError {
    no_such_method(request)
}
