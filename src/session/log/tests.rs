//! What goes first when a log is full.

use super::*;

const NONE: Surplus = Surplus { events: 0, bytes: 0, within: 0 };
const ALL: Surplus = Surplus { events: usize::MAX, bytes: usize::MAX, within: usize::MAX };

fn log(max_event: usize) -> (Log, Arc<Usage>) {
    let usage = Arc::new(Usage::new(max_event, Arc::new(Budget::new(1 << 20))));
    (Log::new(usage.clone()), usage)
}

fn entry(place: u64, kind: EventKind, size: usize) -> Entry {
    let text = format!(r#"{{"jsonrpc":"2.0","id":{place},"result":{{"text":"{}"}}}}"#, "x".repeat(size));
    Entry { place, kind, payload: text.into(), id: UNLOGGED }
}

fn places(log: &Log) -> Vec<u64> {
    log.after(0).map(|e| e.place).collect()
}

#[test]
fn progress_that_newer_progress_supersedes_goes_first_and_the_newest_stays() {
    let (mut log, usage) = log(1 << 20);
    for place in 1..=6 {
        log.push(entry(place, EventKind::Progress { exchange: place % 2 }, 1));
    }
    log.push(entry(7, EventKind::Notification, 1));
    assert_eq!(log.drop_superseded(Surplus { events: 2, ..NONE }), 2);
    assert_eq!(places(&log), [3, 4, 5, 6, 7], "the oldest first");
    assert_eq!(log.drop_superseded(ALL), 2);
    assert_eq!(places(&log), [5, 6, 7], "one of each exchange stays");
    assert_eq!(log.drop_superseded(ALL), 0);
    assert_eq!(usage.events.load(Relaxed), 3);
}

#[test]
fn requests_and_responses_outlive_notifications() {
    let (mut log, _) = log(1 << 20);
    log.push(entry(1, EventKind::Request, 1));
    log.push(entry(2, EventKind::Notification, 1));
    log.push(entry(3, EventKind::Response, 1));
    log.push(entry(4, EventKind::Progress { exchange: 1 }, 1));
    assert_eq!(log.drop_notifications(ALL), 2);
    assert_eq!(places(&log), [1, 3]);
}

#[test]
fn a_lost_response_is_an_error_with_its_id() {
    let (mut log, usage) = log(1 << 20);
    log.push(entry(5, EventKind::Response, 5000));
    assert_eq!(log.lose_responses(ALL, u64::MAX), 1);
    let lost = log.after(0).next().expect("its place is kept").payload.clone();
    let lost: serde_json::Value = serde_json::from_slice(&lost).expect("JSON");
    assert_eq!((&lost["id"], &lost["error"]["code"]), (&5.into(), &(-32603).into()));
    assert_eq!(lost["error"]["data"]["mcpgate"]["reason"], "response_lost");
    assert!(usage.bytes.load(Relaxed) < 1024);
    assert_eq!(log.lose_responses(ALL, u64::MAX), 0, "no error is lost again");
}

#[test]
fn only_as_much_goes_as_must() {
    let (mut log, _) = log(1 << 20);
    for place in 1..=4 {
        log.push(entry(place, EventKind::Response, 5000));
    }
    for place in 5..=8 {
        log.push(entry(place, EventKind::Notification, 1000));
    }
    let bytes = |bytes| Surplus { bytes, within: usize::MAX, ..NONE };
    assert_eq!(log.lose_responses(bytes(6000), u64::MAX), 2);
    assert_eq!(log.drop_notifications(bytes(1500)), 2);
    assert_eq!(log.drop_notifications(Surplus { bytes: 1500, within: 500, ..NONE }), 0, "it would not help");
    assert_eq!(places(&log), [1, 2, 3, 4, 7, 8]);
}

#[test]
fn responses_behind_a_place_or_over_a_size_are_kept() {
    let (mut log, _) = log(1 << 20);
    log.push(entry(1, EventKind::Response, 9000));
    log.push(entry(2, EventKind::Response, 2000));
    log.push(entry(3, EventKind::Response, 2000));
    assert_eq!(log.lose_responses(Surplus { within: 5000, ..ALL }, 2), 1);
    let sizes: Vec<bool> = log.after(0).map(|e| e.payload.len() > LOST_AT_MOST).collect();
    assert_eq!(sizes, [true, false, true]);
}

#[test]
fn an_event_over_the_size_limit_counts_in_the_process_only() {
    let (mut log, usage) = log(100);
    log.push(entry(1, EventKind::Response, 5000));
    assert_eq!(usage.bytes.load(Relaxed), 0);
    assert!(usage.total.used() > 5000);
    assert_eq!(usage.surplus(10, 10), None);
    drop(log);
    assert_eq!((usage.total.used(), usage.held.load(Relaxed)), (0, 0));
}

/// Promise 1: whoever holds more than its share makes room, and nobody else.
#[test]
fn an_exceeded_budget_is_the_concern_of_those_over_their_share() {
    let budget = Arc::new(Budget::new(10_000));
    let hog = Arc::new(Usage::new(1 << 20, budget.clone()));
    let modest = Arc::new(Usage::new(1 << 20, budget.clone()));
    let (mut much, mut little) = (Log::new(hog.clone()), Log::new(modest.clone()));
    much.push(entry(1, EventKind::Response, 9000));
    little.push(entry(1, EventKind::Response, 900));
    assert_eq!(hog.surplus(100, 100_000), None, "not exceeded yet");
    much.push(entry(2, EventKind::Response, 1000));
    assert!(budget.is_exceeded());
    assert_eq!(modest.surplus(100, 100_000), None);
    let surplus = hog.surplus(100, 100_000).expect("over its share");
    assert!(surplus.bytes > 5000 && surplus.within == usize::MAX, "{surplus:?}");
    drop((modest, little));
    drop(much);
    assert_eq!(budget.share(), 10_000, "only the hog shares it now");
}
