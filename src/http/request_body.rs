//! Reading a request's body within its limits in size and time, counted while reading.

use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http_body_util::BodyExt as _;

use super::reply::Refused;
use crate::protocol::error::Code;

/// The whole body.
///
/// # Errors
/// 413 if it is larger than `limit` bytes, 408 if it takes longer than `patience`, 400 if it breaks off.
pub(super) async fn read(body: Body, limit: usize, patience: Duration) -> Result<Bytes, Refused> {
    match tokio::time::timeout(patience, collect(body, limit)).await {
        Ok(read) => read,
        Err(_) => Err(Refused::new(
            StatusCode::REQUEST_TIMEOUT,
            Code::InvalidRequest,
            "body_too_slow",
            format!("The request's body did not come within {patience:?} (limits.bodyRead)."),
        )),
    }
}

/// The refusal of a body over the limit.
pub(super) fn too_large(limit: usize) -> Refused {
    let message = format!("The request's body is larger than {limit} bytes (limits.body).");
    Refused::caller(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", message)
}

async fn collect(mut body: Body, limit: usize) -> Result<Bytes, Refused> {
    let broken = |_| Refused::caller(StatusCode::BAD_REQUEST, "body_broken", "The request's body broke off.");
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
        if first.len() + rest.len() + data.len() > limit {
            return Err(too_large(limit));
        }
        // A body that comes in one piece, as most do, is not copied.
        if rest.is_empty() && first.is_empty() {
            first = data;
            continue;
        }
        if rest.is_empty() {
            rest.extend_from_slice(&first);
            first = Bytes::new();
        }
        rest.extend_from_slice(&data);
    }
    Ok(if rest.is_empty() { first } else { rest.freeze() })
}
