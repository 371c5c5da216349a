//! Requests that may have run at another replica, and what their callers are told of them.

use bytes::Bytes;

use crate::http::legacy::MOST_IN_BATCH;
use crate::http::mcp::Admitted;
use crate::http::request_id::RequestId;
use crate::protocol::envelope::{Message, batch};
use crate::protocol::error::{Code, Layer, RpcError};

/// The requests of a POST that was forwarded. Nothing is read of it before it has to be: nearly always they are answered.
#[derive(Debug)]
pub(super) struct Unanswered {
    body: Bytes,
    request_id: RequestId,
}

// === impl Unanswered ===

impl Unanswered {
    pub(super) fn of(admitted: &Admitted, body: &Bytes) -> Self {
        Self { body: body.clone(), request_id: admitted.request_id.clone() }
    }

    #[cfg(test)]
    pub(super) fn made_of(body: &'static str) -> Self {
        let request_ids = crate::http::request_id::RequestIds::new();
        Self { body: Bytes::from_static(body.as_bytes()), request_id: request_ids.next() }
    }

    /// That the outcome of each is unknown, by its raw id.
    pub(super) fn outcomes(&self) -> Vec<(Box<str>, Bytes)> {
        let of = |message: Message| match message {
            Message::Request(request) => Some((request.id().into(), self.unknown(request.id()))),
            Message::Notification(_) | Message::Response(_) => None,
        };
        match Message::parse(self.body.clone()) {
            Ok(message) => of(message).into_iter().collect(),
            Err(_) => {
                let parts = batch(&self.body, MOST_IN_BATCH).into_iter().flatten();
                parts.filter_map(|part| Message::parse(part).ok().and_then(of)).collect()
            }
        }
    }

    fn unknown(&self, id: &str) -> Bytes {
        let message = "The replica that served this request for another failed meanwhile; the request's outcome is unknown.";
        let mut error = RpcError::new(Code::Internal, "outcome_unknown", message);
        error.layer = Layer::Gateway;
        error.to_message(Some(id), Some(self.request_id.as_str()))
    }
}
