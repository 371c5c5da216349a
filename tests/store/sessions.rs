//! Session records: one writer at a time, and an end that stays one.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use mcpgate::store::sessions::{Change, StreamCursor};
use mcpgate::store::{Epoch, Lifetime, Record, ServerState, SessionKey, StoreError};

use crate::{Parts, key, record, replica, stored, timeless};

pub(crate) async fn what_is_created_is_loaded(Parts { sessions, .. }: Parts) {
    assert_eq!(stored(&sessions, key(1)).await, None);
    sessions.create(key(1), record("a")).await.expect("created");
    assert_eq!(stored(&sessions, key(1)).await, Some(record("a")));
    assert_eq!(stored(&sessions, key(2)).await, None, "another session");
}

pub(crate) async fn a_record_is_created_once(Parts { sessions, .. }: Parts) {
    sessions.create(key(1), record("a")).await.expect("created");
    assert_eq!(sessions.create(key(1), record("b")).await, Err(StoreError::Fenced));
    assert_eq!(stored(&sessions, key(1)).await, Some(record("a")), "the first stays");
}

pub(crate) async fn changes_are_kept(Parts { sessions, .. }: Parts) {
    sessions.create(key(1), record("a")).await.expect("created");
    let at = |revision: &str, session: Option<&str>| {
        let (session, capabilities) = (session.map(Into::into), r#"{"tools":{}}"#.into());
        Some(ServerState { revision: revision.into(), session, capabilities, cursor: None })
    };
    for change in [
        Change::Initialized,
        Change::LogLevel("debug".into()),
        Change::Subscribe("a:1".into()),
        Change::Subscribe("a:2".into()),
        Change::Unsubscribe("a:1".into()),
        Change::Unsubscribe("a:never".into()),
        Change::Server("web".into(), at("2025-06-18", Some("s-1"))),
        Change::Server("web".into(), at("2025-11-25", Some("s-2"))),
        Change::Server("files".into(), at("2025-11-25", None)),
        Change::Server("gone".into(), at("2025-11-25", Some("s-3"))),
        Change::Server("gone".into(), None),
        Change::Server("never".into(), None),
        Change::Touched,
    ] {
        sessions.change(key(1), Epoch::FIRST, change).await.expect("changed");
    }
    let mut expected = record("a");
    expected.initialized = true;
    expected.log_level = Some("debug".into());
    expected.subscriptions = ["a:2".to_owned()].into();
    expected.servers =
        [("web".into(), at("2025-11-25", Some("s-2"))), ("files".into(), at("2025-11-25", None))]
            .into_iter()
            .filter_map(|(name, state)| Some((name, state?)))
            .collect();
    assert_eq!(stored(&sessions, key(1)).await, Some(expected));
}

/// A cursor belongs to one session at a server, and is of no use beside another.
pub(crate) async fn a_cursor_is_kept_beside_its_session(Parts { sessions, .. }: Parts) {
    sessions.create(key(1), record("a")).await.expect("created");
    let server = |session: &str| {
        let (revision, capabilities) = ("2025-11-25".into(), "{}".into());
        let state = ServerState { revision, session: Some(session.into()), capabilities, cursor: None };
        Change::Server("web".into(), Some(state))
    };
    let stands = |session: &str, at: &str| {
        Change::Cursor("web".into(), StreamCursor { session: Some(session.into()), at: at.into() })
    };
    for (change, expected) in [
        (server("s-1"), None),
        (stands("s-1", "e-1"), Some("e-1")),
        (stands("s-1", "e-2"), Some("e-2")),
        (server("s-1"), Some("e-2")),
        (server("s-2"), None),
        (stands("s-2", "e-3"), Some("e-3")),
    ] {
        sessions.change(key(1), Epoch::FIRST, change.clone()).await.expect("changed");
        let held = sessions.load(key(1)).await.expect("a store").expect("a record");
        assert_eq!(held.servers["web"].cursor.as_deref(), expected, "{change:?}");
    }
    // A record that is written anew brings it.
    let held = sessions.load(key(1)).await.expect("a store").expect("a record");
    sessions.create(key(2), held).await.expect("created");
    let again = sessions.load(key(2)).await.expect("a store").expect("a record");
    assert_eq!(again.servers["web"].cursor.as_deref(), Some("e-3"));
    // It goes with what is known of the server.
    sessions.change(key(2), Epoch::FIRST, Change::Server("web".into(), None)).await.expect("changed");
    sessions.change(key(2), Epoch::FIRST, server("s-2")).await.expect("changed");
    let last = sessions.load(key(2)).await.expect("a store").expect("a record");
    assert_eq!(last.servers["web"].cursor, None);
}

pub(crate) async fn a_write_of_another_epoch_is_fenced(Parts { sessions, .. }: Parts) {
    sessions.create(key(1), record("a")).await.expect("created");
    let second = sessions.adopt(key(1), Epoch::FIRST, replica("b")).await.expect("adopted");
    assert_eq!(second, Epoch::FIRST.next());
    for stale in [Epoch::FIRST, second.next()] {
        assert_eq!(sessions.change(key(1), stale, Change::Initialized).await, Err(StoreError::Fenced));
        assert_eq!(sessions.release(key(1), stale).await, Err(StoreError::Fenced));
        assert_eq!(sessions.adopt(key(1), stale, replica("c")).await, Err(StoreError::Fenced));
    }
    let held = sessions.load(key(1)).await.expect("a store").expect("a record");
    assert!(!held.initialized, "a refused write changes nothing");
    assert_eq!((held.owner, held.epoch), (Some(replica("b")), second));
    sessions.change(key(1), second, Change::Initialized).await.expect("the owner writes");
}

pub(crate) async fn of_two_adopters_one_wins(Parts { sessions, .. }: Parts) {
    for n in 0..50 {
        sessions.create(key(n), record("dead")).await.expect("created");
        let adopt = |by: &str| {
            let (sessions, by) = (sessions.clone(), replica(by));
            async move { sessions.adopt(key(n), Epoch::FIRST, by).await }
        };
        let (b, c) = tokio::join!(adopt("b"), adopt("c"));
        let winner = match (b, c) {
            (Ok(_), Err(StoreError::Fenced)) => "b",
            (Err(StoreError::Fenced), Ok(_)) => "c",
            other => panic!("one adopter wins, not {other:?}"),
        };
        let held = sessions.load(key(n)).await.expect("a store").expect("a record");
        assert_eq!((held.owner, held.epoch), (Some(replica(winner)), Epoch::FIRST.next()));
    }
}

pub(crate) async fn a_released_session_has_no_owner_and_fences_the_old_one(Parts { sessions, .. }: Parts) {
    sessions.create(key(1), record("a")).await.expect("created");
    sessions.release(key(1), Epoch::FIRST).await.expect("released");
    let held = sessions.load(key(1)).await.expect("a store").expect("a record");
    assert_eq!((held.owner, held.epoch), (None, Epoch::FIRST.next()));
    let late = sessions.change(key(1), Epoch::FIRST, Change::Initialized).await;
    assert_eq!(late, Err(StoreError::Fenced));
    let third = sessions.adopt(key(1), held.epoch, replica("b")).await.expect("adopted");
    assert!(third > held.epoch);
}

pub(crate) async fn what_was_removed_stays_gone(Parts { sessions, .. }: Parts) {
    sessions.create(key(1), record("a")).await.expect("created");
    let removed = sessions.remove(key(1)).await.expect("a store").map(timeless);
    assert_eq!(removed, Some(record("a")));
    assert_eq!(sessions.remove(key(1)).await, Ok(None));
    assert_eq!(stored(&sessions, key(1)).await, None);
    let late = sessions.change(key(1), Epoch::FIRST, Change::Touched).await;
    assert_eq!(late, Err(StoreError::Gone));
    assert_eq!(sessions.release(key(1), Epoch::FIRST).await, Err(StoreError::Gone));
    assert_eq!(sessions.adopt(key(1), Epoch::FIRST, replica("b")).await, Err(StoreError::Gone));
    assert_eq!(stored(&sessions, key(1)).await, None, "no write brings it back");
}

pub(crate) async fn a_session_has_its_age_by_the_stores_clock(Parts { sessions, .. }: Parts) {
    let restored = Record { age: Duration::from_secs(60), idle_for: Duration::from_secs(20), ..record("a") };
    sessions.create(key(1), restored).await.expect("created");
    let read = async || sessions.load(key(1)).await.expect("a store").expect("a record");
    let before = read().await;
    assert!(before.age >= Duration::from_secs(60) && before.age < Duration::from_secs(70), "{before:?}");
    assert!(before.idle_for >= Duration::from_secs(20), "{before:?}");
    sessions.change(key(1), Epoch::FIRST, Change::Touched).await.expect("changed");
    let after = read().await;
    assert!(after.age >= before.age, "{after:?}");
    assert!(after.idle_for < Duration::from_secs(10), "{after:?}");
}

/// The record of a session that lives for so long.
fn brief(idle: u64, max_age: u64) -> Record {
    let millis = Duration::from_millis;
    Record { lifetime: Lifetime { idle: millis(idle), max_age: millis(max_age) }, ..record("a") }
}

/// Takes what is over, until something is; stops at a limit.
async fn over(parts: &Parts, most: usize) -> Vec<(SessionKey, Record)> {
    let begun = Instant::now();
    loop {
        let taken = parts.sessions.take_expired(most).await.expect("a store");
        if !taken.is_empty() || begun.elapsed() > Duration::from_secs(20) {
            return taken;
        }
        sleep(Duration::from_millis(5)).await;
    }
}

/// case-A07: a session that is over is ended once, whoever looks.
pub(crate) async fn what_is_over_is_taken_once(parts: Parts) {
    let sessions = &parts.sessions;
    sessions.create(key(1), record("a")).await.expect("created");
    for n in 2..6 {
        sessions.create(key(n), brief(10, 60_000)).await.expect("created");
    }
    let mut taken = over(&parts, 1).await;
    assert_eq!(taken.len(), 1, "no more than asked for");
    while taken.len() < 4 {
        let (a, b) = tokio::join!(sessions.take_expired(2), sessions.take_expired(2));
        taken.extend(a.expect("a store").into_iter().chain(b.expect("a store")));
    }
    let mut keys: Vec<_> = taken.iter().map(|(key, _)| key.clone()).collect();
    keys.sort();
    assert_eq!(keys, [key(2), key(3), key(4), key(5)], "each once");
    assert_eq!(timeless(taken[0].1.clone()), brief(10, 60_000), "with its record");
    assert_eq!(stored(sessions, key(2)).await, None);
    assert_eq!(sessions.take_expired(10).await.expect("a store"), [], "the other goes on");
}

pub(crate) async fn activity_keeps_a_session(parts: Parts) {
    parts.sessions.create(key(1), brief(500, 60_000)).await.expect("created");
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(1200) {
        parts.sessions.change(key(1), Epoch::FIRST, Change::Touched).await.expect("it lives");
        assert_eq!(parts.sessions.take_expired(10).await.expect("a store"), []);
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(over(&parts, 10).await.len(), 1, "without it, it ends");
}

pub(crate) async fn a_session_grows_too_old_whatever_happens(parts: Parts) {
    parts.sessions.create(key(1), brief(60_000, 300)).await.expect("created");
    let begun = Instant::now();
    let taken = loop {
        let _ = parts.sessions.change(key(1), Epoch::FIRST, Change::Touched).await;
        let taken = parts.sessions.take_expired(10).await.expect("a store");
        if !taken.is_empty() || begun.elapsed() > Duration::from_secs(20) {
            break taken;
        }
        sleep(Duration::from_millis(5)).await;
    };
    assert_eq!(taken.len(), 1);
    assert!(begun.elapsed() >= Duration::from_millis(300), "not before its time");
}

pub(crate) async fn epochs_are_told_in_order(Parts { sessions, .. }: Parts) {
    sessions.create(key(1), record("a")).await.expect("created");
    sessions.create(key(2), record("a")).await.expect("created");
    sessions.release(key(2), Epoch::FIRST).await.expect("released");
    let epochs = sessions.epochs(vec![key(2), key(3), key(1)]).await;
    assert_eq!(epochs, Ok(vec![Some(Epoch::FIRST.next()), None, Some(Epoch::FIRST)]));
    assert_eq!(sessions.epochs(Vec::new()).await, Ok(Vec::new()));
}
