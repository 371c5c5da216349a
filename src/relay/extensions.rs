//! Which capabilities pass from callers to servers (G28), and which extensions and tasks of servers are declared to
//! callers (L14, G1).

use crate::catalog::Endpoint;
use crate::protocol::capability::{Capability, CapabilityClass, TASKS_EXTENSION};
use crate::protocol::envelope::{Request, Span};
use crate::protocol::meta::CLIENT_CAPABILITIES;
use crate::protocol::object::{Object, quoted};
use crate::protocol::revision::{Era, Revision};
use crate::settings::ServerSettings;
use crate::settings::servers::{Isolation, TransportSettings};
use crate::upstream::Introduction;

/// The capabilities of callers that pass as they are.
const PASSING: [&str; 4] = ["roots", "sampling", "elicitation", "experimental"];

/// A server of an endpoint and what it said of itself, if it ever did.
pub(super) type Known<'a> = (&'a ServerSettings, Option<&'a Introduction>);

/// A caller's capabilities at an endpoint: without the extensions that do not pass there.
pub(super) fn admitted(endpoint: &Endpoint, capabilities: &str) -> Box<str> {
    filtered(capabilities, |name, raw| match name {
        "extensions" => Some(filtered(raw, |id, raw| endpoint.passes_extension(id).then(|| raw.into()))),
        _ => Some(raw.into()),
    })
}

/// The capabilities of a session's caller as a server hears them in `initialize`: what the gateway does not know, or
/// cannot carry to a server of that revision, is not offered.
pub(super) fn for_initialize(capabilities: &str, callers: Revision, asked: Revision) -> Box<str> {
    filtered(capabilities, |name, raw| match name {
        // Callers are asked nothing as a task, so that of their own tasks nothing is left to say.
        "tasks" if has_tasks(callers) && has_tasks(asked) => Some("{}".into()),
        "extensions" => some(filtered(raw, |id, raw| (id != TASKS_EXTENSION).then(|| raw.into()))),
        _ => PASSING.contains(&name).then(|| raw.into()),
    })
}

/// The same as a modern server hears them in a request.
pub(super) fn for_modern(capabilities: &str, callers: Revision) -> Box<str> {
    filtered(capabilities, |name, raw| match (name, callers.era()) {
        ("extensions", Era::Modern) => Some(raw.into()),
        // X20: a legacy caller does not know what a call becomes by it.
        ("extensions", Era::Legacy) => {
            some(filtered(raw, |id, raw| (id != TASKS_EXTENSION).then(|| raw.into())))
        }
        _ => PASSING.contains(&name).then(|| raw.into()),
    })
}

/// The place of the capabilities in a modern caller's `_meta`, and what of them passes on to a modern server; `None`
/// where all of it does, which mostly the class alone tells.
pub(super) fn narrowed(
    endpoint: &Endpoint,
    class: CapabilityClass,
    meta: Option<Span>,
    request: &Request,
) -> Option<(Span, String)> {
    const DOUBTFUL: [Capability; 3] = [Capability::Unknown, Capability::Tasks, Capability::OtherExtension];
    if !DOUBTFUL.into_iter().any(|c| class.has(c)) {
        return None;
    }
    let raw = Object::parse(meta?.text(request.bytes())).ok()?.get(CLIENT_CAPABILITIES)?;
    let passes = for_modern(&admitted(endpoint, raw), Revision::LATEST);
    Some((Span::of(raw, request.bytes()), passes.into()))
}

/// What servers declare that a caller of `revision` can use through this endpoint, beside the core of the protocol:
/// members of the capabilities, raw. A server that was never reached counts for nothing here.
pub(super) fn declared(endpoint: &Endpoint, revision: Revision, servers: &[Known<'_>]) -> Vec<String> {
    let extensions = extensions(endpoint, revision.era(), servers);
    let extensions = (!extensions.is_empty()).then(|| {
        let members = extensions.iter().map(|(id, settings)| format!("{}:{settings}", quoted(id)));
        format!(r#""extensions":{{{}}}"#, members.collect::<Vec<_>>().join(","))
    });
    extensions.into_iter().chain(tasks(revision, servers)).collect()
}

/// The extensions of the servers, by id; their settings pass if all who have the extension say the same.
fn extensions(endpoint: &Endpoint, callers: Era, servers: &[Known<'_>]) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for said in servers.iter().filter_map(|(_, said)| *said) {
        let own =
            Object::parse(&said.capabilities).ok().and_then(|c| Object::parse(c.get("extensions")?).ok());
        for (id, settings) in own.iter().flat_map(Object::iter) {
            let carried =
                id != TASKS_EXTENSION || (callers, said.revision.era()) == (Era::Modern, Era::Modern);
            if !carried || !endpoint.passes_extension(id) {
                continue;
            }
            match all.iter_mut().find(|(known, _)| known == id) {
                Some((_, other)) if *other == settings => {}
                Some((_, other)) => "{}".clone_into(other),
                None => all.push((id.to_owned(), settings.to_owned())),
            }
        }
    }
    all
}

/// The tasks of 2025-11-25.
fn tasks(callers: Revision, servers: &[Known<'_>]) -> Option<String> {
    if !has_tasks(callers) {
        return None;
    }
    let (mut calls, mut list, mut cancel) = (false, false, false);
    for tasks in servers.iter().filter_map(|(server, said)| offered_tasks(server, *said)) {
        let Ok(tasks) = Object::parse(tasks) else { continue };
        let requests = |raw| Object::parse(Object::parse(raw).ok()?.get("tools")?).ok()?.get("call");
        calls |= tasks.get("requests").and_then(requests).is_some();
        list |= tasks.get("list").is_some();
        cancel |= tasks.get("cancel").is_some();
    }
    let members = [(list, r#""list":{},"#), (cancel, r#""cancel":{},"#)];
    let members: String = members.into_iter().filter(|(has, _)| *has).map(|(_, text)| text).collect();
    calls.then(|| format!(r#""tasks":{{{members}"requests":{{"tools":{{"call":{{}}}}}}}}"#))
}

/// The `tasks` that a legacy server declared, raw, if its links can carry them.
pub(super) fn offered_tasks<'a>(server: &ServerSettings, said: Option<&'a Introduction>) -> Option<&'a str> {
    let said = said.filter(|said| said.revision.era() == Era::Legacy && carries_tasks(server))?;
    Object::parse(&said.capabilities).ok()?.get("tasks")
}

/// Whether tasks of 2025-11-25 can be had over the links of a server: what a shared child says of a task could not be
/// attributed.
pub(super) fn carries_tasks(server: &ServerSettings) -> bool {
    !matches!((&server.transport, &server.isolation), (TransportSettings::Stdio(_), Isolation::Shared { .. }))
}

fn has_tasks(revision: Revision) -> bool {
    revision == Revision::V2025_11_25
}

/// An object without members says nothing.
fn some(object: Box<str>) -> Option<Box<str>> {
    (&*object != "{}").then_some(object)
}

/// The members of an object that `pass` gives a value; what is no object is an empty one.
fn filtered(object: &str, pass: impl Fn(&str, &str) -> Option<Box<str>>) -> Box<str> {
    let Ok(all) = Object::parse(object) else { return "{}".into() };
    let kept = all.iter().filter_map(|(name, raw)| Some(format!("{}:{}", quoted(name), pass(name, raw)?)));
    format!("{{{}}}", kept.collect::<Vec<_>>().join(",")).into()
}

#[cfg(test)]
mod tests;
