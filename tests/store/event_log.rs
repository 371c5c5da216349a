//! Logs of sessions: ordered, fenced by the record, and gone with it.

use mcpgate::store::event_log::{EntryId, LogEntry, Logged, LoggedStream, Question};
use mcpgate::store::{Epoch, StoreError};

use crate::{Parts, key, record, replica};

fn id(epoch: u32, number: u64) -> EntryId {
    EntryId { epoch: Epoch(epoch), number }
}

fn event(epoch: u32, number: u64) -> LogEntry {
    let what = Logged::Event {
        stream: LoggedStream { epoch: Epoch(1), number: 1 },
        place: number,
        payload: format!(r#"{{"n":{number}}}"#).into(),
        cursor: Some("upstream-7".into()),
        question: Some(Question { server: "u1".into(), id: "\"q\"".into() }),
    };
    LogEntry { id: id(epoch, number), what }
}

pub(crate) async fn entries_are_read_in_order_and_by_page(Parts { sessions, log, .. }: Parts) {
    sessions.create(key(1), record("a")).await.expect("created");
    let stream = LoggedStream { epoch: Epoch(1), number: 1 };
    let began = Logged::Began {
        stream,
        requests: vec!["1".into(), "\"b\"".into()],
        method: "tools/call".into(),
        server: Some("u1".into()),
    };
    let all = vec![
        LogEntry { id: id(1, 1), what: began },
        event(1, 2),
        event(1, 3),
        LogEntry { id: id(1, 9), what: Logged::Ended { stream } },
    ];
    log.append(key(1), all[..2].to_vec()).await.expect("added");
    log.append(key(1), all[2..].to_vec()).await.expect("added");
    log.append(key(1), Vec::new()).await.expect("nothing to add");
    assert_eq!(log.read(key(1), None, 100).await, Ok(all.clone()));
    assert_eq!(log.read(key(1), None, 3).await, Ok(all[..3].to_vec()));
    assert_eq!(log.read(key(1), Some(id(1, 3)), 3).await, Ok(all[3..].to_vec()));
    assert_eq!(log.read(key(1), Some(id(1, 9)), 3).await, Ok(Vec::new()));
}

pub(crate) async fn no_entry_without_a_record(Parts { log, .. }: Parts) {
    assert_eq!(log.append(key(1), vec![event(1, 1)]).await, Err(StoreError::Gone));
    assert_eq!(log.forget(key(1), Epoch(1), vec![id(1, 1)]).await, Err(StoreError::Gone));
    assert_eq!(log.read(key(1), None, 1).await, Err(StoreError::Gone));
}

pub(crate) async fn entries_of_another_epoch_are_fenced(Parts { sessions, log, .. }: Parts) {
    sessions.create(key(1), record("a")).await.expect("created");
    log.append(key(1), vec![event(1, 1)]).await.expect("added");
    sessions.adopt(key(1), Epoch(1), replica("b")).await.expect("adopted");
    for stale in [1, 3] {
        assert_eq!(log.append(key(1), vec![event(stale, 2)]).await, Err(StoreError::Fenced));
        assert_eq!(log.forget(key(1), Epoch(stale), vec![id(1, 1)]).await, Err(StoreError::Fenced));
    }
    assert_eq!(log.read(key(1), None, 9).await, Ok(vec![event(1, 1)]), "nothing changed");
}

pub(crate) async fn entries_are_added_in_order_all_or_none(Parts { sessions, log, .. }: Parts) {
    sessions.create(key(1), record("a")).await.expect("created");
    log.append(key(1), vec![event(1, 5)]).await.expect("added");
    for wrong in
        [vec![event(1, 5)], vec![event(1, 4)], vec![event(1, 6), event(1, 6)], vec![event(1, 6), event(2, 7)]]
    {
        assert_eq!(log.append(key(1), wrong).await, Err(StoreError::Fenced));
        assert_eq!(log.read(key(1), None, 9).await, Ok(vec![event(1, 5)]));
    }
}

pub(crate) async fn what_is_forgotten_is_not_read(Parts { sessions, log, .. }: Parts) {
    sessions.create(key(1), record("a")).await.expect("created");
    log.append(key(1), vec![event(1, 1), event(1, 2), event(1, 3)]).await.expect("added");
    log.forget(key(1), Epoch(1), vec![id(1, 1), id(1, 3), id(1, 99)]).await.expect("forgotten");
    assert_eq!(log.read(key(1), None, 9).await, Ok(vec![event(1, 2)]));
    let again = log.append(key(1), vec![event(1, 3)]).await;
    assert_eq!(again, Err(StoreError::Fenced), "its place is not given twice");
}

/// A cursor that a caller was given stays good, and late entries of the dead owner are refused (L7, case-B09).
pub(crate) async fn an_adopter_reads_what_was_there_and_goes_on(Parts { sessions, log, .. }: Parts) {
    sessions.create(key(1), record("a")).await.expect("created");
    log.append(key(1), vec![event(1, 1), event(1, 2)]).await.expect("added");
    let epoch = sessions.adopt(key(1), Epoch(1), replica("b")).await.expect("adopted");
    let adopted = LogEntry { id: EntryId { epoch, number: 1 }, what: Logged::Adopted };
    log.append(key(1), vec![adopted.clone()]).await.expect("an adopter's first act");
    assert_eq!(log.append(key(1), vec![event(1, 3)]).await, Err(StoreError::Fenced));
    assert_eq!(log.read(key(1), None, 9).await, Ok(vec![event(1, 1), event(1, 2), adopted]));
}

pub(crate) async fn a_log_ends_with_its_record(Parts { sessions, log, .. }: Parts) {
    sessions.create(key(1), record("a")).await.expect("created");
    log.append(key(1), vec![event(1, 1)]).await.expect("added");
    sessions.remove(key(1)).await.expect("removed");
    assert_eq!(log.append(key(1), vec![event(1, 2)]).await, Err(StoreError::Gone));
    sessions.create(key(1), record("b")).await.expect("created");
    assert_eq!(log.read(key(1), None, 9).await, Ok(Vec::new()), "nothing of the old one is left");
}
