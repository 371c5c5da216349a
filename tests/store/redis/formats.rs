//! Values of another version: never taken for missing.

use mcpgate::store::event_log::EventLog as _;
use mcpgate::store::leases::{Held, Lease, Leases as _};
use mcpgate::store::sessions::SessionStore as _;
use mcpgate::store::shares::{Share, ShareKey, ShareKind};
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
    let lease = crate::leases::lease("a");
    let other = Lease { replica: replica("b"), ..lease.clone() };
    gate.leases.take(lease, SOON).await.expect("taken");
    gate.leases.take(other.clone(), SOON).await.expect("taken");
    server.ask(&["HSET", "mcpgate:{replicas}:lease:a", "d", "\u{2}new"]).await;
    assert_eq!(gate.leases.find(replica("a")).await, Err(StoreError::Unreadable));
    assert_eq!(gate.leases.all().await, Ok(vec![other]), "what can be read");
    assert_eq!(gate.leases.find(replica("a")).await, Err(StoreError::Unreadable), "it is still held");
}

/// A version before this one writes no shares, and a later one may write them otherwise or count more: the lease is one
/// like any other, of a replica that holds none of what cannot be read.
#[tokio::test]
async fn shares_that_cannot_be_read_are_none() {
    const LEASE: &str = "mcpgate:{replicas}:lease:a";
    let server = RedisServer::start().await;
    let gate = Replica::of(&server.settings());
    let share = Share { kind: ShareKind::Sessions, key: ShareKey([b'k'; 8]), held: 5 };
    let lease = |shares: &[Share]| {
        let shares = shares.iter().copied().collect();
        Lease { held: Held { shares, ..Held::default() }, ..crate::leases::lease("a") }
    };
    gate.leases.take(lease(&[share]), SOON).await.expect("taken");
    assert_eq!(gate.leases.find(replica("a")).await, Ok(Some(lease(&[share]))));
    let later = "\u{1}\u{7f}kkkkkkkk\u{9}\0\0\0\u{2}kkkkkkkk\u{5}\0\0\0";
    server.ask(&["HSET", LEASE, "s", later]).await;
    assert_eq!(gate.leases.find(replica("a")).await, Ok(Some(lease(&[share]))), "a kind of its own");
    for unreadable in ["\u{2}new", "\u{1}\u{2}kkk", ""] {
        server.ask(&["HSET", LEASE, "s", unreadable]).await;
        assert_eq!(gate.leases.find(replica("a")).await, Ok(Some(lease(&[]))), "{unreadable:?}");
    }
    server.ask(&["HDEL", LEASE, "s"]).await;
    assert_eq!(gate.leases.all().await, Ok(vec![lease(&[])]));
}
