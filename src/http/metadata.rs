//! The protected resource metadata documents (RFC 9728), for everyone.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use http::header::CACHE_CONTROL;
use http::{HeaderValue, Method, StatusCode};

use super::mcp::{label, leave};
use super::reply::{Extra, Refused, empty, json};
use super::{Edge, cors};
use crate::auth::metadata;

pub(super) async fn document(State(edge): State<Arc<Edge>>, request: Request) -> Response {
    let request_id = edge.request_ids.next();
    let response = answer(&edge, &request).unwrap_or_else(|refused| refused.into_response(&request_id));
    edge.metrics.http_request(label(request.method()), "", response.status().as_u16());
    leave(&edge, request.headers(), response, &request_id)
}

fn answer(edge: &Edge, request: &Request) -> Result<Response, Refused> {
    if cors::is_preflight(request.method(), request.headers()) {
        let mut response = empty(StatusCode::NO_CONTENT);
        cors::permit(request.headers(), response.headers_mut());
        return Ok(response);
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let message = "A metadata document is read with GET.";
        let refused = Refused::caller(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message);
        return Err(refused.with(Extra::AllowRead));
    }
    let unknown = || {
        let message = "There is no metadata document here: no such endpoint, or it takes no OAuth tokens.";
        Refused::caller(StatusCode::NOT_FOUND, "unknown_document", message)
    };
    let path =
        metadata::endpoint_of(request.uri().path(), edge.configured_url.as_ref()).ok_or_else(unknown)?;
    let admission = edge.admission.load();
    let issuers: Vec<&str> = admission.authenticator.issuers().collect();
    if issuers.is_empty() || edge.relay.endpoint(path).is_none() {
        return Err(unknown());
    }
    let resource = metadata::resource_url(&edge.public_url, path);
    let mut response = json(StatusCode::OK, metadata::document(&resource, &issuers, &[]));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("max-age=300"));
    Ok(response)
}
