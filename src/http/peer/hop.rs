//! What a forwarded request says beside itself: one set of headers, written by the sender and read by the owner.
//!
//! All that is the same for most requests between two replicas stands in one, so that HTTP/2 says it in a byte.
//!
//! All their names begin with [`PREFIX`]. The public listener strips whatever begins so, and the peer listener takes
//! the set out of a request before anyone else sees it, so that no caller can write one and no server can read one.

use std::fmt::Write as _;
use std::net::SocketAddr;

use axum::body::Body;
use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::{HopError, NoWay, Replica};

/// How the names of these headers begin; no other header may.
const PREFIX: &str = "mcpgate-hop-";
/// Its words: format, how often forwarded, epoch or `-`, to whom, from whom. A reader refuses a format that it does
/// not know.
static WAY: HeaderName = HeaderName::from_static("mcpgate-hop-way");
/// The caller's address, where it counts.
static PEER: HeaderName = HeaderName::from_static("mcpgate-hop-peer");
/// In an answer: nothing ran, since the replica is not the owner meant, or could not read who was. A sender that knows
/// no other word of it takes it for the first.
static NOT_OWNER: HeaderName = HeaderName::from_static("mcpgate-hop-not-owner");

/// The one format there is.
const FORMAT: &str = "1";
/// Stands for no epoch.
const NO_EPOCH: &str = "-";
/// What [`NOT_OWNER`] says of a request that could not be read.
const NOT_READ: &str = "other-format";
/// A request is forwarded once: who is not the owner says so instead.
const MOST_HOPS: u8 = 1;

/// Where a forwarded request comes from, and whom it is meant for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The caller's address as the edge saw it; none if it did not know it.
    pub edge_peer: Option<SocketAddr>,
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

/// The answer to a request that does not say where it comes from in a way that is understood here, before anything ran.
pub(super) fn not_read() -> Response {
    let mut response = not_owner();
    response.headers_mut().insert(&NOT_OWNER, HeaderValue::from_static(NOT_READ));
    response
}

/// Why nothing ran, if an answer is [`not_owner`] or [`not_read`].
pub(super) fn declined<B>(answer: &http::Response<B>) -> Option<HopError> {
    let mark = answer.headers().get(&NOT_OWNER)?;
    let declined = answer.status() == StatusCode::MISDIRECTED_REQUEST;
    declined.then(|| match mark.as_bytes() == NOT_READ.as_bytes() {
        true => HopError::Unreachable(NoWay::OtherFormat),
        false => HopError::NotOwner,
    })
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
        let Self { edge_peer, replica, epoch, hops, from } = self;
        let mut way = format!("{FORMAT} {hops} ");
        // Writing to a string does not fail.
        let _ = match epoch {
            Some(epoch) => write!(way, "{epoch}"),
            None => write!(way, "{NO_EPOCH}"),
        };
        let _ = write!(way, " {replica} {from}");
        // A replica's id is made of characters that headers take, and so is an address.
        if let Ok(way) = HeaderValue::try_from(way) {
            headers.insert(&WAY, way);
        }
        if let Some(Ok(mut peer)) = edge_peer.map(|peer| HeaderValue::try_from(peer.to_string())) {
            // Each caller has its own: nothing to remember for compression.
            peer.set_sensitive(true);
            headers.insert(&PEER, peer);
        }
    }

    /// Takes the set out of a request's headers and reads it.
    ///
    /// # Errors
    /// [`MalformedHop`]
    pub(super) fn take(headers: &mut HeaderMap) -> Result<Self, MalformedHop> {
        let unreadable = MalformedHop::Unreadable(WAY.as_str());
        let way = take(headers, &WAY)?;
        let mut words = way.to_str().map_err(|_| unreadable)?.split(' ');
        if words.next() != Some(FORMAT) {
            return Err(MalformedHop::OtherFormat);
        }
        let mut word = || words.next().ok_or(unreadable);
        let (hops, epoch, to, from) = (word()?, word()?, word()?, word()?);
        if words.next().is_some() {
            return Err(unreadable);
        }
        let hops: u8 = hops.parse().map_err(|_| unreadable)?;
        let epoch = match epoch {
            NO_EPOCH => None,
            epoch => Some(epoch.parse().map_err(|_| unreadable)?),
        };
        let replica = |id: &str| Replica::parse(id).map_err(|_| unreadable);
        let (replica, from) = (replica(to)?, replica(from)?);
        let edge_peer = if headers.contains_key(&PEER) { Some(read(headers, &PEER)?) } else { None };
        if headers.keys().any(is_ours) {
            return Err(MalformedHop::OtherFormat);
        }
        match hops {
            0 => Err(unreadable),
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

#[cfg(test)]
mod tests;
