//! A POST of the modern era: its own checks (E8 to E12), then the relay.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use http::StatusCode;

use super::Edge;
use super::accept::Accepts;
use super::mcp::Admitted;
use super::post::not_acceptable;
use super::reply::{Extra, Refused, json, json_text, sse};
use super::sse_body::SseBody;
use crate::protocol::envelope::Request;
use crate::protocol::error::{Code, RpcError};
use crate::protocol::header::PROTOCOL_VERSION;
use crate::protocol::meta::{CLIENT_CAPABILITIES, CLIENT_INFO, RequestMeta};
use crate::protocol::object::Object;
use crate::protocol::revision::Revision;
use crate::relay::{Busy, Claim, ModernAnswer};

/// Serves one modern request.
pub(super) async fn request(
    edge: &Arc<Edge>,
    admitted: Admitted,
    accepts: Accepts,
    request: Request,
) -> Result<Response, Refused> {
    let id: Box<str> = request.id().into();
    let form = accepts.form().ok_or_else(|| not_acceptable().of(Some(&id)))?;
    let request_id = admitted.request_id.shared();
    let error = |error: &RpcError| {
        json(status(error.code), error.to_message(Some(&id), Some(admitted.request_id.as_str())))
    };
    let claim = match claim(&admitted, &request) {
        Ok(claim) => claim,
        Err(refused) => return Ok(error(&refused)),
    };
    let served = edge.relay.modern(&admitted.caller, &admitted.endpoint, &claim, request, form, request_id);
    match served.await {
        Ok(ModernAnswer::Json(text)) => Ok(json_text(text)),
        Ok(ModernAnswer::Refused(refused)) => Ok(error(&refused)),
        Ok(ModernAnswer::Stream(reader, open)) => {
            Ok(sse(Body::new(SseBody::new(edge, &admitted.caller, reader).cancelling(open))))
        }
        Err(busy @ Busy) => {
            let refused = Refused::caller(StatusCode::TOO_MANY_REQUESTS, "session_busy", busy.to_string());
            Err(refused.with(Extra::RetryAfter(1)).of(Some(&id)))
        }
    }
}

/// The HTTP status of an error of ours (section 1g of the protocol's codes).
fn status(code: Code) -> StatusCode {
    match code {
        Code::MethodNotFound => StatusCode::NOT_FOUND,
        Code::HeaderMismatch | Code::MissingCapability | Code::UnsupportedVersion => StatusCode::BAD_REQUEST,
        Code::Parse | Code::InvalidRequest => StatusCode::BAD_REQUEST,
        Code::InvalidParams | Code::Internal | Code::ResourceNotFound => StatusCode::OK,
    }
}

/// What the request claims of its caller, checked against its headers.
fn claim(admitted: &Admitted, request: &Request) -> Result<Claim, RpcError> {
    let invalid = |why: String| RpcError::new(Code::InvalidParams, "invalid_params", why);
    let params = Object::parse(request.params().unwrap_or("{}")).map_err(|e| invalid(e.to_string()))?;
    let meta = RequestMeta::of(&params).map_err(invalid)?;
    let version = meta.version().unwrap_or_default();
    let header = admitted.parts.headers.get(PROTOCOL_VERSION).map(|v| v.as_bytes().trim_ascii());
    if header != Some(version.as_bytes()) {
        let message = "MCP-Protocol-Version and the version in params._meta must be the same.";
        return Err(RpcError::new(Code::HeaderMismatch, "header_mismatch", message));
    }
    let revision = Revision::modern(&version).ok_or_else(|| {
        RpcError::new(Code::UnsupportedVersion, "unsupported_version", "This version is not served here.")
    })?;
    let capabilities = meta.object(CLIENT_CAPABILITIES).unwrap_or("{}").into();
    Ok(Claim { revision, capabilities, client_info: meta.object(CLIENT_INFO).map(Into::into) })
}
