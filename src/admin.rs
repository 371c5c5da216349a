//! The admin listener: whether the process lives, whether it is ready, what it counts, what it is.
//!
//! It stands apart from the callers' listener (case-I11), asks nothing of servers or stores, and names none of
//! them. `/livez` says that the process runs and nothing else, so that no outage restarts it (case-J03).

mod answer;

use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::telemetry::Metrics;

/// Whether callers should be sent here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// Not yet one of the replicas: it could not go on with the sessions of others.
    Joining,
    /// Serving.
    Ready,
    /// Serving still, and about to end.
    Draining,
}

/// Something to know of a gateway that serves all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Whether all is well with it.
    pub passed: bool,
    /// What it is, with what is wrong; names no server and no store (case-I11).
    pub what: String,
}

/// What there is to know, each time it is asked for.
pub type Checks = Arc<dyn Fn() -> Vec<Check> + Send + Sync>;

/// What the admin listener shows.
#[derive(Clone)]
pub struct State {
    /// Set by the gateway as it starts and drains.
    pub readiness: watch::Receiver<Readiness>,
    /// Shown at `/metrics`.
    pub metrics: Arc<Metrics>,
    /// Shown at `/readyz?verbose`; readiness does not depend on them.
    pub checks: Checks,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("readiness", &*self.readiness.borrow()).finish_non_exhaustive()
    }
}

/// Open connections; over it new ones wait in the kernel's queue.
const CONNECTIONS: usize = 64;
/// How long the head of a request may take; an idle connection ends after this too.
const HEADER_READ: Duration = Duration::from_secs(10);
/// How long the next connection waits after one could not be accepted, as when files run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long running requests may take after `shutdown`.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Serves until `shutdown`, which should come last of all: probes are answered while the gateway drains.
pub async fn serve(
    listener: TcpListener,
    state: State,
    tasks: TaskTracker,
    shutdown: impl Future<Output = ()>,
) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    let stop = CancellationToken::new();
    let _stops_connections = stop.clone().drop_guard();
    let accept = async {
        // The semaphore is never closed.
        while let Ok(slot) = Arc::clone(&slots).acquire_owned().await {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let connection = connection(stream, state.clone(), stop.clone());
                    tasks.spawn(async move {
                        connection.await;
                        drop(slot);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "the admin listener cannot accept");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    };
    tokio::select! {
        () = accept => {}
        () = shutdown => {}
    }
}

async fn connection(stream: TcpStream, state: State, stop: CancellationToken) {
    let service = service_fn(|request| {
        let answer = answer::answer(&request, &state);
        async move { Ok::<_, Infallible>(answer) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_READ)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            tokio::time::timeout(LAST_WORDS, connection).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection to the admin listener ended");
    }
}

// === impl Readiness ===

impl Readiness {
    /// The word that `/readyz` answers with.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Joining => "joining",
            Self::Ready => "ready",
            Self::Draining => "draining",
        }
    }
}

#[cfg(test)]
mod tests;
