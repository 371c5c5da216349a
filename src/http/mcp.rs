//! The dispatch ladder: one order of checks for every request (E1 to E16).
//!
//! origin 403 -> authentication 401 -> size 413/431 -> endpoint 404 -> method 405 -> content type 415, accept 406 ->
//! JSON 400 -> era -> session 400/404 -> relay. The steps up to the method are here; `post`, `get` and `delete` go on.

use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use futures_util::FutureExt as _;
use http::header::{CONNECTION, CONTENT_LENGTH};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version};

use super::forward::FromOwner;
use super::peer::Hop;
use super::reply::{Extra, Refused, empty, panicked};
use super::request_id::RequestId;
use super::serve::CallerAddress;
use super::{Edge, cors, delete, get, headers, origin, peer, post, request_body};
use crate::auth::challenge::www_authenticate;
use crate::auth::metadata::metadata_url;
use crate::auth::{REVOKED, Reach, Refusal, RefusalKind};
use crate::catalog::Endpoint;
use crate::protocol::header::REQUEST_ID;
use crate::relay::{Caller, Form, Post};
use crate::session::PrincipalCap;
use crate::settings::endpoints::SessionPolicy;
use crate::tenancy::principal::Issuer;

/// How much of a path an error repeats, in characters.
const MOST_SHOWN: usize = 128;

/// `/mcp`: all servers.
pub(super) async fn all_servers(State(edge): State<Arc<Edge>>, request: Request) -> Response {
    enter(&edge, "/mcp", request).await
}

/// `/servers/{server}/mcp` and `/{endpoint}/mcp`.
pub(super) async fn one_endpoint(State(edge): State<Arc<Edge>>, request: Request) -> Response {
    let path = request.uri().path();
    let path = path.strip_suffix('/').unwrap_or(path).to_owned();
    enter(&edge, &path, request).await
}

/// No endpoint has this path.
pub(super) async fn nothing_here(State(edge): State<Arc<Edge>>, request: Request) -> Response {
    let request_id = edge.request_ids.next();
    let message = "There is no MCP endpoint at this path; try /mcp or /servers/{server}/mcp.";
    let refused = Refused::caller(StatusCode::NOT_FOUND, "unknown_path", message);
    edge.metrics.http_request(label(request.method()), "", StatusCode::NOT_FOUND.as_u16());
    leave(&edge, request.headers(), refused.into_response(&request_id), &request_id)
}

/// A request with everything the steps below the method need.
pub(super) struct Admitted {
    pub(super) parts: Parts,
    pub(super) caller: Caller,
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) request_id: RequestId,
    /// Where it comes from, if another replica forwarded it.
    pub(super) hop: Option<Hop>,
    /// The caller's address as the edge saw it, which is that of a proxy before it if there is one.
    pub(super) address: Option<SocketAddr>,
}

// === impl Admitted ===

impl Admitted {
    /// As the relay knows a POST outside any session.
    pub(super) fn post(&self, form: Form) -> Post<'_> {
        let request_id = self.request_id.shared();
        Post { caller: &self.caller, endpoint: &self.endpoint, form, request_id }
    }
}

async fn enter(edge: &Arc<Edge>, path: &str, request: Request) -> Response {
    let request_id = edge.request_ids.next();
    let (mut parts, body) = request.into_parts();
    // What only replicas may say to each other is not heard from a caller.
    peer::strip(&mut parts.headers);
    let origin_headers = parts.headers.contains_key(http::header::ORIGIN).then(|| parts.headers.clone());
    let method = label(&parts.method);
    let address = address_of(&parts);
    let kept_alive = parts.version <= Version::HTTP_11 && parts.extensions.get::<Hop>().is_none();
    // Caught here and not by a layer around it all, so that this answer too has its request id and says who may
    // read it.
    let answer = AssertUnwindSafe(climb(edge, path, parts, body, &request_id)).catch_unwind().await;
    let response = match answer {
        Ok(Ok(response)) => response,
        Ok(Err(refused)) => refused.into_response(&request_id),
        Err(panic) => panicked(&*panic, &request_id),
    };
    let status = response.status().as_u16();
    edge.metrics.http_request(method, path, status);
    tracing::debug!(
        request.id = request_id.as_str(),
        http.method = method,
        http.path = path,
        client.address = address.map(tracing::field::display),
        status,
        "answered"
    );
    let mut response = match origin_headers {
        Some(headers) => leave(edge, &headers, response, &request_id),
        None => leave(edge, &HeaderMap::new(), response, &request_id),
    };
    if kept_alive && edge.draining.is_cancelled() {
        // Whoever keeps connections sends nothing more here, and so nothing into one that is about to close.
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// What every answer has.
pub(super) fn leave(
    edge: &Edge,
    request: &HeaderMap,
    mut response: Response,
    request_id: &RequestId,
) -> Response {
    if response.extensions_mut().remove::<FromOwner>().is_none() {
        response.headers_mut().insert(REQUEST_ID, request_id.header());
    }
    if edge.admission.load().origins.judge(request) == origin::Verdict::Allowed {
        cors::expose(request, response.headers_mut());
    }
    response
}

async fn climb(
    edge: &Arc<Edge>,
    path: &str,
    mut parts: Parts,
    body: Body,
    request_id: &RequestId,
) -> Result<Response, Refused> {
    if edge.admission.load().origins.judge(&parts.headers) == origin::Verdict::Refused {
        let message = "Pages of this origin may not call here; the operator can list it under `origins`.";
        return Err(Refused::caller(StatusCode::FORBIDDEN, "origin_refused", message));
    }
    if cors::is_preflight(&parts.method, &parts.headers) {
        let mut response = empty(StatusCode::NO_CONTENT);
        cors::permit(&parts.headers, response.headers_mut());
        return Ok(response);
    }
    let caller = authenticate(edge, path, &parts.headers).await?;
    headers::check_size(&parts.headers, edge.limits.headers)?;
    if declared_length(&parts.headers) > Some(edge.limits.body as u64) {
        return Err(request_body::too_large(edge.limits.body));
    }
    let endpoint = edge.relay.endpoint(path).ok_or_else(|| no_endpoint(edge, path))?;
    let address = address_of(&parts);
    let hop = parts.extensions.remove::<Hop>();
    let admitted = Admitted { parts, caller, endpoint, request_id: request_id.clone(), hop, address };
    match admitted.parts.method {
        Method::POST => post::post(edge, admitted, body).await,
        _ if admitted.endpoint.sessions == SessionPolicy::Off => {
            let message = "This endpoint takes POST only: GET and DELETE are for sessions, and it has none.";
            let refused = Refused::caller(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message);
            Err(refused.with(Extra::AllowPost))
        }
        Method::GET => get::get(edge, admitted).await,
        Method::DELETE => delete::delete(edge, admitted).await,
        _ => {
            let message = "An MCP endpoint takes POST, GET and DELETE.";
            let refused = Refused::caller(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message);
            Err(refused.with(Extra::Allow))
        }
    }
}

/// 404; but while replicas run different configs another one may know the endpoint, and have live sessions there.
fn no_endpoint(edge: &Edge, path: &str) -> Refused {
    let shown: String = path.chars().take(MOST_SHOWN).collect();
    if edge.relay.configs_differ() {
        let message = format!(
            "This replica has no MCP endpoint at {shown}, and the replicas' configs differ at the moment; try again soon."
        );
        return Refused::unavailable("configs_differ", message);
    }
    let message = format!("There is no MCP endpoint at {shown}.");
    Refused::caller(StatusCode::NOT_FOUND, "unknown_endpoint", message)
}

/// Whom a request comes from: as the replica saw it that forwarded it, which only a peer's can say, or as its own
/// connection tells.
fn address_of(parts: &Parts) -> Option<SocketAddr> {
    match parts.extensions.get::<Hop>() {
        Some(hop) => hop.edge_peer,
        None => parts.extensions.get::<CallerAddress>().and_then(|from| from.0),
    }
}

async fn authenticate(edge: &Edge, path: &str, headers: &HeaderMap) -> Result<Caller, Refused> {
    let principal = match edge.admission.load_full().authenticator.authenticate(headers).await {
        Ok(principal) => principal,
        Err(refusal) => return Err(refused(edge, path, &refusal)),
    };
    let exempt = principal.issuer == Issuer::Anonymous && edge.reach == Reach::Loopback;
    let cap = if exempt { PrincipalCap::Exempt } else { PrincipalCap::Held(principal.key().0) };
    let binding = principal.binding().0;
    if edge.relay.is_revoked(&binding) {
        return Err(refused(edge, path, &REVOKED));
    }
    Ok(Caller { binding, principal, cap })
}

fn refused(edge: &Edge, path: &str, refusal: &Refusal) -> Refused {
    let status = match refusal.kind {
        RefusalKind::Malformed => StatusCode::BAD_REQUEST,
        RefusalKind::InsufficientScope => StatusCode::FORBIDDEN,
        RefusalKind::Unavailable => return Refused::unavailable(refusal.reason, refusal.message),
        RefusalKind::Missing | RefusalKind::Invalid | RefusalKind::Expired | RefusalKind::WrongAudience => {
            StatusCode::UNAUTHORIZED
        }
    };
    let has_document = edge.admission.load().authenticator.issuers().next().is_some();
    let metadata = has_document.then(|| metadata_url(&edge.public_url, path));
    let challenge = www_authenticate(refusal, metadata.as_deref(), None);
    Refused::caller(status, refusal.reason, refusal.message).with(Extra::Challenge(challenge))
}

fn declared_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

pub(super) fn label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::DELETE => "DELETE",
        _ => "_other",
    }
}
