//! What a forwarded request says beside itself: one set of headers, written by the sender and read by the owner.
//!
//! All their names begin with [`PREFIX`]. The public listener strips whatever begins so, and the peer listener takes
//! the set out of a request before anyone else sees it, so that no caller can write one and no server can read one.

use std::net::SocketAddr;

use axum::body::Body;
use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::Replica;

/// How the names of these headers begin; no other header may.
const PREFIX: &str = "mcpgate-hop-";
/// The format of the set. A reader refuses one that it does not know.
static FORMAT: HeaderName = HeaderName::from_static("mcpgate-hop-format");
static PEER: HeaderName = HeaderName::from_static("mcpgate-hop-peer");
static TO: HeaderName = HeaderName::from_static("mcpgate-hop-to");
static EPOCH: HeaderName = HeaderName::from_static("mcpgate-hop-epoch");
static FROM: HeaderName = HeaderName::from_static("mcpgate-hop-from");
static COUNT: HeaderName = HeaderName::from_static("mcpgate-hop-count");
/// In an answer: nothing ran, since the replica is not the owner meant.
static NOT_OWNER: HeaderName = HeaderName::from_static("mcpgate-hop-not-owner");

/// The one format there is.
const THIS_FORMAT: HeaderValue = HeaderValue::from_static("1");
/// A request is forwarded once: who is not the owner says so instead.
const MOST_HOPS: u8 = 1;

/// Where a forwarded request comes from, and whom it is meant for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The caller's address as the edge saw it.
    pub edge_peer: SocketAddr,
    /// The replica that is meant to be the owner.
    pub replica: Replica,
    /// The epoch in which it is meant to be; none if only the replica is meant.
    pub epoch: Option<u32>,
    /// How often the request was forwarded, this time included.
    pub hops: u8,
    /// Who forwards it.
    pub from: Replica,
}

/// A request on the peer listener that does not say properly where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MalformedHop {
    /// A header of the set is missing.
    #[error("header {0} is missing")]
    Missing(&'static str),
    /// A header of the set is sent twice or cannot be read.
    #[error("header {0} cannot be read")]
    Unreadable(&'static str),
    /// A header that begins like the set but is not of it, or a format of another version.
    #[error("the request is of another format of forwarding; the replicas differ too much in version")]
    OtherFormat,
    /// It was forwarded too often.
    #[error("the request was forwarded more than {MOST_HOPS} times")]
    TooManyHops,
}

/// The answer of a replica that is not the owner meant, before anything ran.
pub fn not_owner() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::MISDIRECTED_REQUEST;
    response.headers_mut().insert(&NOT_OWNER, HeaderValue::from_static("1"));
    response
}

/// Whether an answer is [`not_owner`].
pub(super) fn is_not_owner<B>(answer: &http::Response<B>) -> bool {
    answer.status() == StatusCode::MISDIRECTED_REQUEST && answer.headers().contains_key(&NOT_OWNER)
}

/// Takes out every header that begins like the set.
pub(in crate::http) fn strip(headers: &mut HeaderMap) {
    let ours = |name: &&HeaderName| is_ours(name);
    while let Some(name) = headers.keys().find(ours).cloned() {
        headers.remove(name);
    }
}

/// Whether a header's name begins like the set.
pub(super) fn is_ours(name: &HeaderName) -> bool {
    name.as_str().starts_with(PREFIX)
}

// === impl Hop ===

impl Hop {
    /// Writes the set.
    pub(super) fn write(&self, headers: &mut HeaderMap) {
        headers.insert(&FORMAT, THIS_FORMAT);
        headers.insert(&COUNT, HeaderValue::from(u16::from(self.hops)));
        if let Some(epoch) = self.epoch {
            headers.insert(&EPOCH, HeaderValue::from(epoch));
        }
        // A replica's id is made of characters that headers take, and so is an address.
        let peer = self.edge_peer.to_string();
        for (name, text) in [(&TO, self.replica.as_str()), (&FROM, self.from.as_str()), (&PEER, &peer)] {
            if let Ok(mut value) = HeaderValue::from_str(text) {
                // Each caller has its own: nothing to remember for compression.
                value.set_sensitive(name == PEER);
                headers.insert(name, value);
            }
        }
    }

    /// Takes the set out of a request's headers and reads it.
    ///
    /// # Errors
    /// [`MalformedHop`]
    pub(super) fn take(headers: &mut HeaderMap) -> Result<Self, MalformedHop> {
        if take(headers, &FORMAT)? != THIS_FORMAT {
            return Err(MalformedHop::OtherFormat);
        }
        let hops = read(headers, &COUNT)?;
        let epoch = if headers.contains_key(&EPOCH) { Some(read(headers, &EPOCH)?) } else { None };
        let edge_peer = read(headers, &PEER)?;
        let [replica, from] = [replica(headers, &TO)?, replica(headers, &FROM)?];
        if headers.keys().any(is_ours) {
            return Err(MalformedHop::OtherFormat);
        }
        match hops {
            0 => Err(MalformedHop::Unreadable("mcpgate-hop-count")),
            1..=MOST_HOPS => Ok(Self { edge_peer, replica, epoch, hops, from }),
            _ => Err(MalformedHop::TooManyHops),
        }
    }
}

/// One header of the set, which stands there once.
fn take(headers: &mut HeaderMap, name: &'static HeaderName) -> Result<HeaderValue, MalformedHop> {
    use http::header::Entry;
    match headers.entry(name) {
        Entry::Vacant(_) => Err(MalformedHop::Missing(name.as_str())),
        Entry::Occupied(entry) if entry.iter().nth(1).is_some() => {
            entry.remove_entry_mult();
            Err(MalformedHop::Unreadable(name.as_str()))
        }
        Entry::Occupied(entry) => Ok(entry.remove()),
    }
}

fn read<T: std::str::FromStr>(headers: &mut HeaderMap, name: &'static HeaderName) -> Result<T, MalformedHop> {
    let value = take(headers, name)?;
    let read = value.to_str().ok().and_then(|text| text.parse().ok());
    read.ok_or(MalformedHop::Unreadable(name.as_str()))
}

fn replica(headers: &mut HeaderMap, name: &'static HeaderName) -> Result<Replica, MalformedHop> {
    let value = take(headers, name)?;
    let read = value.to_str().ok().and_then(|text| Replica::parse(text).ok());
    read.ok_or(MalformedHop::Unreadable(name.as_str()))
}

#[cfg(test)]
mod tests;
