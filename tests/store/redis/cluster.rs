//! Redis Cluster: the promises whose keys lie on several nodes.

use mcpgate::store::change_bus::{ChangeBus as _, Changed};
use mcpgate::store::sessions::{Change, SessionStore as _};
use mcpgate::store::{Epoch, StoreError};

use super::{Replica, SOON};
use crate::redis_server::RedisCluster;
use crate::{Parts, key, record};

async fn parts() -> Parts {
    let cluster = RedisCluster::start().await;
    let replica = Replica::of(&cluster.settings());
    replica.is_connected().await;
    replica.into_parts(cluster)
}

promises! {
    crate::redis::cluster::parts().await;
    sessions:
        changes_are_kept,
        a_cursor_is_kept_beside_its_session,
        of_two_adopters_one_wins,
        what_is_over_is_taken_once,
        epochs_are_told_in_order,
        what_was_removed_stays_gone;
    event_log:
        entries_are_read_in_order_and_by_page,
        an_adopter_reads_what_was_there_and_goes_on,
        a_log_ends_with_its_record;
    leases:
        a_lease_is_found_while_it_is_held,
        a_lease_runs_out_by_itself;
    change_bus:
        what_was_published_before_is_not_heard;
}

/// Sessions spread over all nodes, and replicas on different nodes hear each other.
#[tokio::test]
async fn sessions_spread_and_replicas_hear_each_other() {
    let cluster = RedisCluster::start().await;
    let (one, other) = (Replica::of(&cluster.settings()), Replica::of(&cluster.settings()));
    one.listens().await;
    other.listens().await;
    for n in 0..64 {
        one.store.create(key(n), record("a")).await.expect("created");
    }
    for node in &cluster.nodes {
        let keys = node.ask(&["DBSIZE"]).await;
        assert!(matches!(keys, ::redis::Value::Int(n) if n > 20), "{keys:?}");
    }
    let mut hears = other.bus.subscribe();
    one.bus.publish(Changed::SessionEnded(key(1))).await.expect("published");
    let heard = tokio::time::timeout(SOON, hears.recv()).await.expect("heard soon");
    assert_eq!(heard, Ok(Changed::SessionEnded(key(1))));
}

/// A node that is gone takes its sessions with it, and no others; nothing that was not answered is done again.
#[tokio::test]
async fn a_node_that_is_gone_is_unreachable_for_its_sessions_only() {
    let mut cluster = RedisCluster::start().await;
    for node in &cluster.nodes {
        node.ask(&["CONFIG", "SET", "cluster-require-full-coverage", "no"]).await;
    }
    let mut settings = cluster.settings();
    settings.timeout = std::time::Duration::from_millis(500);
    let replica = Replica::of(&settings);
    for n in 0..64 {
        replica.store.create(key(n), record("a")).await.expect("created");
    }
    cluster.nodes[2].stop().await;
    let mut reached = 0;
    for n in 0..64 {
        match replica.store.change(key(n), Epoch::FIRST, Change::Initialized).await {
            Ok(()) => reached += 1,
            Err(error) => assert_eq!(error, StoreError::Unreachable),
        }
    }
    assert!((20..60).contains(&reached), "{reached} of 64");
}
