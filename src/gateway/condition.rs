//! How a replica fares among others, as `/readyz` shows it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::company::StoreCondition;
use super::reach::Reached;
use crate::admin::{Check, Checks, Readiness};
use crate::http::forward::ClusterKeys;
use crate::relay::Relay;
use crate::store::leases::Lease;

/// How often it is looked whether a replica has joined.
const LOOK: Duration = Duration::from_millis(50);
/// How many lease times a replica may take to join before it is ready all the same: what needs no session is served
/// without the store.
const PATIENCE: u32 = 2;

/// What is checked, each time it is asked for. `keys` are those that replicas know each other by.
pub(super) fn checks(
    relay: &Arc<Relay>,
    store: Option<StoreCondition>,
    keys: Option<ClusterKeys>,
    reached: Reached,
) -> Checks {
    let relay = relay.clone();
    Arc::new(move || {
        if !relay.has_peers() {
            return Vec::new();
        }
        let tenure = relay.tenure();
        let held = tenure.is_held();
        let lease = if held { "lease held" } else { "lease not held: requests of sessions get 503" };
        let mut checks = vec![Check { passed: held, what: lease.to_owned() }];
        if let Some(store) = &store {
            let trouble = store.trouble();
            let passed = trouble.is_none();
            let what = trouble.unwrap_or_else(|| "session store connected".to_owned());
            checks.push(Check { passed, what });
            checks.extend(store.remarks().into_iter().map(|what| Check { passed: false, what }));
        }
        let peers = relay.peers_seen();
        let (others, unlike) = (peers.others.len(), peers.others.len() - peers.alike);
        checks.push(Check { passed: true, what: format!("{others} other replicas hold a lease") });
        checks.extend(reached.failures().into_iter().map(|what| Check { passed: false, what }));
        let config = match unlike {
            0 => "all replicas have the same config".to_owned(),
            _ => format!("{unlike} of {others} other replicas have another config"),
        };
        checks.push(Check { passed: unlike == 0, what: config });
        if let Some(keys) = &keys {
            let strangers = strangers(&peers.others, keys);
            let what = match strangers {
                0 => "all replicas have a cluster key in common".to_owned(),
                _ => format!(
                    "{strangers} of {others} other replicas have no cluster key in common with this one"
                ),
            };
            checks.push(Check { passed: strangers == 0, what });
        }
        checks
    })
}

/// Turns readiness on as soon as this replica may go on with the sessions of others, or after a while without.
pub(super) async fn ready_when_joined(relay: Arc<Relay>, readiness: Arc<watch::Sender<Readiness>>) {
    let tenure = relay.tenure();
    let patience = Instant::now() + tenure.lease() * PATIENCE;
    while !tenure.may_adopt() && Instant::now() < patience {
        sleep(LOOK).await;
    }
    readiness.send_if_modified(|readiness| {
        let joined = *readiness == Readiness::Joining;
        if joined {
            *readiness = Readiness::Ready;
        }
        joined
    });
}

/// How many of these no cluster key proves: nothing is sent there, and nothing taken from there.
fn strangers(others: &[Lease], keys: &ClusterKeys) -> usize {
    let known = |lease: &&Lease| keys.prove(&lease.replica.0, lease.key_hash, &lease.proof);
    others.len() - others.iter().filter(known).count()
}

/// Says so when replicas come that have other cluster keys, until `stop`.
pub(super) async fn warn_of_strangers(relay: Arc<Relay>, keys: ClusterKeys, stop: CancellationToken) {
    let mut before = 0;
    let every = relay.tenure().lease();
    while stop.run_until_cancelled(sleep(every)).await.is_some() {
        let now = strangers(&relay.peers_seen().others, &keys);
        if now > before {
            tracing::warn!(
                replicas = now,
                "replicas share this session store and no cluster key with this one: sessions are not found across; \
                 give all replicas the same cluster.keys"
            );
        }
        before = now;
    }
}
