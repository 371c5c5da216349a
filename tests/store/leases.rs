//! Leases: held, extended, lost.

use std::time::Duration;

use mcpgate::store::StoreError;
use mcpgate::store::leases::{Counts, Lease};

use crate::{Parts, replica};

/// Long beside what a test takes.
const LONG: Duration = Duration::from_secs(60);
/// Short beside a test's patience.
const SHORT: Duration = Duration::from_millis(30);

pub(crate) fn lease(name: &str) -> Lease {
    Lease {
        replica: replica(name),
        address: "10.0.0.1:8081".into(),
        key_hash: [2; 32],
        proof: [3; 32],
        formats: (1, 2),
        config_hash: [4; 32],
        counts: Counts::default(),
    }
}

pub(crate) async fn a_lease_is_found_while_it_is_held(Parts { leases, .. }: Parts) {
    assert_eq!(leases.find(replica("a")).await, Ok(None));
    let first = leases.take(lease("a"), LONG).await.expect("taken");
    let second = leases.take(lease("b"), LONG).await.expect("taken");
    assert_eq!(first, second, "one generation");
    assert_eq!(leases.find(replica("a")).await, Ok(Some(lease("a"))));
    let mut all: Vec<_> = leases.all().await.expect("all").into_iter().map(|l| l.replica.0).collect();
    all.sort();
    assert_eq!(all, [Box::<str>::from("a"), Box::from("b")]);
}

pub(crate) async fn a_heartbeat_extends_and_never_takes(Parts { leases, .. }: Parts) {
    let counts = Counts { sessions: 3, streams: 2, exchanges: 1, children: 5, parked: 4 };
    assert_eq!(leases.extend(replica("a"), counts, LONG).await, Err(StoreError::Gone));
    assert_eq!(leases.find(replica("a")).await, Ok(None), "it took none");
    let generation = leases.take(lease("a"), SHORT).await.expect("taken");
    assert_eq!(leases.extend(replica("a"), counts, LONG).await, Ok(generation));
    tokio::time::sleep(2 * SHORT).await; // what is tried is that time passes
    assert_eq!(leases.find(replica("a")).await, Ok(Some(Lease { counts, ..lease("a") })));
}

pub(crate) async fn a_lease_runs_out_by_itself(Parts { leases, .. }: Parts) {
    leases.take(lease("a"), SHORT).await.expect("taken");
    leases.take(lease("b"), LONG).await.expect("taken");
    let gone = async {
        while leases.find(replica("a")).await.expect("a store").is_some() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LONG, gone).await.expect("it runs out");
    assert_eq!(leases.extend(replica("a"), Counts::default(), LONG).await, Err(StoreError::Gone));
    assert_eq!(leases.all().await, Ok(vec![lease("b")]));
}

pub(crate) async fn a_lease_that_is_given_up_is_gone(Parts { leases, .. }: Parts) {
    leases.take(lease("a"), LONG).await.expect("taken");
    leases.give_up(replica("a")).await.expect("given up");
    leases.give_up(replica("a")).await.expect("no harm done");
    assert_eq!(leases.find(replica("a")).await, Ok(None));
}

pub(crate) async fn a_new_start_is_a_new_lease(Parts { leases, .. }: Parts) {
    leases.take(lease("a"), LONG).await.expect("taken");
    let moved = Lease { address: "10.0.0.2:8081".into(), ..lease("a") };
    leases.take(moved.clone(), LONG).await.expect("taken");
    assert_eq!(leases.find(replica("a")).await, Ok(Some(moved)));
}
