//! Where a request goes: which server is meant by the name or URI in its params, and what that server calls it.

use std::borrow::Cow;
use std::sync::Arc;

use super::{Relay, Session};
use crate::catalog::view::explicit_target;
use crate::catalog::{Endpoint, Kind, Naming, Target, View};
use crate::protocol::envelope::{Request, Span};
use crate::protocol::error::{Code, RpcError};
use crate::protocol::method::Method;
use crate::protocol::object::{Object, is_variant, quoted, text};
use crate::settings::ServerSettings;
use crate::store::lock;

/// Where a request goes.
pub(super) struct Route {
    pub(super) target: Target,
    /// The place of the name or URI in the message, and what to put there, raw.
    pub(super) rename: Option<(Span, String)>,
    /// The place of `params._meta`, if there is one.
    pub(super) meta: Option<Span>,
    /// The place of the progress token and the token, raw.
    pub(super) token: Option<(Span, Box<str>)>,
}

/// What the params of a request name.
struct Named<'a> {
    kind: Kind,
    raw: &'a str,
    name: Cow<'a, str>,
}

// === impl Relay ===

impl Relay {
    /// Finds the way of a call, get, read, subscription or completion.
    ///
    /// # Errors
    /// -32602 for params that name nothing, or something nobody has; -32002 for an unknown resource.
    pub(super) async fn route(
        self: &Arc<Self>,
        session: &Arc<Session>,
        endpoint: &Endpoint,
        request: &Request,
    ) -> Result<Route, RpcError> {
        let raw = request.params().unwrap_or("{}");
        let params = Object::parse(raw).map_err(|e| invalid(format!("params cannot be read: {e}")))?;
        let named = named(request.method(), &params)?;
        let target = match (named.kind, endpoint.servers.as_slice()) {
            (Kind::Tools | Kind::Prompts, [only]) if endpoint.passes_names_through() => {
                Target { server: only.clone(), own: named.name.as_ref().into() }
            }
            (Kind::Tools | Kind::Prompts, _) => self.by_name(session, endpoint, &named).await?,
            (Kind::Resources | Kind::Templates, _) => {
                self.resource_target(session, endpoint, &named.name).await?
            }
        };
        let rename =
            (*target.own != *named.name).then(|| (Span::of(named.raw, request.bytes()), quoted(&target.own)));
        let (meta, token) = meta_of(&params, request)?;
        Ok(Route { target, rename, meta, token })
    }

    async fn by_name(
        self: &Arc<Self>,
        session: &Arc<Session>,
        endpoint: &Endpoint,
        named: &Named<'_>,
    ) -> Result<Target, RpcError> {
        if let Some(target) = self.view(session, endpoint, named.kind).target(&named.name) {
            return Ok(target.clone());
        }
        let found = |view: &View| view.target(&named.name).is_some();
        let view = self.view_again(session, endpoint, named.kind, found).await;
        view.target(&named.name).cloned().ok_or_else(|| {
            let (what, reason) = match named.kind {
                Kind::Tools => ("tool", "unknown_tool"),
                _ => ("prompt", "unknown_prompt"),
            };
            let shown: String = named.name.chars().take(128).collect();
            let list = named.kind.method();
            let missing = missing(&view, endpoint);
            let message = format!("unknown {what} `{shown}`; {list} shows those there are{missing}");
            RpcError::new(Code::InvalidParams, reason, message)
        })
    }

    async fn by_uri(
        self: &Arc<Self>,
        session: &Arc<Session>,
        endpoint: &Endpoint,
        uri: &str,
    ) -> Result<Target, RpcError> {
        if let Some(found) = self.known_uri(session, endpoint, uri) {
            return Ok(found);
        }
        let (resources, templates) = futures_util::future::join(
            // Of two servers with one URI the first has it, so all are waited for.
            self.view_again(session, endpoint, Kind::Resources, |_| false),
            self.view_again(session, endpoint, Kind::Templates, |_| false),
        )
        .await;
        let found = resources.target(uri).cloned().or_else(|| templated(uri, &templates));
        found.or_else(|| self.only_one_with_resources(endpoint, uri)).ok_or_else(|| {
            let shown: String = uri.chars().take(256).collect();
            let missing = missing(&resources, endpoint);
            let message =
                format!("unknown resource `{shown}`; no server lists it or a template that it fits{missing}");
            RpcError::new(Code::ResourceNotFound, "unknown_resource", message)
        })
    }

    /// Where a resource is read and subscribed to.
    ///
    /// # Errors
    /// -32002 for an unknown one.
    pub(super) async fn resource_target(
        self: &Arc<Self>,
        session: &Arc<Session>,
        endpoint: &Endpoint,
        uri: &str,
    ) -> Result<Target, RpcError> {
        match (endpoint.naming, endpoint.servers.as_slice()) {
            (Naming::Bare, [only]) => Ok(Target { server: only.clone(), own: uri.into() }),
            _ => self.by_uri(session, endpoint, uri).await,
        }
    }

    /// Where a URI leads by all that is known; asks no server.
    pub(super) fn known_uri(
        self: &Arc<Self>,
        session: &Arc<Session>,
        endpoint: &Endpoint,
        uri: &str,
    ) -> Option<Target> {
        if let Some(target) = explicit_target(endpoint, uri) {
            return Some(target);
        }
        if let Some(found) = self.view(session, endpoint, Kind::Resources).target(uri) {
            return Some(found.clone());
        }
        // Links inside results need not be in any list, and are known more surely than what a template fits (G8).
        let seen = lock(&session.attached.seen_uris).server_of(uri);
        let seen = seen.and_then(|name| endpoint.servers.iter().find(|s| s.name == *name));
        if let Some(server) = seen {
            return Some(Target { server: server.clone(), own: uri.into() });
        }
        templated(uri, &self.view(session, endpoint, Kind::Templates))
    }

    /// Servers need not list what they can read: if only one of them has resources at all, it may know the URI.
    pub(super) fn only_one_with_resources(&self, endpoint: &Endpoint, uri: &str) -> Option<Target> {
        let has = |server: &&Arc<ServerSettings>| {
            self.catalog.introduction(server).is_some_and(|i| {
                Object::parse(&i.capabilities).is_ok_and(|c| c.get(Kind::Resources.capability()).is_some())
            })
        };
        let mut servers = endpoint.servers.iter().filter(has);
        let only = servers.next().filter(|_| servers.next().is_none())?;
        Some(Target { server: only.clone(), own: uri.into() })
    }
}

/// Where a URI leads by the templates: to the template's server; the URI is the caller's own.
fn templated(uri: &str, templates: &View) -> Option<Target> {
    let found = templates.target(uri).or_else(|| templates.expanded_target(uri))?;
    Some(Target { server: found.server.clone(), own: uri.into() })
}

/// Which servers' lists are not known at present, for a person who misses something.
fn missing(view: &View, endpoint: &Endpoint) -> String {
    let names: Vec<&str> =
        endpoint.servers.iter().filter(|s| !view.has(s)).map(|s| s.name.as_str()).take(10).collect();
    if names.is_empty() {
        return String::new();
    }
    format!(". Servers that cannot be listed at present: {}", names.join(", "))
}

/// The `_meta` of a request, and the progress token in it, if its caller gave them.
///
/// # Errors
/// -32602 if `_meta` cannot be read.
pub(super) fn meta_of(params: &Object<'_>, request: &Request) -> Result<Meta, RpcError> {
    let Some(raw) = params.get("_meta") else { return Ok((None, None)) };
    let place = Some(Span::of(raw, request.bytes()));
    if raw == "null" {
        return Ok((place, None));
    }
    let meta = Object::parse(raw).map_err(|e| invalid(format!("params._meta cannot be read: {e}")))?;
    let token = meta.get("progressToken").filter(|t| *t != "null");
    Ok((place, token.map(|t| (Span::of(t, request.bytes()), t.into()))))
}

/// The place of `_meta`; the place of the progress token, and the token, raw.
type Meta = (Option<Span>, Option<(Span, Box<str>)>);

/// Refuses a member that some servers would take for one of `known` though its case differs (case-G07).
pub(super) fn no_variants(params: &Object<'_>, known: &[&str]) -> Result<(), RpcError> {
    match params.iter().find(|(name, _)| known.iter().any(|known| is_variant(name, known))) {
        None => Ok(()),
        Some((name, _)) => {
            let shown: String = name.chars().take(64).collect();
            Err(invalid(format!("member `{shown}` of params differs from another name in case only")))
        }
    }
}

fn named<'a>(method: &Method, params: &Object<'a>) -> Result<Named<'a>, RpcError> {
    no_variants(params, &["name", "uri", "ref", "_meta"])?;
    let (kind, raw) = match method {
        Method::PromptsGet => (Kind::Prompts, params.get("name")),
        Method::ResourcesRead | Method::ResourcesSubscribe | Method::ResourcesUnsubscribe => {
            (Kind::Resources, params.get("uri"))
        }
        Method::Complete => {
            let reference = params.get("ref").and_then(|raw| Object::parse(raw).ok());
            let reference = reference.ok_or_else(|| invalid("completion/complete needs a `ref` object"))?;
            no_variants(&reference, &["type", "name", "uri"])?;
            match reference.text("type").as_deref() {
                Some("ref/prompt") => (Kind::Prompts, reference.get("name")),
                Some("ref/resource") => (Kind::Templates, reference.get("uri")),
                _ => return Err(invalid("ref.type must be \"ref/prompt\" or \"ref/resource\"")),
            }
        }
        _ => (Kind::Tools, params.get("name")),
    };
    let member = kind.key();
    let raw = raw.ok_or_else(|| invalid(format!("params need a `{member}`")))?;
    let name = text(raw).ok_or_else(|| invalid(format!("`{member}` must be a string")))?;
    Ok(Named { kind, raw, name })
}

pub(super) fn invalid(message: impl Into<String>) -> RpcError {
    RpcError::new(Code::InvalidParams, "invalid_params", message)
}
