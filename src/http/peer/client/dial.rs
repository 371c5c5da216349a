//! Making a connection to a peer: TCP, TLS with its key pinned, HTTP/2, and a first ping.
//!
//! Our key goes out last in a handshake of TLS 1.3, so that the peer judges it when we believe to be done. Therefore
//! nothing is sent but a ping until its answer came: by then the peer has let us in.

use std::io::ErrorKind;
use std::sync::Arc;

use bytes::Bytes;
use h2::client::{Connection as Http2, SendRequest};
use h2::{Ping, PingPong};
use rustls::pki_types::ServerName;
use tokio::io::BufReader;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::connection::pong;
use super::limits::{ClientLimits, STREAM_WINDOW};
use crate::http::peer::error::{HopError, NoWay};
use crate::http::peer::serve::READ;
use crate::http::peer::{Identity, PeerAddress, tls};

/// A body that breaks off at the peer when its caller left needs no memory here; so many may do so at once.
const RESET: usize = 4096;
/// DATA frames may be small: what they cost beside their bytes is bounded by [`ClientLimits::patience`].
const SMALL_FRAMES: usize = 1 << 30;

/// A connection over which the peer has answered a ping.
pub(in crate::http::peer) struct Dialed {
    pub(in crate::http::peer) sender: SendRequest<Bytes>,
    pub(in crate::http::peer) http: Http2<TlsStream<BufReader<TcpStream>>, Bytes>,
    pub(in crate::http::peer) pings: PingPong,
}

/// Makes a connection.
///
/// # Errors
/// What is known of the peer; nothing of any request was sent.
pub(in crate::http::peer) async fn dial(
    to: &PeerAddress,
    identity: &Identity,
    limits: &ClientLimits,
) -> Result<Dialed, HopError> {
    let no_way = HopError::Unreachable;
    let socket = match timeout(limits.connect, TcpStream::connect(to.address)).await {
        Ok(Ok(socket)) => socket,
        Ok(Err(error)) if error.kind() == ErrorKind::ConnectionRefused => return Err(HopError::Refused),
        Ok(Err(error)) => return Err(no_way(NoWay::Connect(Arc::new(error)))),
        Err(_) => return Err(no_way(NoWay::ConnectTimeout(limits.connect))),
    };
    let _ = socket.set_nodelay(true);
    match timeout(limits.handshake, shake(socket, to, identity, limits)).await {
        Ok(dialed) => dialed,
        Err(_) => Err(no_way(NoWay::HandshakeTimeout(limits.handshake))),
    }
}

async fn shake(
    socket: TcpStream,
    to: &PeerAddress,
    identity: &Identity,
    limits: &ClientLimits,
) -> Result<Dialed, HopError> {
    let failed =
        |why: &dyn std::fmt::Display| HopError::Unreachable(NoWay::Handshake(why.to_string().into()));
    let config = identity.dialing(to.key_hash).map_err(|error| failed(&error))?;
    let name = ServerName::IpAddress(to.address.ip().into());
    let socket = BufReader::with_capacity(READ, socket);
    let tls = match TlsConnector::from(Arc::new(config)).connect(name, socket).await {
        Ok(tls) => tls,
        Err(error) if tls::met_a_stranger(&error) => return Err(HopError::Stranger),
        Err(error) => return Err(failed(&error)),
    };
    let mut builder = h2::client::Builder::new();
    builder
        .enable_push(false)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(STREAM_WINDOW.saturating_mul(limits.streams))
        .max_header_list_size(limits.headers)
        .max_concurrent_reset_streams(RESET)
        .max_local_error_reset_streams(None)
        .data_frame_budget(SMALL_FRAMES);
    let (sender, mut http) = builder.handshake(tls).await.map_err(|error| failed(&error))?;
    let unwelcome = || HopError::Unreachable(NoWay::Unwelcome);
    let mut pings = http.ping_pong().ok_or_else(unwelcome)?;
    pings.send_ping(Ping::opaque()).map_err(|_| unwelcome())?;
    tokio::select! {
        _ = &mut http => Err(unwelcome()),
        pong = pong(&mut pings) => pong.map(|()| Dialed { sender, http, pings }).map_err(|_| unwelcome()),
    }
}
