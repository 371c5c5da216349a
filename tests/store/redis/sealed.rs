//! What Redis holds says nothing to who reads it, and only holders of a cluster key open it.

use mcpgate::store::event_log::{EntryId, EventLog as _, LogEntry, Logged, LoggedStream};
use mcpgate::store::seal::SealKey;
use mcpgate::store::sessions::{Change, SessionStore as _, StreamCursor};
use mcpgate::store::{Epoch, Record, ServerState, StoreError};

use super::{Replica, one_key};
use crate::redis_server::RedisServer;
use crate::{key, record};

fn event(number: u64) -> LogEntry {
    let what = Logged::Event {
        stream: LoggedStream { epoch: Epoch(1), number: 1 },
        place: number,
        payload: r#"{"canary":"payload"}"#.into(),
        cursor: Some("canary-cursor".into()),
        question: None,
    };
    LogEntry { id: EntryId { epoch: Epoch(1), number }, what }
}

/// A session with something private everywhere.
async fn private(replica: &Replica) {
    let initialize = r#"{"clientInfo":{"name":"canary"}}"#.into();
    replica.store.create(key(1), Record { initialize, ..record("a") }).await.expect("created");
    let state = ServerState {
        revision: "2025-11-25".into(),
        session: Some("canary-session".into()),
        capabilities: "{}".into(),
        cursor: None,
    };
    for change in [
        Change::LogLevel("canary-level".into()),
        Change::Subscribe("canary://uri".into()),
        Change::Cursor("web".into(), StreamCursor { session: None, at: "canary-cursor".into() }),
        Change::Server("web".into(), Some(state)),
    ] {
        replica.store.change(key(1), Epoch::FIRST, change).await.expect("changed");
    }
    replica.store.append(key(1), vec![event(1)]).await.expect("added");
}

/// case-C11: neither ids of servers' sessions nor what was said stands in Redis.
#[tokio::test]
async fn nothing_private_stands_in_redis() {
    let server = RedisServer::start().await;
    let replica = Replica::of(&server.settings());
    private(&replica).await;
    let mut seen = String::new();
    for name in ["{1}"] {
        let keys = server.ask(&["KEYS", &format!("mcpgate:{name}:*")]).await;
        let ::redis::Value::Array(keys) = keys else { panic!("{keys:?}") };
        assert_eq!(keys.len(), 3, "record, log, deadlines: {keys:?}");
        for key in keys {
            let ::redis::Value::BulkString(key) = key else { panic!("{key:?}") };
            let key = String::from_utf8(key).unwrap();
            let command: &[&str] = match key.rsplit(':').next().unwrap() {
                "r" => &["HGETALL", &key],
                "l" => &["XRANGE", &key, "-", "+"],
                _ => &["ZRANGE", &key, "0", "-1"],
            };
            let ::redis::Value::Array(values) = server.ask(command).await else { panic!("{command:?}") };
            seen.push_str(&texts(&values));
        }
    }
    assert!(seen.len() > 400, "it was looked at: {seen}");
    assert!(!seen.contains("canary"), "{seen}");
}

/// All bytes in it, as text where they are some.
fn texts(values: &[::redis::Value]) -> String {
    let text = |value: &::redis::Value| match value {
        ::redis::Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        ::redis::Value::Array(values) => texts(values),
        _ => String::new(),
    };
    values.iter().map(text).collect()
}

#[tokio::test]
async fn who_has_another_key_can_read_nothing() {
    let server = RedisServer::start().await;
    private(&Replica::of(&server.settings())).await;
    let stranger = Replica::with_keys(&server.settings(), &[SealKey::fresh()]);
    let error = stranger.store.load(key(1)).await.expect_err("unreadable");
    assert_eq!(error, StoreError::Unreadable);
    assert!(error.to_string().contains("same cluster keys"), "it says what to do: {error}");
    assert_eq!(stranger.store.read(key(1), None, 9).await, Err(StoreError::Unreadable));
    assert_eq!(stranger.store.remove(key(1)).await, Err(StoreError::Unreadable), "and it is not removed");
    assert!(Replica::of(&server.settings()).store.load(key(1)).await.expect("a store").is_some());
    assert!(
        stranger.metrics.encode().contains(r#"mcpgate_store_errors_total{kind="unreadable",op="load"} 1"#)
    );
}

/// A key is rotated in three steps: added behind, moved to the front, the old one taken out. No session is lost.
#[tokio::test]
async fn a_rotated_key_still_reads() {
    let server = RedisServer::start().await;
    private(&Replica::of(&server.settings())).await;
    let fresh = SealKey::fresh();
    let rotated = Replica::with_keys(&server.settings(), &[fresh.clone(), one_key()]);
    let held = rotated.store.load(key(1)).await.expect("readable").expect("a record");
    assert_eq!(held.subscriptions.len(), 1);
    assert_eq!(rotated.store.read(key(1), None, 9).await, Ok(vec![event(1)]));
    let again = Change::Subscribe("canary://uri".into());
    rotated.store.change(key(1), Epoch::FIRST, again).await.expect("changed");
    let held = rotated.store.load(key(1)).await.expect("readable").expect("a record");
    assert_eq!(held.subscriptions.len(), 1);
    let gone = Change::Unsubscribe("canary://uri".into());
    rotated.store.change(key(1), Epoch::FIRST, gone).await.expect("changed");
    let held = rotated.store.load(key(1)).await.expect("readable").expect("a record");
    assert_eq!(held.subscriptions.len(), 0, "found under the name by the old key too");
}

/// What was sealed for one session or place is nothing at another.
#[tokio::test]
async fn a_value_that_is_moved_is_not_read() {
    let server = RedisServer::start().await;
    let replica = Replica::of(&server.settings());
    private(&replica).await;
    replica.store.create(key(65), record("a")).await.expect("created in the same shard");
    let keys = |n: u8| {
        use base64::Engine as _;
        format!("mcpgate:{{1}}:{}", base64::engine::general_purpose::URL_SAFE_NO_PAD.encode([n; 32]))
    };
    server.ask(&["COPY", &format!("{}:r", keys(1)), &format!("{}:r", keys(65)), "REPLACE"]).await;
    server.ask(&["COPY", &format!("{}:l", keys(1)), &format!("{}:l", keys(65)), "REPLACE"]).await;
    assert_eq!(replica.store.load(key(65)).await, Err(StoreError::Unreadable));
    assert_eq!(replica.store.read(key(65), None, 9).await, Err(StoreError::Unreadable));
}
