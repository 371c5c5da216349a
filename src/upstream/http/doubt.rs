//! Refusals that only a server of the other era gives (T66).
//!
//! A server may be replaced by one of the other era at any time, and at the same address. What was sent in the old
//! era's way is then refused before anything ran, and once the server confirmed it, all is done again in the new way.

use http::StatusCode;

use super::call::Attempt;
use super::peer::Peer;
use crate::protocol::envelope::Response;
use crate::protocol::object::Object;
use crate::protocol::revision::Era;
use crate::settings::servers::ProtocolSetting;

/// Whether the answer to a request of `era` makes it doubtful that the server is of that era.
pub(super) fn is_doubtful(era: Era, status: StatusCode, error: Option<&Response>) -> bool {
    match era {
        Era::Modern => is_about_message(status) && error.is_none_or(|error| is_odd(era, error)),
        Era::Legacy => status == StatusCode::BAD_REQUEST && error.is_some_and(|error| is_odd(era, error)),
    }
}

/// Whether a server of `era` that checks what it is sent would hardly give this error.
pub(super) fn is_odd(era: Era, error: &Response) -> bool {
    match era {
        // What it says of sessions it says in codes that the modern era gave up (1g).
        Era::Modern => matches!(code(error), Some(-32600 | -32019..=-32000)),
        // T38, T39, T41: a modern server misses what every request of its era says.
        Era::Legacy => matches!(code(error), Some(-32600 | -32602 | -32022 | -32021 | -32020)),
    }
}

/// Whether `initialize` was refused by what may be a modern server.
pub(super) fn is_refusal(answer: &Attempt) -> bool {
    match answer {
        Attempt::Answered(response) => response.error().is_some(),
        Attempt::Refused(status, _) => is_about_message(*status),
        Attempt::SessionLost => true,
    }
}

/// Asks whether the server is of another era than `era` by now. One that is pinned to an era is never asked.
pub(super) async fn is_other_era(peer: &Peer, era: Era) -> bool {
    let asked = match peer.server.protocol {
        ProtocolSetting::Auto => peer.listener.ask_era(era).await,
        ProtocolSetting::Pinned(_) => None,
    };
    asked.is_some_and(|now| now != era)
}

/// Whether a status may be about what was sent, and not about who sent it, how much or how fast.
fn is_about_message(status: StatusCode) -> bool {
    let other = matches!(
        status,
        StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
            | StatusCode::PROXY_AUTHENTICATION_REQUIRED
            | StatusCode::REQUEST_TIMEOUT
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::TOO_EARLY
            | StatusCode::TOO_MANY_REQUESTS
            | StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
    );
    status.is_client_error() && !other
}

fn code(response: &Response) -> Option<i64> {
    Object::parse(response.error()?).ok()?.get("code")?.parse().ok()
}
