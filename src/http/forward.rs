//! Forwarding a request to the replica that owns its session, unchanged, and giving its answer back.
//!
//! Only what surely was not delivered is tried again. What may have run ends as `outcome unknown`.

mod addresses;
mod body;
mod cluster_keys;
mod hold;
mod passing;
mod unanswered;

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, StatusCode};
use tokio::time::Instant;

use super::Edge;
use super::mcp::Admitted;
use super::peer::{Hop, HopBody, HopError, Outgoing, PeerClient, Replica};
use super::reply::{Refused, empty, json};
use crate::protocol::envelope::Message;
use crate::protocol::revision::Era;
use crate::session::{Epoch, Peer};
use crate::telemetry::metrics::cluster::Forward;
use addresses::Addresses;
use body::{Kind, LastWords, Streamed};
pub use cluster_keys::ClusterKeys;
pub(super) use hold::Held;
pub use hold::Hold;
pub(super) use passing::Passage;
use passing::Passing;
use unanswered::Unanswered;

/// The way to other replicas.
#[derive(Clone, Debug)]
pub struct Forwarder {
    client: PeerClient,
    /// This replica.
    this: Replica,
    addresses: Arc<Addresses>,
    /// Requests that wait until it is clear whether their owner lives.
    pub(super) hold: Arc<Hold>,
    /// Requests that wait until it is clear where their session is.
    pub(super) looks: Arc<Hold>,
    passing: Passing,
    /// How long an owner may be silent before it is taken for dead.
    lease: Duration,
}

/// How long a JSON answer of another replica may be, bytes: the largest that a server may send, and what is put around.
const MOST_JSON: usize = 256 << 20;

/// Where a request is forwarded to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target<'a> {
    /// The replica.
    pub(super) peer: &'a Peer,
    /// The epoch in which it is meant to be the owner; none if only the replica is meant.
    pub(super) epoch: Option<Epoch>,
    /// The era of the request: whether a stream that breaks can be come back to.
    pub(super) era: Era,
}

/// Why a request has no answer of its owner.
#[derive(Debug)]
pub(super) enum NotForwarded {
    /// It owns the session no longer: look again.
    NotOwner,
    /// It is proven dead: its sessions can be adopted.
    Dead,
    /// Nothing was delivered, and nothing is known.
    Unreachable(HopError),
    /// The request may have run: this says so.
    Unknown(Box<Response>),
}

// === impl Forwarder ===

impl Forwarder {
    /// A way over `client` for the replica `this`. A caller that is sent back without need comes after `retry`.
    pub fn new(
        client: PeerClient,
        this: Replica,
        keys: ClusterKeys,
        lease: Duration,
        retry: Duration,
    ) -> Self {
        let addresses = Arc::new(Addresses::new(keys));
        let (hold, looks) = (Arc::new(Hold::of_unclear()), Arc::new(Hold::of_looks()));
        Self { client, this, addresses, hold, looks, passing: Passing::new(retry), lease }
    }

    /// How long a request may be held.
    pub(super) fn patience(&self) -> Duration {
        self.lease + Duration::from_secs(1)
    }

    /// This replica.
    pub(super) fn this(&self) -> &Replica {
        &self.this
    }

    /// Ends the streams that are forwarded and can be resumed: their callers come back.
    pub(super) fn send_back(&self) {
        self.passing.send_back();
    }

    /// Lets all that is forwarded end, at the end of the process, by `deadline`.
    pub(super) async fn leave(&self, deadline: Instant) {
        self.passing.leave(&self.client, deadline).await;
    }

    /// A request that is to be forwarded: as long as this lives the end of the process waits for it, within its bound.
    pub(super) fn enter(&self) -> Passage {
        self.passing.enter()
    }

    /// Whether a replica can be reached.
    ///
    /// # Errors
    /// Why not, in words.
    pub async fn reach(&self, peer: &Peer) -> Result<(), String> {
        let to = self.addresses.of(peer).await.map_err(|error| error.to_string())?;
        self.client.reach(&to).await.map_err(|error| error.to_string())
    }

    /// Sends a request to its session's owner, or whoever else is to serve it.
    pub(super) async fn forward(
        &self,
        edge: &Edge,
        admitted: &Admitted,
        body: &Bytes,
        target: Target<'_>,
        passage: &Passage,
    ) -> Result<Response, NotForwarded> {
        match self.send(edge, admitted, body, target).await {
            Ok(answer) => self.answer(admitted, body, target.era, answer, passage).await,
            Err(HopError::NotOwner) => Err(NotForwarded::NotOwner),
            Err(HopError::Broken(why)) => Err(unknown(admitted, body, &why)),
            Err(error) if error.proves_death() => Err(NotForwarded::Dead),
            Err(error) => Err(NotForwarded::Unreachable(error)),
        }
    }

    /// Sends a request as it came, but for its body, and gives what its target answers.
    ///
    /// # Errors
    /// [`HopError`]
    pub(super) async fn send(
        &self,
        edge: &Edge,
        admitted: &Admitted,
        body: &Bytes,
        target: Target<'_>,
    ) -> Result<http::Response<HopBody>, HopError> {
        let sent = self.sent(admitted, body, target).await;
        let counted = match &sent {
            Ok(_) => Forward::Ok,
            Err(HopError::NotOwner) => Forward::NotOwner,
            Err(HopError::Broken(_)) => Forward::Broken,
            Err(_) => Forward::Unreachable,
        };
        edge.metrics.cluster().forwarded(counted);
        sent
    }

    async fn sent(
        &self,
        admitted: &Admitted,
        body: &Bytes,
        target: Target<'_>,
    ) -> Result<http::Response<HopBody>, HopError> {
        let to = self.addresses.of(target.peer).await?;
        let hop = Hop {
            edge_peer: admitted.address,
            replica: to.replica.clone(),
            epoch: target.epoch.map(|epoch| epoch.0),
            hops: 1,
            from: self.this.clone(),
        };
        let parts = &admitted.parts;
        let request = Outgoing { method: &parts.method, uri: &parts.uri, headers: &parts.headers, body };
        self.client.send(&to, &hop, request).await
    }

    async fn answer(
        &self,
        admitted: &Admitted,
        body: &Bytes,
        era: Era,
        answer: http::Response<HopBody>,
        passage: &Passage,
    ) -> Result<Response, NotForwarded> {
        let (mut head, answered) = answer.into_parts();
        head.extensions.insert(FromOwner);
        head.version = http::Version::HTTP_11;
        if is_stream(head.headers.get(CONTENT_TYPE)) {
            let last_words = match era {
                Era::Legacy if admitted.parts.method == Method::POST => {
                    LastWords::of_post(self.lease, Unanswered::of(admitted, body))
                }
                Era::Legacy => LastWords::ComeBack(Kind::Standing, self.lease),
                Era::Modern => LastWords::Responses(Unanswered::of(admitted, body)),
            };
            let streamed = Streamed::new(answered, last_words, passage.clone());
            return Ok(Response::from_parts(head, Body::new(streamed)));
        }
        match body::whole(answered, MOST_JSON).await {
            Ok(bytes) => Ok(Response::from_parts(head, Body::from(bytes))),
            Err(why) => Err(unknown(admitted, body, &why)),
        }
    }
}

/// Marks an answer that another replica gave: it has its request id already, under which that replica's log has more.
#[derive(Clone, Copy, Debug)]
pub(super) struct FromOwner;

pub(super) fn is_stream(content_type: Option<&HeaderValue>) -> bool {
    content_type.is_some_and(|value| value.as_bytes().starts_with(b"text/event-stream"))
}

/// The answer to a request that may have run at its owner (promise 3: it is never sent again).
fn unknown(admitted: &Admitted, body: &Bytes, why: &str) -> NotForwarded {
    tracing::warn!(
        request.id = admitted.request_id.as_str(),
        layer = "gateway",
        reason = "outcome_unknown",
        "a request that was forwarded to another replica has no answer: {why}"
    );
    NotForwarded::Unknown(Box::new(if admitted.parts.method == Method::POST {
        let outcomes = Unanswered::of(admitted, body).outcomes();
        let all: Vec<Bytes> = outcomes.into_iter().map(|(_, error)| error).collect();
        match (&all[..], Message::parse(body.clone())) {
            // Nobody waits for word of notifications and responses, and they must not come again.
            ([], _) => empty(StatusCode::ACCEPTED),
            ([one], Ok(_)) => json(StatusCode::OK, one.clone()),
            (all, _) => json(StatusCode::OK, [&b"["[..], &all.join(&b","[..]), b"]"].concat().into()),
        }
    } else {
        // A stream can be resumed.
        let message =
            "The way to the replica that owns this session broke while it answered; come back in a moment.";
        Refused::unavailable("owner_unreachable", message).into_response(&admitted.request_id)
    }))
}
