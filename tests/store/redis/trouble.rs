//! Redis fails in every way it can: nothing waits for long, nothing is taken for missing, all comes back by itself.

use std::time::{Duration, Instant};

use mcpgate::settings::store::{RedisNode, RedisServers, Wire};
use mcpgate::store::change_bus::{ChangeBus as _, Changed};
use mcpgate::store::event_log::{EntryId, EventLog as _, LogEntry, Logged, LoggedStream};
use mcpgate::store::leases::{Counts, Held, Leases as _};
use mcpgate::store::redis::{StoreRemark, StoreState, Why};
use mcpgate::store::sessions::{Change, SessionStore as _};
use mcpgate::store::{Epoch, StoreError};

use super::{Replica, SOON};
use crate::leases::lease;
use crate::redis_server::RedisServer;
use crate::{key, record, replica};

/// How long a command may take here, and how late its refusal may be on top.
const TIMEOUT: Duration = Duration::from_millis(500);
const LATE: Duration = Duration::from_millis(100);

async fn server_and_replica() -> (RedisServer, Replica) {
    let server = RedisServer::start().await;
    let mut settings = server.settings();
    settings.timeout = TIMEOUT;
    let replica = Replica::of(&settings);
    replica.is_connected().await;
    (server, replica)
}

/// The store answers that it is unreachable, in time.
#[track_caller]
fn refused<T: std::fmt::Debug>(begun: Instant, answer: Result<T, StoreError>) {
    let why = answer.expect_err("it is not reached");
    assert_eq!(why, StoreError::Unreachable);
    assert!(begun.elapsed() < TIMEOUT + LATE, "only after {:?}", begun.elapsed());
}

/// case-J02: a server that is not there yet is no reason not to start.
#[tokio::test]
async fn what_is_unreachable_at_the_start_is_connected_later() {
    let mut server = RedisServer::start().await;
    server.stop().await;
    let mut settings = server.settings();
    settings.timeout = TIMEOUT;
    let gate = Replica::of(&settings);
    refused(Instant::now(), gate.store.load(key(1)).await);
    gate.is(|state| matches!(state, StoreState::Unreachable { why: Why::Network, .. })).await;
    refused(Instant::now(), gate.store.create(key(1), record("a")).await);
    let page = gate.metrics.encode();
    assert!(page.contains("mcpgate_store_connected 0"), "{page}");
    server.begin().await;
    gate.is_connected().await;
    gate.store.create(key(1), record("a")).await.expect("created");
    assert!(gate.metrics.encode().contains("mcpgate_store_connected 1"));
    gate.listens().await;
}

#[tokio::test]
async fn what_goes_down_later_is_refused_in_time_and_comes_back() {
    let (mut server, gate) = server_and_replica().await;
    gate.store.create(key(1), record("a")).await.expect("created");
    server.stop().await;
    for _ in 0..20 {
        refused(Instant::now(), gate.store.load(key(1)).await);
    }
    gate.is(|state| matches!(state, StoreState::Unreachable { .. })).await;
    server.begin().await;
    gate.is_connected().await;
    assert_eq!(gate.store.load(key(1)).await, Ok(None), "it was restarted empty");
}

#[tokio::test]
async fn a_server_that_answers_nothing_holds_nobody_up() {
    let (server, gate) = server_and_replica().await;
    gate.store.create(key(1), record("a")).await.expect("created");
    server.pause();
    let begun = Instant::now();
    let all = (0..50).map(|_| gate.store.change(key(1), Epoch::FIRST, Change::Touched));
    for answer in futures_util::future::join_all(all).await {
        refused(begun, answer);
    }
    let state = gate.is(|state| matches!(state, StoreState::Unreachable { .. })).await;
    assert!(matches!(state, StoreState::Unreachable { why: Why::Timeout, .. }), "{state:?}");
    refused(Instant::now(), gate.store.load(key(1)).await);
    server.go_on();
    gate.is_connected().await;
    gate.store.change(key(1), Epoch::FIRST, Change::Touched).await.expect("it goes on");
}

#[tokio::test]
async fn a_full_server_takes_no_writes_and_gives_what_it_has() {
    let (server, gate) = server_and_replica().await;
    gate.store.create(key(1), record("a")).await.expect("created");
    server.ask(&["CONFIG", "SET", "maxmemory", "1mb"]).await;
    assert_eq!(gate.store.create(key(2), record("a")).await, Err(StoreError::Unreachable));
    gate.is(|state| matches!(state, StoreState::Unreachable { why: Why::OutOfMemory, .. })).await;
    assert!(gate.store.load(key(1)).await.expect("reads go on").is_some());
    assert_eq!(gate.store.load(key(2)).await, Ok(None), "nothing is half done");
    let first = Epoch::FIRST;
    gate.store.change(key(1), first, Change::Touched).await.expect("activity is noted");
    let taken = gate.store.adopt(key(1), first, replica("b")).await.expect("owners change");
    let entry = |number, what| vec![LogEntry { id: EntryId { epoch: taken, number }, what }];
    gate.store.append(key(1), entry(0, Logged::Adopted)).await.expect("the new owner says so in the log");
    let ended = Logged::Ended { stream: LoggedStream { epoch: taken, number: 1 } };
    let kept = gate.store.append(key(1), entry(1, ended)).await;
    assert_eq!(kept, Err(StoreError::Unreachable), "events need room");
    gate.store.release(key(1), taken).await.expect("owners give up");
    assert!(gate.store.remove(key(1)).await.expect("what makes room goes on").is_some());
    server.ask(&["CONFIG", "SET", "maxmemory", "0"]).await;
    gate.store.create(key(2), record("a")).await.expect("created");
    gate.is_connected().await;
    let page = gate.metrics.encode();
    assert!(page.contains(r#"mcpgate_store_errors_total{kind="out_of_memory",op="create"} 1"#), "{page}");
}

/// Who holds a session goes on with it: a full server must not end all of them.
#[tokio::test]
async fn a_full_server_takes_leases() {
    let (server, gate) = server_and_replica().await;
    let leases = &gate.leases;
    leases.take(lease("a"), SOON).await.expect("taken");
    server.ask(&["CONFIG", "SET", "maxmemory", "1mb"]).await;
    assert_eq!(gate.store.create(key(1), record("a")).await, Err(StoreError::Unreachable), "it is full");
    let held = Held { counts: Counts { sessions: 7, ..Counts::default() }, ..Held::default() };
    leases.extend(replica("a"), held.clone(), SOON).await.expect("extended");
    assert_eq!(leases.find(replica("a")).await.expect("found").expect("held").held, held);
    leases.take(lease("b"), SOON).await.expect("a replica that comes is let in");
    assert_eq!(leases.all().await.expect("listed").len(), 2);
}

#[tokio::test]
async fn a_replica_is_not_used() {
    let server = RedisServer::start().await;
    let of = server.port.to_string();
    let copy = RedisServer::start_with(&["--replicaof", "127.0.0.1", &of]).await;
    let gate = Replica::of(&copy.settings());
    gate.is(|state| matches!(state, StoreState::Unreachable { why: Why::ReadOnly, .. })).await;
    assert_eq!(gate.store.load(key(1)).await, Err(StoreError::Unreachable));
}

/// case-J03: a store that lost what it held says so by a new generation.
#[tokio::test]
async fn a_flushed_server_has_a_new_generation() {
    let (mut server, gate) = server_and_replica().await;
    let first = gate.leases.take(lease("a"), SOON).await.expect("taken");
    assert_eq!(gate.leases.extend(replica("a"), Held::default(), SOON).await, Ok(first.clone()));
    server.flush().await;
    assert_eq!(gate.leases.extend(replica("a"), Held::default(), SOON).await, Err(StoreError::Gone));
    let second = gate.leases.take(lease("a"), SOON).await.expect("taken");
    assert_ne!(first, second);
    server.ask(&["DEL", "mcpgate:{replicas}:generation"]).await;
    let third = gate.leases.extend(replica("a"), Held::default(), SOON).await.expect("the lease is there");
    assert_ne!(second, third);
    server.stop().await;
    gate.is(|state| matches!(state, StoreState::Unreachable { .. })).await;
    server.begin().await;
    gate.is_connected().await;
    let last = gate.leases.take(lease("a"), SOON).await.expect("taken");
    assert_ne!(last, third, "restarted empty");
}

#[tokio::test]
async fn scripts_that_were_forgotten_are_told_again() {
    let (server, gate) = server_and_replica().await;
    gate.store.create(key(1), record("a")).await.expect("created");
    server.ask(&["SCRIPT", "FLUSH"]).await;
    gate.store.change(key(1), Epoch::FIRST, Change::Initialized).await.expect("changed");
    assert!(gate.store.load(key(1)).await.expect("loaded").expect("a record").initialized);
}

#[tokio::test]
async fn a_server_that_throws_sessions_away_is_remarked_on() {
    let server = RedisServer::start_with(&["--maxmemory-policy", "allkeys-lru"]).await;
    let gate = Replica::of(&server.settings());
    gate.is_connected().await;
    assert_eq!(*gate.connection.remarks(), [StoreRemark::Evicts("allkeys-lru".into())]);
    let (_server, well) = server_and_replica().await;
    assert_eq!(*well.connection.remarks(), [], "nothing to say about one that keeps all");
}

/// Replicas hear each other again after Redis was gone.
#[tokio::test]
async fn a_bus_that_broke_is_heard_again() {
    let (mut server, one) = server_and_replica().await;
    let mut settings = server.settings();
    settings.timeout = TIMEOUT;
    let other = Replica::of(&settings);
    other.listens().await;
    let mut hears = other.bus.subscribe();
    one.bus.publish(Changed::SessionEnded(key(1))).await.expect("published");
    let heard = tokio::time::timeout(SOON, hears.recv()).await.expect("heard soon");
    assert_eq!(heard, Ok(Changed::SessionEnded(key(1))));
    server.stop().await;
    let mut listening = other.bus.listening();
    listening.wait_for(|listening| !*listening).await.expect("it is kept");
    assert_eq!(one.bus.publish(Changed::SessionEnded(key(2))).await, Err(StoreError::Unreachable));
    server.begin().await;
    other.listens().await;
    one.is_connected().await;
    one.bus.publish(Changed::SessionEnded(key(3))).await.expect("published");
    let heard = tokio::time::timeout(SOON, hears.recv()).await.expect("heard soon");
    assert_eq!(heard, Ok(Changed::SessionEnded(key(3))), "what was missed is not made up");
}

#[tokio::test]
async fn an_address_where_nobody_is_holds_nobody_up() {
    let node = RedisNode { host: "no-such-host.invalid".to_owned(), port: 6379, wire: Wire::Plain };
    let mut settings = RedisServer::start().await.settings();
    settings.servers = RedisServers::Single { node, database: 0 };
    settings.timeout = TIMEOUT;
    let gate = Replica::of(&settings);
    refused(Instant::now(), gate.store.load(key(1)).await);
}
