//! What the headers of a call to a modern server repeat of its arguments, and what follows when the server finds
//! fault with headers or version (T48, T52, X5, X21).
//!
//! Such a fault is between the gateway and the server: no caller can mend it, so no caller sees its code.

use std::sync::Arc;

use http::{HeaderName, HeaderValue};

use super::Relay;
use super::call::Ended;
use super::lists::class_for;
use super::reading::Reader;
use super::route::Route;
use super::serving::Serving;
use crate::catalog::Kind;
use crate::protocol::error::{Code, Layer, RpcError};
use crate::protocol::method::Method;
use crate::protocol::mirror;
use crate::protocol::object::{Object, items, text};
use crate::protocol::param_header::{Annotation, value_at};
use crate::protocol::revision::{Era, Revision};
use crate::upstream::Link;

/// `Mcp-Param-*` headers.
pub(super) type Params = Vec<(HeaderName, HeaderValue)>;

/// A refusal that is about the gateway's own doing. The request did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// -32020: headers and body do not agree in the server's eyes.
    Headers,
    /// -32022, though the server speaks the revision.
    Version,
    /// -32022: the server does not speak the revision any more.
    NoVersion,
}

/// Whether to send a refused request again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mended {
    Yes,
    No,
}

// === impl Relay ===

impl Relay {
    /// The headers that repeat arguments of a tool call over this link. Few tools want any.
    pub(super) fn params_of(&self, serving: Serving<'_>, route: &Route, link: &Link) -> Params {
        if *serving.request.method() != Method::ToolsCall || !link.mirrors() {
            return Params::new();
        }
        let annotations = self.annotations(serving, route);
        annotations.map_or_else(Params::new, |annotations| params(serving.request.params(), &annotations))
    }

    /// What the tool wants mirrored, by its list for the caller's class, or else for any.
    fn annotations(&self, serving: Serving<'_>, route: &Route) -> Option<Arc<[Annotation]>> {
        let (server, own) = (&route.target.server, &*route.target.own);
        let shelves = self.catalog.of(server);
        let list = shelves
            .shelf(class_for(serving.session, server))
            .last_good(Kind::Tools)
            .or_else(|| shelves.by_class().into_iter().find_map(|(_, shelf)| shelf.last_good(Kind::Tools)))?;
        list.annotations(own).cloned()
    }

    /// Does what can be done about a refusal of a call that was sent with the headers `sent`. A tool may want other
    /// arguments mirrored than it did when its list was read (T52).
    pub(super) async fn mend(
        self: &Arc<Self>,
        serving: Serving<'_>,
        route: &Route,
        link: &Link,
        refusal: Refusal,
        sent: &Params,
    ) -> Mended {
        let Serving { session, request, ticket, .. } = serving;
        match refusal {
            Refusal::Version => return Mended::Yes,
            Refusal::NoVersion => return Mended::No,
            Refusal::Headers if *request.method() != Method::ToolsCall => return Mended::No,
            Refusal::Headers => {}
        }
        let server = &route.target.server;
        let shelf = self.catalog.of(server).shelf(class_for(session, server));
        // One that was read a moment ago says all there is, so that a server that is never content costs no more.
        if shelf.may_be_behind(Kind::Tools) {
            let reader = Reader::for_session(session, server);
            let reading = self.read_list(&reader, server, Kind::Tools).outcome();
            tokio::select! {
                _ = tokio::time::timeout(server.timeouts.list, reading) => {}
                () = ticket.cancelled() => return Mended::No,
            }
        }
        if self.params_of(serving, route, link) == *sent { Mended::No } else { Mended::Yes }
    }
}

// === impl Refusal ===

impl Refusal {
    /// Whether a call ended by one; a server without headers has none to refuse.
    pub(super) fn of(ended: &Ended, link: &Link) -> Option<Self> {
        let Ended::Answered(response, Era::Modern) = ended else { return None };
        let error = Object::parse(response.error()?).ok()?;
        match error.get("code")? {
            "-32020" if link.mirrors() => Some(Self::Headers),
            "-32022" if is_supported(&error) => Some(Self::Version),
            "-32022" => Some(Self::NoVersion),
            _ => None,
        }
    }

    /// What the caller is told.
    pub(super) fn error(self, server: &str) -> RpcError {
        let why = match self {
            Self::Headers => {
                "says that headers and body do not agree (-32020). A proxy on the way to it may change headers, or it \
                 wants arguments mirrored that its tool list does not name"
            }
            Self::Version | Self::NoVersion => "does not take its protocol version (-32022)",
        };
        let message =
            format!("Server `{server}` refused a request of the gateway: it {why}. The call did not run.");
        RpcError::new(Code::Internal, "server_refused_request", message).at(server, Layer::Call)
    }
}

fn is_supported(error: &Object<'_>) -> bool {
    let data = error.get("data").and_then(|data| Object::parse(data).ok());
    let supported = data.and_then(|data| items(data.get("supported")?)).unwrap_or_default();
    supported.into_iter().any(|version| text(version).as_deref() == Some(Revision::LATEST.as_str()))
}

fn params(params: Option<&str>, annotations: &[Annotation]) -> Params {
    let params = params.and_then(|raw| Object::parse(raw).ok());
    let arguments = params.and_then(|params| Object::parse(params.get("arguments")?).ok());
    let Some(arguments) = arguments else { return Params::new() };
    let header = |annotation: &Annotation| {
        let value = value_at(&arguments, &annotation.path)?;
        Some((annotation.header.clone(), HeaderValue::from_str(&mirror::encode(&value)).ok()?))
    };
    annotations.iter().filter_map(header).collect()
}
