//! The error -32042 of legacy servers: a call that needs URLs visited first (X44).
//!
//! The call has ended, so nothing is parked: the caller is asked to visit them, and its retry makes the call anew.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::carried::Carried;
use super::state::{GoesOn, State, request_digest};
use crate::protocol::capability::Capability;
use crate::protocol::envelope::Response;
use crate::protocol::error::{Code, Layer, RpcError};
use crate::protocol::object::Object;
use crate::protocol::revision::Era;
use crate::protocol::translate::{input_required, required_urls};
use crate::relay::Relay;
use crate::relay::route::Route;
use crate::relay::seat::Seat;
use crate::relay::serving::Serving;
use crate::store::lock;

/// A call that is to be made again: the number of its seat, and how long that is kept.
#[derive(Clone, Copy, Debug)]
pub(in crate::relay) struct Again {
    seat: u64,
    input: Duration,
}

/// The seat of a call that is to be made again.
pub(super) struct KeptSeat {
    seat: Mutex<Option<Seat>>,
    taken: CancellationToken,
}

// === impl Relay ===

impl Relay {
    /// The response that asks a modern caller to visit URLs, if that is what the response of a server of `era` wants;
    /// -32021 if this caller cannot be asked to (T42).
    pub(in crate::relay) fn wants_urls(
        &self,
        serving: Serving<'_>,
        route: &Route,
        response: &Response,
        era: Era,
    ) -> Option<Bytes> {
        let Serving { session, request, outlet, .. } = serving;
        if (session.revision().era(), era) != (Era::Modern, Era::Legacy) {
            return None;
        }
        let modern = outlet.for_modern()?;
        let questions = modern.questions.as_ref()?;
        let entries = required_urls(response.error()?).filter(|entries| !entries.is_empty())?;
        let server = &route.target.server;
        if !questions.declared(Capability::ElicitationUrl) {
            let message = format!(
                "Server `{}` wants URLs to be visited before this call, and this client did not declare elicitation.url.",
                server.name
            );
            let error = RpcError::new(Code::MissingCapability, "missing_capability", message)
                .at(&server.name, Layer::Call)
                .with_data(r#""requiredCapabilities":{"elicitation":{"url":{}}}"#);
            return Some(error.to_message(Some(request.id()), Some(&outlet.request_id())));
        }
        let requests =
            entries.iter().enumerate().map(|(n, entry)| format!(r#""elicitation-{}":{entry}"#, n + 1));
        let requests = format!("{{{}}}", requests.collect::<Vec<_>>().join(","));
        let params = request.params().and_then(|raw| Object::parse(raw).ok()).unwrap_or_default();
        let digest = request_digest(request.method(), &params);
        let Again { seat, .. } = *modern
            .again
            .get_or_init(|| Again { seat: self.parked.next_number(), input: server.timeouts.input });
        let goes_on = GoesOn::Again { replica: self.sessions.replica().0.to_string(), seat };
        let state = State::new(goes_on, digest, server.timeouts.input);
        Some(input_required(request.id(), &requests, &state.seal(&self.sealer, &session.binding)))
    }

    /// Keeps the seat of a call that is to be made again, if its session would end with it: the server may know by
    /// the session that the URLs were visited. For as long as the caller has time.
    pub(super) fn keep_seat(self: &Arc<Self>, carried: &mut Carried) {
        let kept = carried.outlet.for_modern().and_then(|modern| modern.again.get().copied());
        let Some(Again { seat: number, input }) = kept else { return };
        let Some(seat) = carried.take_seat().filter(Seat::is_alone) else { return };
        let taken = CancellationToken::new();
        let kept = KeptSeat { seat: Mutex::new(Some(seat)), taken: taken.clone() };
        self.parked.seats.insert(number, Arc::new(kept));
        let relay = self.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = taken.cancelled() => {}
                () = tokio::time::sleep(input) => {}
                () = relay.stopping.cancelled() => {}
            }
            relay.parked.seats.remove(&number);
        });
    }

    /// The seat kept for a call that is made again.
    pub(super) fn kept_seat(&self, replica: &str, number: u64) -> Option<Seat> {
        let here = *replica == *self.sessions.replica().0;
        let kept = here.then(|| self.parked.seats.remove(&number)).flatten()?;
        kept.taken.cancel();
        lock(&kept.seat).take()
    }
}
