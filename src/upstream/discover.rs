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
    /// It is modern, and said this of itself; or said nothing that it could be used by, and is tried with everything.
    Modern(Introduction),
    /// It is modern, and speaks only these revisions, which we do not.
    TooNew(String),
    /// Anything else: `initialize` will tell (T64).
    Legacy,
}

// === impl Discovered ===

impl Discovered {
    /// Whether it is modern, and can be spoken to.
    pub(super) fn is_modern(&self) -> bool {
        matches!(self, Self::Modern(_))
    }
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

/// The errors of the modern era say that the server is of it, but not what it offers. -32022 says which revisions it
/// speaks: one that knows legacy ones only wants `initialize`, though it knows this code.
fn of_error(error: &str) -> Option<Discovered> {
    let error = Object::parse(error).ok()?;
    let code = error.get("code")?;
    if code == "-32020" || code == "-32021" {
        return Some(Discovered::Modern(Introduction::assumed()));
    }
    if code != "-32022" {
        return None;
    }
    let supported = Object::parse(error.get("data")?).ok().and_then(|d| items(d.get("supported")?));
    let versions: Vec<String> = supported?.into_iter().filter_map(|v| Some(text(v)?.into_owned())).collect();
    Some(if versions.iter().any(|v| Revision::modern(v).is_some()) {
        Discovered::Modern(Introduction::assumed())
    } else if versions.iter().any(|v| Revision::legacy(v).is_ok()) {
        Discovered::Legacy
    } else {
        Discovered::TooNew(shown(&versions))
    })
}

/// Versions as a server wrote them, short enough for a message.
fn shown(versions: &[String]) -> String {
    let known = versions.iter().take(8).map(|v| v.chars().filter(|c| !c.is_control()).take(24).collect());
    known.collect::<Vec<String>>().join(", ")
}

#[cfg(test)]
mod tests;
