//! `subscriptions/listen`: served where it arrives; what the owner of the caller's implicit session contributes comes
//! over the hop, by a request like the caller's own.

use std::sync::Arc;

use axum::response::Response;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use http::header::CONTENT_TYPE;
use http_body_util::BodyExt as _;

use super::answered;
use crate::http::Edge;
use crate::http::forward::{Forwarder, Target, is_stream};
use crate::http::legacy::refused_seat;
use crate::http::mcp::Admitted;
use crate::http::peer::{HopBody, HopError, not_owner};
use crate::http::reply::Refused;
use crate::protocol::envelope::Request;
use crate::protocol::revision::Era;
use crate::protocol::sse::{ByteLimit, Decoder};
use crate::relay::{Claim, Form, Messages, Missed, Opener, Way};
use crate::session::{Epoch, Owner, ReplicaId};

/// How long one event of an owner may be, bytes: an acknowledgement repeats the URIs of the request.
const MOST_EVENT: ByteLimit = ByteLimit(16 << 20);

/// A caller's listen on its way to owners of its implicit session.
struct ToOwner {
    edge: Arc<Edge>,
    forwarder: Forwarder,
    admitted: Arc<Admitted>,
}

/// Serves a listen: of a caller, or of another replica for one.
pub(super) async fn listen(
    edge: &Arc<Edge>,
    admitted: Admitted,
    form: Form,
    claim: &Claim,
    request: &Request,
) -> Result<Response, Refused> {
    let admitted = Arc::new(admitted);
    let Some(opener) = opener(edge, &admitted) else { return Ok(not_owner()) };
    let answer = edge.relay.listen(admitted.post(form), claim, request, opener).await;
    let answer = answer.map_err(|no_seat| refused_seat(&no_seat).of(Some(request.id())))?;
    Ok(answered(edge, &admitted, request.id(), answer))
}

/// Who opens it; none if a peer means another replica, or none as the owner.
fn opener(edge: &Arc<Edge>, admitted: &Arc<Admitted>) -> Option<Opener> {
    let Some(hop) = &admitted.hop else {
        let way = edge.forwarder.clone().map(|forwarder| {
            let (edge, admitted) = (edge.clone(), admitted.clone());
            Arc::new(ToOwner { edge, forwarder, admitted }) as Arc<dyn Way>
        });
        return Some(Opener::Caller(way));
    };
    edge.forwarder.as_ref().filter(|forwarder| *forwarder.this() == hop.replica)?;
    Some(Opener::Peer { at: ReplicaId(hop.from.as_str().into()), epoch: Epoch(hop.epoch?) })
}

// === impl ToOwner ===

impl Way for ToOwner {
    fn listen(&self, owner: &Owner, request: Bytes) -> BoxFuture<'_, Result<Messages, Missed>> {
        let owner = owner.clone();
        async move {
            let target = Target { peer: &owner.peer, epoch: Some(owner.epoch), era: Era::Modern };
            match self.forwarder.send(&self.edge, &self.admitted, &request, target).await {
                Ok(answer) if is_stream(answer.headers().get(CONTENT_TYPE)) => {
                    Ok(messages(answer.into_body()))
                }
                Ok(answer) => {
                    let status = answer.status().as_u16();
                    tracing::debug!(status, "another replica refused its part of a listen");
                    Err(Missed::Refused)
                }
                Err(HopError::NotOwner) => Err(Missed::Refused),
                Err(error) if error.proves_death() => Err(Missed::Dead),
                Err(error) => {
                    tracing::debug!(%error, "another replica could not be asked for its part of a listen");
                    Err(Missed::Silence)
                }
            }
        }
        .boxed()
    }
}

/// The messages of an event stream, until it ends or breaks.
fn messages(body: HopBody) -> Messages {
    let read = (body, Decoder::new(MOST_EVENT), Bytes::new());
    stream::unfold(read, |(mut body, mut decoder, mut chunk)| async move {
        loop {
            match decoder.decode(&mut chunk) {
                Ok(Some(event)) if !event.data.is_empty() => {
                    return Some((event.data, (body, decoder, chunk)));
                }
                Ok(Some(_)) => {}
                Ok(None) => chunk = body.frame().await?.ok()?.into_data().ok()?,
                Err(_) => return None,
            }
        }
    })
    .boxed()
}
