//! Leases: held, extended, lost.

use std::time::Duration;

use mcpgate::store::StoreError;
use mcpgate::store::leases::{Counts, Held, Lease};
use mcpgate::store::shares::{Share, ShareKey, ShareKind, Shares};

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
        held: Held::default(),
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
    let held = Held { counts, ..Held::default() };
    assert_eq!(leases.extend(replica("a"), held.clone(), LONG).await, Err(StoreError::Gone));
    assert_eq!(leases.find(replica("a")).await, Ok(None), "it took none");
    let generation = leases.take(lease("a"), SHORT).await.expect("taken");
    assert_eq!(leases.extend(replica("a"), held.clone(), LONG).await, Ok(generation));
    tokio::time::sleep(2 * SHORT).await; // what is tried is that time passes
    assert_eq!(leases.find(replica("a")).await, Ok(Some(Lease { held, ..lease("a") })));
}

/// Of each kind one, and `more` of the first.
fn shares(more: u32) -> Shares {
    let share = |(number, kind): (u8, ShareKind)| Share { kind, key: ShareKey([number; 8]), held: more };
    (1..).zip(ShareKind::ALL).map(share).collect()
}

/// What a replica holds by key is found with its lease: what it took it with, and then what its last heartbeat said.
pub(crate) async fn what_a_replica_holds_by_key_is_found_with_its_lease(Parts { leases, .. }: Parts) {
    let holding = |shares| Held { shares, counts: Counts { sessions: 9, ..Counts::default() } };
    let first = Lease { held: holding(shares(2)), ..lease("a") };
    leases.take(first.clone(), LONG).await.expect("taken");
    assert_eq!(leases.find(replica("a")).await, Ok(Some(first)));
    leases.extend(replica("a"), holding(shares(u32::MAX)), LONG).await.expect("extended");
    let second = Lease { held: holding(shares(u32::MAX)), ..lease("a") };
    assert_eq!(leases.all().await, Ok(vec![second]));
    leases.extend(replica("a"), Held::default(), LONG).await.expect("extended");
    assert_eq!(leases.find(replica("a")).await, Ok(Some(lease("a"))), "it holds none any more");
    leases.give_up(replica("a")).await.expect("given up");
    assert_eq!(leases.all().await, Ok(Vec::new()));
}

/// A lease carries as many as it may.
pub(crate) async fn the_most_shares_are_kept(Parts { leases, .. }: Parts) {
    let of_kind =
        |kind| (0..Shares::MOST as u64).map(move |n| Share { kind, key: ShareKey(n.to_le_bytes()), held: 1 });
    let shares: Shares = ShareKind::ALL.into_iter().flat_map(of_kind).collect();
    let full = Lease { held: Held { shares, ..Held::default() }, ..lease("a") };
    leases.take(full.clone(), LONG).await.expect("taken");
    assert_eq!(leases.find(replica("a")).await, Ok(Some(full)));
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
    assert_eq!(leases.extend(replica("a"), Held::default(), LONG).await, Err(StoreError::Gone));
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
