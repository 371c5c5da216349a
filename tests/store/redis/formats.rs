//! Values of another version: never taken for missing.

use mcpgate::store::event_log::EventLog as _;
use mcpgate::store::leases::{Counts, Lease, Leases as _};
use mcpgate::store::sessions::SessionStore as _;
use mcpgate::store::{Epoch, StoreError};

use super::{Replica, SOON};
use crate::redis_server::RedisServer;
use crate::{key, record, replica};

/// Where the session `key(1)` lies.
const SESSION: &str = "mcpgate:{1}:AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE";

#[tokio::test]
async fn a_format_that_is_not_known_is_unreadable() {
    let server = RedisServer::start().await;
    let gate = Replica::of(&server.settings());
    gate.store.create(key(1), record("a")).await.expect("created");
    server.ask(&["XADD", &format!("{SESSION}:l"), "1-1", "d", "\u{2}new"]).await;
    assert_eq!(gate.store.read(key(1), None, 9).await, Err(StoreError::Unreadable));
    server.ask(&["HSET", &format!("{SESSION}:r"), "v", "\u{2}new"]).await;
    assert_eq!(gate.store.load(key(1)).await, Err(StoreError::Unreadable));
    assert_eq!(gate.store.remove(key(1)).await, Err(StoreError::Unreadable));
    assert_eq!(gate.store.epochs(vec![key(1)]).await, Ok(vec![Some(Epoch::FIRST)]), "owners are known");
    gate.store.release(key(1), Epoch::FIRST).await.expect("what it needs not to read, it writes");
}

#[tokio::test]
async fn a_lease_of_a_format_that_is_not_known_is_unreadable_and_hides_no_other() {
    let server = RedisServer::start().await;
    let gate = Replica::of(&server.settings());
    let lease = Lease {
        replica: replica("a"),
        address: "10.0.0.1:8081".into(),
        key_hash: [2; 32],
        proof: [3; 32],
        formats: (1, 2),
        config_hash: [4; 32],
        counts: Counts::default(),
    };
    let other = Lease { replica: replica("b"), ..lease.clone() };
    gate.leases.take(lease, SOON).await.expect("taken");
    gate.leases.take(other.clone(), SOON).await.expect("taken");
    server.ask(&["HSET", "mcpgate:{replicas}:lease:a", "d", "\u{2}new"]).await;
    assert_eq!(gate.leases.find(replica("a")).await, Err(StoreError::Unreadable));
    assert_eq!(gate.leases.all().await, Ok(vec![other]), "what can be read");
    assert_eq!(gate.leases.find(replica("a")).await, Err(StoreError::Unreadable), "it is still held");
}
