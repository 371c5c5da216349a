//! Session records: one writer at a time, and an end that stays one.

use std::time::{Duration, SystemTime};

use mcpgate::store::sessions::Change;
use mcpgate::store::{Epoch, StoreError};

use crate::{Parts, key, record, replica};

pub(crate) async fn what_is_created_is_loaded(Parts { sessions, .. }: Parts) {
    assert_eq!(sessions.load(key(1)).await, Ok(None));
    sessions.create(key(1), record("a")).await.expect("created");
    assert_eq!(sessions.load(key(1)).await, Ok(Some(record("a"))));
    assert_eq!(sessions.load(key(2)).await, Ok(None), "another session");
}

pub(crate) async fn a_record_is_created_once(Parts { sessions, .. }: Parts) {
    sessions.create(key(1), record("a")).await.expect("created");
    assert_eq!(sessions.create(key(1), record("b")).await, Err(StoreError::Fenced));
    assert_eq!(sessions.load(key(1)).await, Ok(Some(record("a"))), "the first stays");
}

pub(crate) async fn changes_are_kept(Parts { sessions, .. }: Parts) {
    sessions.create(key(1), record("a")).await.expect("created");
    let later = SystemTime::UNIX_EPOCH + Duration::from_secs(5);
    for change in [
        Change::Initialized,
        Change::LogLevel("debug".into()),
        Change::Subscribe("a:1".into()),
        Change::Subscribe("a:2".into()),
        Change::Unsubscribe("a:1".into()),
        Change::Unsubscribe("a:never".into()),
        Change::Touched(later),
    ] {
        sessions.change(key(1), Epoch::FIRST, change).await.expect("changed");
    }
    let mut expected = record("a");
    expected.initialized = true;
    expected.log_level = Some("debug".into());
    expected.subscriptions = ["a:2".to_owned()].into();
    expected.touched = later;
    assert_eq!(sessions.load(key(1)).await, Ok(Some(expected)));
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
    assert_eq!(sessions.remove(key(1)).await, Ok(Some(record("a"))));
    assert_eq!(sessions.remove(key(1)).await, Ok(None));
    assert_eq!(sessions.load(key(1)).await, Ok(None));
    let late = sessions.change(key(1), Epoch::FIRST, Change::Touched(SystemTime::now())).await;
    assert_eq!(late, Err(StoreError::Gone));
    assert_eq!(sessions.release(key(1), Epoch::FIRST).await, Err(StoreError::Gone));
    assert_eq!(sessions.adopt(key(1), Epoch::FIRST, replica("b")).await, Err(StoreError::Gone));
    assert_eq!(sessions.load(key(1)).await, Ok(None), "no write brings it back");
}
