//! `server/discover`: how a server is asked which era it speaks, and what it says of itself if it is modern (L9, T64).

use super::{Hello, Introduction, Outgoing, UpstreamId};
use crate::protocol::envelope::Response;
use crate::protocol::meta;
use crate::protocol::method::Method;
use crate::protocol::object::{Object, items, text};
use crate::protocol::revision::{Era, Revision};

/// What an answer to `server/discover` says about the era of who gave it.
#[derive(Debug)]
pub(super) enum Discovered {
    /// It is modern, and said this of itself.
    Modern(Introduction),
    /// It is modern, and speaks only these revisions, which we do not.
    TooNew(String),
    /// Anything else: `initialize` will tell (T64).
    Legacy,
}

/// The request, with `id`.
pub(super) fn request(id: UpstreamId) -> Outgoing {
    Outgoing::own(Era::Modern, id, &Method::Discover, "", &Hello::own())
}

/// What an answer says.
pub(super) fn read(response: &Response) -> Discovered {
    match (response.result(), response.error()) {
        (Some(result), _) => of_result(result).unwrap_or(Discovered::Legacy),
        (None, Some(error)) => of_error(error).unwrap_or(Discovered::Legacy),
        (None, None) => Discovered::Legacy,
    }
}

fn of_result(result: &str) -> Option<Discovered> {
    let result = Object::parse(result).ok()?;
    let versions = result.get("supportedVersions").and_then(items)?;
    let versions: Vec<String> = versions.into_iter().filter_map(|v| Some(text(v)?.into_owned())).collect();
    let Some(revision) = versions.iter().filter_map(|v| Revision::modern(v)).max() else {
        // It knows the question, and wants to be initialized.
        if versions.iter().any(|v| Revision::legacy(v).is_ok()) {
            return Some(Discovered::Legacy);
        }
        return Some(Discovered::TooNew(shown(&versions)));
    };
    let object = |raw: Option<&str>| raw.filter(|raw| raw.starts_with('{')).unwrap_or("{}").into();
    // D4: early servers wrote it beside the versions.
    let own = result.get("_meta").and_then(|m| Object::parse(m).ok()?.get(meta::SERVER_INFO));
    Some(Discovered::Modern(Introduction {
        revision,
        capabilities: object(result.get("capabilities")),
        server_info: object(own.or_else(|| result.get("serverInfo"))),
        instructions: result.text("instructions").map(Into::into),
    }))
}

/// -32022 is an answer of the modern era: `supported` says which revisions to speak. The others of that era, -32020
/// and -32021, say that the server is modern, but not what it offers; nothing it could be used by.
fn of_error(error: &str) -> Option<Discovered> {
    let error = Object::parse(error).ok()?;
    if error.get("code") != Some("-32022") {
        return None;
    }
    let supported = Object::parse(error.get("data")?).ok().and_then(|d| items(d.get("supported")?));
    let versions: Vec<String> = supported?.into_iter().filter_map(|v| Some(text(v)?.into_owned())).collect();
    Some(Discovered::TooNew(shown(&versions)))
}

/// Versions as a server wrote them, short enough for a message.
fn shown(versions: &[String]) -> String {
    let known = versions.iter().take(8).map(|v| v.chars().filter(|c| !c.is_control()).take(24).collect());
    known.collect::<Vec<String>>().join(", ")
}

#[cfg(test)]
mod tests;
