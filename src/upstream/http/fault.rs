//! What can go wrong with an HTTP server, in words for people. None names a URL, a header or a session id.

use std::error::Error;
use std::io;

use http::StatusCode;
use hyper_util::client::legacy;

use crate::protocol::error::Layer;
use crate::upstream::failure::ERA_CHANGED;
use crate::upstream::{Delivery, Failure};

/// The reason of a request that broke on its way.
pub(super) const OUTCOME_UNKNOWN: &str = "outcome_unknown";
/// The reason of a server that does not take the gateway's credentials.
pub(super) const UNAUTHORIZED: &str = "upstream_unauthorized";

fn failure(server: &str, layer: Layer, reason: &'static str, delivery: Delivery, message: String) -> Failure {
    Failure { server: server.to_owned(), layer, reason, message, delivery }
}

/// A request found no way to the server, or broke on it.
pub(super) fn sending(server: &str, error: &legacy::Error) -> Failure {
    tracing::debug!(server, ?error, "a request to a server broke");
    if !error.is_connect() {
        return broken(server);
    }
    let why = if cause::<rustls::Error>(error).is_some() {
        "its TLS certificate or protocol was not accepted"
    } else {
        match cause::<io::Error>(error).map(io::Error::kind) {
            Some(io::ErrorKind::ConnectionRefused) => "the connection was refused",
            Some(io::ErrorKind::TimedOut) => "it did not accept the connection in time",
            Some(io::ErrorKind::ConnectionReset) => "the connection was reset",
            Some(io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable) => {
                "there is no route to it"
            }
            _ => "connecting failed",
        }
    };
    let message = format!("Server `{server}` cannot be reached: {why}. Check that it runs, and its `url`.");
    failure(server, Layer::Transport, "unreachable", Delivery::NotDelivered, message)
}

/// The connection broke, or its stream ended, before the answer.
pub(super) fn broken(server: &str) -> Failure {
    let message = format!(
        "The connection to server `{server}` ended before its answer: the request may have run. \
         Look whether it did before trying again."
    );
    failure(server, Layer::Transport, OUTCOME_UNKNOWN, Delivery::Unknown, message)
}

/// The answer is not what the protocol allows; `what` completes "answered with".
pub(super) fn bad_answer(server: &str, what: &str) -> Failure {
    let message = format!(
        "Server `{server}` answered with {what}, where a JSON-RPC message was due. \
         Check that its `url` is a Streamable HTTP endpoint."
    );
    failure(server, Layer::Transport, "bad_answer", Delivery::Unknown, message)
}

/// A message is over `maxMessage`.
pub(super) fn too_large(server: &str, limit: usize) -> Failure {
    let message = format!("Server `{server}` sent a message of more than {limit} bytes, the limit for it.");
    failure(server, Layer::Transport, "message_too_large", Delivery::Unknown, message)
}

/// An HTTP status that says no. The server's 401 is about the gateway's credentials, never about the caller's.
pub(super) fn status(server: &str, status: StatusCode) -> Failure {
    let number = status.as_u16();
    let (reason, message) = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => (
            UNAUTHORIZED,
            format!(
                "Server `{server}` refused the gateway's own credentials (HTTP {number}). Check its `headers`."
            ),
        ),
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => (
            "http_status",
            format!(
                "Server `{server}` answered HTTP {number}. Check that its `url` is a Streamable HTTP endpoint."
            ),
        ),
        _ => ("http_status", format!("Server `{server}` answered HTTP {number}.")),
    };
    failure(server, Layer::Transport, reason, Delivery::Unknown, message)
}

/// A redirect that is not followed (case-D09).
pub(super) fn redirected(server: &str, why: &str) -> Failure {
    let message = format!(
        "Server `{server}` redirected {why}, which is not followed. Configure its final address as `url`."
    );
    failure(server, Layer::Transport, "redirected", Delivery::Unknown, message)
}

/// The server forgot the session twice in a row (case-D01).
pub(super) fn session_lost(server: &str) -> Failure {
    let message = format!("Server `{server}` does not know the session it began a moment ago.");
    failure(server, Layer::Transport, "session_lost", Delivery::NotDelivered, message)
}

/// The server speaks the other era by now; what it was sent meant nothing to it.
pub(super) fn era_changed(server: &str) -> Failure {
    let message = format!(
        "Server `{server}` speaks another era of the protocol than a moment ago; it is connected to anew. Try again."
    );
    failure(server, Layer::Handshake, ERA_CHANGED, Delivery::NotDelivered, message)
}

/// The link was closed while the request ran.
pub(super) fn closed(server: &str) -> Failure {
    let message =
        format!("The link to server `{server}` was closed before its answer: the request may have run.");
    failure(server, Layer::Transport, "link_closed", Delivery::Unknown, message)
}

/// The link was closed before the request.
pub(super) fn already_closed(server: &str) -> Failure {
    let message = format!("The link to server `{server}` is closed.");
    failure(server, Layer::Transport, "link_closed", Delivery::NotDelivered, message)
}

/// A notification was sent, and the server does not say that it took it.
pub(super) fn not_taken(server: &str) -> Failure {
    let message = format!("Server `{server}` did not take a notification in time.");
    failure(server, Layer::Transport, "notification_timeout", Delivery::Unknown, message)
}

/// `initialize` took too long.
pub(super) fn slow_start(server: &str) -> Failure {
    let message = format!("Server `{server}` did not finish `initialize` in its `timeouts.start`.");
    failure(server, Layer::Handshake, "start_timeout", Delivery::NotDelivered, message)
}

/// `initialize` failed; `why` completes a sentence.
pub(super) fn handshake(server: &str, reason: &'static str, why: &str) -> Failure {
    let message = format!("Server `{server}` could not be initialized: {why}.");
    failure(server, Layer::Handshake, reason, Delivery::NotDelivered, message)
}

/// The settings cannot be sent as they are.
pub(super) fn settings(server: &str, what: &str) -> Failure {
    let message = format!("The settings of server `{server}` cannot be used: {what}.");
    failure(server, Layer::Transport, "bad_settings", Delivery::NotDelivered, message)
}

fn cause<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut error = error;
    loop {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        // An I/O error hides the error it wraps from `source`.
        error = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => inner,
            None => error.source()?,
        };
    }
}
