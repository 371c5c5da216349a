//! A POST of the modern era: its own checks (E7 to E11), then the relay.
//!
//! The body decides what a request is, and its headers must repeat it: [`meta`] reads what it claims, [`mirrored`]
//! compares. What is refused here never reached the relay, and says so in its HTTP status.

mod listen;
mod meta;
mod mirrored;
mod note;

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use http::{HeaderMap, StatusCode};

use super::Edge;
use super::accept::{Accepts, Grade};
use super::forward::Target;
use super::headers::{self, era_of_header};
use super::journey::{Detour, Journey};
use super::legacy::refused_seat;
use super::mcp::Admitted;
use super::peer::not_owner;
use super::post::not_acceptable;
use super::reply::{Refused, json, json_text, sse};
use super::sse_body::SseBody;
use crate::protocol::capability::CapabilityClass;
use crate::protocol::envelope::Request;
use crate::protocol::error::Code;
use crate::protocol::meta::LOG_LEVEL;
use crate::protocol::method::Method;
use crate::protocol::object::{Object, items, text};
use crate::protocol::revision::Era;
use crate::relay::{Came, Claim, Form, ModernAnswer};
use crate::session::Epoch;

pub(super) use note::era_of_note;

/// What a request claims of its caller, checked against its headers; none if it is one of the legacy era (E7).
///
/// The order: `_meta` whole (E8), no header twice (E9), version header equal (E10), version served (E11), and then
/// the headers whose meaning the version says.
///
/// # Errors
/// 400 with -32602, -32020 or -32022.
pub(super) fn claim(headers: &HeaderMap, request: &Request) -> Result<Option<Claim>, Refused> {
    let said = era_of_header(headers);
    if said == Era::Legacy && !Era::may_be_claimed_by(request.params()) {
        return Ok(None);
    }
    let params = match Object::parse(request.params().unwrap_or("{}")) {
        Ok(params) => params,
        Err(_) if said == Era::Legacy => return Ok(None),
        Err(why) => return Err(meta::incomplete(format!("params cannot be read: {why}"))),
    };
    let meta = match meta::of(&params) {
        Ok(meta) if said == Era::Modern || meta::claims(&meta) => meta,
        Ok(_) => return Ok(None),
        Err(_) if said == Era::Legacy => return Ok(None),
        Err(refused) => return Err(refused),
    };
    let claimed = meta::complete(&meta)?;
    mirrored::once_each(headers)?;
    mirrored::version(headers, &claimed.version)?;
    let revision = headers::served(&claimed.version)?;
    mirrored::method(headers, request.method())?;
    mirrored::name(headers, request.method(), &params)?;
    let class = CapabilityClass::of(claimed.capabilities);
    let (capabilities, client_info) = (claimed.capabilities.into(), claimed.client_info.map(Into::into));
    let log_level = meta.get(LOG_LEVEL).and_then(text).map(|level| level.as_ref().into());
    let params = mirrored::params(headers, request.method())?;
    Ok(Some(Claim { revision, capabilities, class, client_info, log_level, params }))
}

/// Whether any message of a batch claims the modern era, which has no batches.
pub(super) fn claimed_in_batch(batch: &[u8]) -> bool {
    let claims = |message: &str| {
        let params = Object::parse(message).ok()?.get("params")?;
        Some(meta::claims(&meta::of(&Object::parse(params).ok()?).ok()?))
    };
    let text = std::str::from_utf8(batch).ok().filter(|text| Era::may_be_claimed_by(Some(text)));
    text.and_then(items).is_some_and(|messages| messages.into_iter().any(|m| claims(m) == Some(true)))
}

/// Serves one modern request.
pub(super) async fn request(
    edge: &Arc<Edge>,
    admitted: Admitted,
    accepts: Accepts,
    claim: Claim,
    request: Request,
) -> Result<Response, Refused> {
    let id: Box<str> = request.id().into();
    let form = form(accepts, request.method()).map_err(|refused| refused.of(Some(&id)))?;
    if *request.method() == Method::Listen {
        // Apart, so that calls need no room for it.
        return Box::pin(listen::listen(edge, admitted, form, &claim, &request)).await;
    }
    let mut journey = Journey::new(edge, &admitted);
    let mut request = request;
    loop {
        let Some(came) = came(edge, &admitted, &journey) else { return Ok(not_owner()) };
        let answer = edge.relay.modern(admitted.post(form), &claim, request, came).await;
        let elsewhere = match answer.map_err(|no_seat| refused_seat(&no_seat).of(Some(&id)))? {
            ModernAnswer::Elsewhere(elsewhere) => elsewhere,
            served => return Ok(answered(edge, &admitted, &id, served)),
        };
        let target = Target { peer: &elsewhere.peer, epoch: elsewhere.epoch, era: Era::Modern };
        let detour = |why| match why {
            Detour::Elsewhere => edge.relay.forget_elsewhere(&elsewhere),
            Detour::Silence => edge.relay.missed_elsewhere(&elsewhere),
        };
        let gone = journey.go(elsewhere.request.bytes(), target, detour).await;
        if let Some(answer) = gone.map_err(|refused| refused.of(Some(&id)))? {
            return Ok(answer);
        }
        request = elsewhere.request;
    }
}

/// How a request came here; none if a peer means another replica.
fn came<'a>(edge: &Edge, admitted: &Admitted, journey: &'a Journey<'_>) -> Option<Came<'a>> {
    let Some(hop) = &admitted.hop else { return Some(Came::Caller(journey.dead())) };
    let meant = edge.forwarder.as_ref().is_some_and(|forwarder| *forwarder.this() == hop.replica);
    meant.then(|| hop.epoch.map_or(Came::ToReplica, |epoch| Came::ToOwner(Epoch(epoch))))
}

/// The answer of this replica.
fn answered(edge: &Edge, admitted: &Admitted, id: &str, answer: ModernAnswer) -> Response {
    match answer {
        ModernAnswer::Json(text) => json_text(text),
        ModernAnswer::Failed(code, text) => json(status(code), text.join()),
        ModernAnswer::Refused(error) => {
            let body = error.to_message(Some(id), Some(admitted.request_id.as_str()));
            json(status(error.code), body)
        }
        ModernAnswer::Stream(reader, open) => {
            sse(Body::new(SseBody::new(edge, &admitted.caller, reader).cancelling(open)))
        }
        ModernAnswer::Elsewhere(_) | ModernAnswer::NotOwner => not_owner(),
    }
}

/// The forms of answer that are left; a subscription is a stream or nothing (E5).
fn form(accepts: Accepts, method: &Method) -> Result<Form, Refused> {
    if *method == Method::Listen && accepts.sse == Grade::Refused {
        let message =
            "subscriptions/listen is answered with text/event-stream; the Accept header does not allow it.";
        return Err(Refused::caller(StatusCode::NOT_ACCEPTABLE, "not_acceptable", message));
    }
    accepts.form().ok_or_else(not_acceptable)
}

/// The HTTP status of an error of the relay's own from before it relayed anything. What was wrong with the headers
/// or `_meta` was refused above; wrong params, an unknown tool or cursor are answers like any other (T11).
fn status(code: Code) -> StatusCode {
    match code {
        Code::MethodNotFound => StatusCode::NOT_FOUND,
        Code::HeaderMismatch | Code::MissingCapability | Code::UnsupportedVersion => StatusCode::BAD_REQUEST,
        Code::Parse | Code::InvalidRequest => StatusCode::BAD_REQUEST,
        Code::InvalidParams | Code::Internal | Code::ResourceNotFound => StatusCode::OK,
    }
}
