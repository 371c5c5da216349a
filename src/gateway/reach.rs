//! Whether this replica can reach the others: tried at its start and from time to time, told in log, metric and
//! `/readyz?verbose`, before a caller finds out.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::company::Peering;
use crate::http::forward::Forwarder;
use crate::session::Peer;
use crate::store::leases::Lease;
use crate::store::lock;
use crate::telemetry::Metrics;

/// How often the others are tried.
const EVERY: Duration = Duration::from_secs(30);
/// How soon they are tried again when one cannot be reached that could be before: one that starts or stops at this moment is
/// no news.
const AGAIN: Duration = Duration::from_secs(3);
/// How many are tried at once.
const AT_ONCE: usize = 8;

/// What came of the last try.
#[derive(Clone, Debug, Default)]
pub(super) struct Reached(Arc<Mutex<Vec<String>>>);

// === impl Reached ===

impl Reached {
    /// What is wrong with each peer that was not reached, in words.
    pub(super) fn failures(&self) -> Vec<String> {
        lock(&self.0).clone()
    }
}

impl Peering {
    /// Tries all peers now and from time to time, until `stop`.
    pub(super) fn try_peers(
        &self,
        forwarder: Forwarder,
        metrics: Arc<Metrics>,
        reached: Reached,
        stop: CancellationToken,
    ) -> impl Future<Output = ()> + Send + 'static {
        let (leases, own) = (self.leases(), self.replica());
        let trying = async move {
            let mut doubted = false;
            loop {
                let mut pause = EVERY;
                let all = leases.all().await.unwrap_or_default();
                // Before it has a lease itself the others take it for a stranger.
                if !all.iter().any(|lease| lease.replica == own) {
                    pause = AGAIN;
                } else {
                    let others = all.into_iter().filter(|lease| lease.replica != own);
                    let tried: Vec<_> = stream::iter(others)
                        .map(|lease| try_peer(&forwarder, lease))
                        .buffer_unordered(AT_ONCE)
                        .collect()
                        .await;
                    let failures: Vec<String> = tried.iter().filter_map(|t| t.clone().err()).collect();
                    let known = reached.failures();
                    if !doubted && failures.iter().any(|failure| !known.contains(failure)) {
                        (doubted, pause) = (true, AGAIN);
                    } else {
                        doubted = false;
                        metrics.cluster().peers(tried.len() - failures.len(), failures.len());
                        for failure in failures.iter().filter(|failure| !known.contains(failure)) {
                            tracing::warn!("{failure}");
                        }
                        *lock(&reached.0) = failures;
                    }
                }
                sleep(pause).await;
            }
        };
        async move {
            stop.run_until_cancelled(trying).await;
        }
    }
}

async fn try_peer(forwarder: &Forwarder, lease: Lease) -> Result<(), String> {
    let Lease { replica, address, key_hash, proof, .. } = lease;
    let peer = Peer { replica, address, key_hash, proof };
    forwarder.reach(&peer).await.map_err(|why| told(&peer, &why))
}

fn told(peer: &Peer, why: &str) -> String {
    let short: String = peer.replica.0.chars().take(8).collect();
    format!(
        "replica {short} cannot be reached at {} ({why}): look at cluster.advertise, the network policy and the cluster keys",
        peer.address
    )
}
