//! A master that sentinels watch: found by them, and found again after a failover.

use mcpgate::store::leases::{Held, Leases as _};
use mcpgate::store::redis::{StoreState, Why};
use mcpgate::store::sessions::{Change, SessionStore as _};
use mcpgate::store::{Epoch, ReplicaId, StoreError};

use super::{Replica, SOON};
use crate::leases::lease;
use crate::redis_server::WatchedRedis;
use crate::{key, record};

/// case-J01: the store fails over and sessions go on; the old master, come back, is not written to.
#[tokio::test]
async fn the_new_master_is_found_after_a_failover() {
    let mut redis = WatchedRedis::start().await;
    let replica = Replica::of(&redis.settings());
    replica.is_connected().await;
    replica.store.create(key(1), record("a")).await.expect("created");
    let before = replica.leases.take(lease("a"), SOON).await.expect("taken");
    redis.replica.wait_for(&["EXISTS", "mcpgate:{replicas}:generation"], "int(1)").await;
    redis.master.stop().await;
    let why = replica.is(|state| matches!(state, StoreState::Unreachable { .. })).await;
    assert!(
        matches!(why, StoreState::Unreachable { why: Why::Network | Why::Timeout | Why::NoMaster, .. }),
        "{why:?}"
    );
    redis.failed_over().await;
    replica.is_connected().await;
    replica.store.change(key(1), Epoch::FIRST, Change::Initialized).await.expect("it goes on");
    let after = replica.leases.extend(ReplicaId("a".into()), Held::default(), SOON).await.expect("kept");
    assert_ne!(before.name, after.name, "the new master may not have the last writes");
    redis.master.begin().await;
    // For a while it takes itself for a master still; who starts now believes the sentinels.
    let fresh = Replica::of(&redis.settings());
    let held = fresh.store.load(key(1)).await.expect("a store").expect("a record");
    assert!(held.initialized, "what was written after the failover");
}

/// A master that is demoted while its connection stands is left at once.
#[tokio::test]
async fn a_demoted_master_is_not_written_to() {
    let redis = WatchedRedis::start().await;
    let replica = Replica::of(&redis.master.settings());
    replica.is_connected().await;
    replica.store.create(key(1), record("a")).await.expect("created");
    let other = redis.replica.port.to_string();
    redis.master.ask(&["REPLICAOF", "127.0.0.1", &other]).await;
    let refused = replica.store.change(key(1), Epoch::FIRST, Change::Initialized).await;
    assert_eq!(refused, Err(StoreError::Unreachable));
    replica.is(|state| matches!(state, StoreState::Unreachable { why: Why::ReadOnly, .. })).await;
    assert_eq!(replica.store.load(key(1)).await, Err(StoreError::Unreachable), "nor read from");
    redis.master.ask(&["REPLICAOF", "NO", "ONE"]).await;
    replica.is_connected().await;
}
