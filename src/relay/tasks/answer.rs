//! Task ids in what servers answer: sealed where they are new to the caller, written as the caller wrote them where
//! it asked by one.

use crate::protocol::capability::{Capability, CapabilityClass};
use crate::protocol::envelope::Response;
use crate::protocol::error::{Code, Layer, RpcError};
use crate::protocol::method::Method;
use crate::protocol::object::{Object, text};
use crate::protocol::revision::Era;
use crate::protocol::task::{self, Created};
use crate::protocol::translate::Change;
use crate::relay::Relay;
use crate::relay::ask::capability_for;
use crate::relay::route::Route;
use crate::relay::serving::Serving;
use crate::store::lock;

// === impl Relay ===

impl Relay {
    /// What must change in a response for the ids of tasks in it.
    ///
    /// # Errors
    /// The server made a task that was not asked for (J1), gave it no id that can be carried, or asks what its caller
    /// did not declare (R4).
    pub(in crate::relay) fn task_ids(
        &self,
        serving: Serving<'_>,
        route: &Route,
        response: &Response,
    ) -> Result<Vec<Change>, RpcError> {
        let Some(result) = response.result() else { return Ok(Vec::new()) };
        match serving.request.method() {
            Method::ToolsCall => match task::created(result) {
                Some(created) => Ok(vec![self.created(serving, route, response, created)?]),
                None => Ok(Vec::new()),
            },
            Method::TasksGet | Method::TasksCancel => {
                if serving.session.revision().era() == Era::Modern {
                    answerable(serving, route, result)?;
                }
                let own = task::id_in(result).and_then(|raw| as_asked(serving, route, response, raw));
                Ok(own.into_iter().chain(related(serving, route, response, result)).collect())
            }
            Method::TasksResult => Ok(related(serving, route, response, result).into_iter().collect()),
            _ => Ok(Vec::new()),
        }
    }

    fn created(
        &self,
        serving: Serving<'_>,
        route: &Route,
        response: &Response,
        created: Created<'_>,
    ) -> Result<Change, RpcError> {
        let session = serving.session;
        let server = route.target.server.name.as_str();
        let era = session.revision().era();
        let raw = match (created, era) {
            (Created::Modern(raw), Era::Modern) if session.greeting.class.has(Capability::TasksExtension) => {
                raw
            }
            (Created::Legacy(raw), Era::Legacy) => Some(raw),
            _ => {
                let message = format!(
                    "Server `{server}` made a task of this call, which its caller did not ask for; the task goes on there, and its outcome is unknown."
                );
                return Err(RpcError::new(Code::Internal, "unasked_task", message).at(server, Layer::Call));
            }
        };
        let own = raw.and_then(text);
        let sealed = own.as_ref().and_then(|own| self.seal_task(session, server, own));
        let (Some(raw), Some(own), Some(sealed)) = (raw, own, sealed) else {
            let message = format!(
                "Server `{server}` made a task of this call and gave it no id, or one that is too long to be carried."
            );
            return Err(RpcError::new(Code::Internal, "bad_task", message).at(server, Layer::Call));
        };
        if era == Era::Legacy {
            // The server knows the call's progress by the id of the call.
            let token = route.token.as_ref().map(|(_, callers)| (response.id(), &**callers));
            lock(&session.attached.begun).add(server, &own, &sealed, token);
        }
        Ok(task::written(raw, response.bytes(), &sealed))
    }
}

/// The id of the task that was asked for, as its caller wrote it. What else a server may write there is none of the
/// caller's.
fn as_asked(serving: Serving<'_>, route: &Route, response: &Response, raw: &str) -> Option<Change> {
    let (place, _) = route.rename.as_ref()?;
    let asked = text(place.text(serving.request.bytes()))?;
    task::is(raw, &route.target.own).then(|| task::written(raw, response.bytes(), &asked))
}

/// The task that a result says it belongs to (M9): the one asked for.
fn related(serving: Serving<'_>, route: &Route, response: &Response, result: &str) -> Option<Change> {
    as_asked(serving, route, response, task::related(result)?)
}

/// R4: a task may wait only for what its caller declared on this very request.
fn answerable(serving: Serving<'_>, route: &Route, result: &str) -> Result<(), RpcError> {
    let Some(method) = undeclared(serving.session.greeting.class, result) else { return Ok(()) };
    let server = route.target.server.name.as_str();
    let shown: String = method.as_str().chars().take(64).collect();
    let message =
        format!("The task at server `{server}` waits for {shown}, which this request does not declare.");
    Err(RpcError::new(Code::Internal, "undeclared_input_request", message).at(server, Layer::Call))
}

/// What a task waits for that was not declared, if it does.
pub(super) fn undeclared(declared: CapabilityClass, task: &str) -> Option<Method> {
    memchr::memmem::find(task.as_bytes(), b"\"inputRequests\"")?;
    let is_undeclared = |(method, params): &(Method, Option<&str>)| {
        let params = params.and_then(|raw| Object::parse(raw).ok());
        !capability_for(method, params.as_ref()).is_some_and(|needed| declared.has(needed))
    };
    task::questions(task).into_iter().find(is_undeclared).map(|(method, _)| method)
}
