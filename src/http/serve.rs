//! Accepting connections and speaking HTTP/1.1 or HTTP/2 on them, within bounds.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

pub use axum::Router;
use axum::body::Body;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::Interest;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

use super::connection::{Watch, Watched};
use super::h2::{self, Streams};
use crate::settings::LimitSettings;

/// What an HTTP/2 client sends first (RFC 9113 section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// How long a connection may go on after the listener closed, so that its last answer gets out.
const FAREWELL: Duration = Duration::from_secs(5);
/// Requests at once on one HTTP/2 connection; further ones wait at the client.
const H2_STREAMS: u32 = 256;

/// Accepts until `stop`; connections then finish what they serve. `tasks` waits for them.
///
/// At `limits.connections` no more are accepted: they wait in the kernel's queue.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Arc<LimitSettings>,
    tasks: TaskTracker,
    stop: CancellationToken,
) {
    let places = Arc::new(Semaphore::new(limits.connections));
    loop {
        let place = tokio::select! {
            place = places.clone().acquire_owned() => place,
            () = stop.cancelled() => return,
        };
        let Ok(place) = place else { return };
        let socket = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((socket, _)) => socket,
                Err(error) => {
                    // Out of descriptors, most likely: a short rest instead of a busy loop.
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
            () = stop.cancelled() => return,
        };
        let (router, limits, stop) = (router.clone(), limits.clone(), stop.clone());
        tasks.spawn(async move {
            speak(socket, router, &limits, stop).await;
            drop(place);
        });
    }
}

/// Where a request comes from, as its connection tells; none if that is gone already.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallerAddress(pub(super) Option<SocketAddr>);

async fn speak(socket: TcpStream, router: Router, limits: &LimitSettings, stop: CancellationToken) {
    let _ = socket.set_nodelay(true);
    let protocol = tokio::select! {
        protocol = tokio::time::timeout(limits.header_read, sniff(&socket)) => protocol,
        () = stop.cancelled() => return,
    };
    match protocol {
        Ok(Some(Protocol::Http1)) => speak_http1(socket, router, limits, stop).await,
        // Boxed: its state is much larger, and every connection would have room for it.
        Ok(Some(Protocol::Http2)) => Box::pin(speak_http2(socket, router, limits, stop)).await,
        Ok(None) | Err(_) => {}
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Http1,
    Http2,
}

/// Looks at the first bytes without taking them. A buffer for a protocol detector would stay with the connection.
async fn sniff(socket: &TcpStream) -> Option<Protocol> {
    let mut first = [0; PREFACE.len()];
    for pause in looks() {
        // Asked before the look: what came ahead of the end is seen, and nothing can come after.
        let ended = socket.ready(Interest::READABLE).await.ok()?.is_read_closed();
        let n = socket.peek(&mut first).await.ok()?;
        let seen = first.get(..n)?;
        if seen.is_empty() {
            return None;
        }
        if !PREFACE.starts_with(seen) {
            return Some(Protocol::Http1);
        }
        if n == PREFACE.len() {
            return Some(Protocol::Http2);
        }
        if ended {
            return None;
        }
        // The rest of a preface is on its way; peeking again at once would only see the same bytes.
        tokio::time::sleep(pause).await;
    }
    None
}

/// The pauses between looks: soon again for a preface in pieces, seldom for one that never comes, as thousands of
/// those may be open at once.
fn looks() -> impl Iterator<Item = Duration> {
    let (soon, seldom) = (Duration::from_millis(5), Duration::from_millis(500));
    std::iter::successors(Some(soon), move |pause| Some((*pause * 2).min(seldom)))
}

// === impl CallerAddress ===

impl CallerAddress {
    /// That of the other end.
    fn of(socket: &TcpStream) -> Self {
        Self(socket.peer_addr().ok())
    }

    fn note<B>(self, request: &mut Request<B>) {
        request.extensions_mut().insert(self);
    }
}

async fn speak_http1(socket: TcpStream, router: Router, limits: &LimitSettings, stop: CancellationToken) {
    let (from, watch) = (CallerAddress::of(&socket), Watch::new());
    let io = TokioIo::new(Watched::new(socket, watch.clone()));
    let watching = watch.clone();
    let service = service_fn(move |mut request: Request<Incoming>| {
        let (router, serving) = (router.clone(), watching.serve());
        from.note(&mut request);
        async move {
            let answer = router.oneshot(request.map(Body::new)).await;
            answer.map(|answer| serving.until_end_of(answer))
        }
    });
    let mut http = http1::Builder::new();
    // Our own limit answers with a reason; over twice that, hyper says 431 by itself.
    http.timer(TokioTimer::new()).header_read_timeout(None).max_headers(256);
    http.max_header_size(limits.headers * 2).max_buf_size((limits.headers * 2).max(64 << 10));
    let mut connection = std::pin::pin!(http.serve_connection(io, service));
    tokio::select! {
        _ = connection.as_mut() => return,
        () = watch.overdue(limits) => return,
        () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    let _ = tokio::time::timeout(FAREWELL, connection).await;
}

async fn speak_http2(socket: TcpStream, router: Router, limits: &LimitSettings, stop: CancellationToken) {
    let (from, streams) = (CallerAddress::of(&socket), Streams::new(limits));
    let service = service_fn(move |mut request: Request<Incoming>| {
        from.note(&mut request);
        let answer = router.clone().oneshot(request.map(Body::new));
        async move { answer.await.map(h2::noted) }
    });
    let mut http = http2::Builder::new(streams.clone());
    http.timer(TokioTimer::new()).max_concurrent_streams(H2_STREAMS);
    http.max_header_list_size(u32::try_from(limits.headers * 2).unwrap_or(u32::MAX));
    http.keep_alive_interval(Some(Duration::from_secs(30))).keep_alive_timeout(Duration::from_secs(30));
    let mut connection = std::pin::pin!(http.serve_connection(TokioIo::new(socket), service));
    tokio::select! {
        _ = connection.as_mut() => return,
        () = streams.overdue(limits) => connection.as_mut().graceful_shutdown(),
        () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    let _ = tokio::time::timeout(FAREWELL, connection).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_preface_is_looked_at_seldom() {
        let mut waited = Duration::ZERO;
        let within = looks().take_while(|pause| {
            waited += *pause;
            waited < Duration::from_secs(30)
        });
        assert!((10..100).contains(&within.count()));
        assert!(looks().take(3).sum::<Duration>() < Duration::from_millis(50));
    }
}
