//! What is stored before it leaves, and what becomes of it when the store does not take it.

use std::future::poll_fn;
use std::time::Duration;

use super::scripted::{Act, Scripted, notification, read, request, response, settings};
use super::writer::PATIENCE;
use super::*;
use crate::protocol::revision::Revision;
use crate::session::log::EventKind;
use crate::session::{EventId, Reader, Streams};
use crate::settings::StreamSettings;

const PRIMED: Revision = Revision::V2025_11_25;
const NUMBERED: Revision = Revision::V2025_06_18;

fn about(ids: impl IntoIterator<Item = usize>) -> About {
    let requests = ids.into_iter().map(|id| id.to_string().into()).collect();
    About { requests, method: "tools/call".into(), server: Some("a".into()) }
}

/// Waits until a reader is woken and has something; gives the bytes as text.
async fn next(reader: &mut Reader) -> String {
    let mut out = Vec::new();
    let step = poll_fn(|cx| reader.poll_step(cx, &mut out));
    tokio::time::timeout(Duration::from_secs(60), step).await.expect("something comes");
    String::from_utf8(out).expect("text")
}

fn kinds(entries: &[LogEntry]) -> String {
    let kind = |entry: &LogEntry| match &entry.what {
        Logged::Adopted => 'a',
        Logged::Began { .. } => 'b',
        Logged::Event { .. } => 'e',
        Logged::Ended { .. } => 'z',
    };
    entries.iter().map(kind).collect()
}

fn journal(streams: &Streams) -> &Journal {
    streams.journal().expect("a journal")
}

/// Also the priming event waits: its id is no good before the stream is in the log.
#[tokio::test(start_paused = true)]
async fn what_a_caller_is_owed_leaves_once_it_is_stored() {
    let log = Scripted::new([Act::TakeLater, Act::TakeLater]).await;
    let streams = log.streams(settings(), PRIMED);
    let mut reader = streams.begin_post(about([1]));
    log.asked(1).await;
    assert!(read(&mut reader).ids.is_empty(), "not primed yet");
    log.later.add_permits(1);
    assert!(next(&mut reader).await.contains("id: 1.1-0"), "woken once the beginning is stored");
    streams.push(reader.stream(), EventKind::Response, response(1));
    streams.complete(reader.stream());
    log.asked(2).await;
    let got = read(&mut reader);
    assert_eq!((got.said.len(), got.ended), (0, false));
    log.later.add_permits(1);
    assert!(next(&mut reader).await.contains("\"id\":1"));
    assert!(read(&mut reader).ended);
    journal(&streams).settled().await;
    assert_eq!(kinds(&log.entries().await), "bez");
}

#[tokio::test(start_paused = true)]
async fn notifications_leave_at_once_but_not_past_what_waits() {
    let log = Scripted::new([Act::Take, Act::TakeLater, Act::TakeLater]).await;
    let streams = log.streams(settings(), NUMBERED);
    let mut reader = streams.begin_post(about([1]));
    streams.push(reader.stream(), EventKind::Notification, notification());
    assert!(read(&mut reader).said.is_empty(), "an id is no good before the stream is in the log");
    journal(&streams).settled().await;
    assert_eq!(read(&mut reader).said, ["n:null"]);
    streams.push(reader.stream(), EventKind::Notification, notification());
    log.asked(2).await;
    assert_eq!(read(&mut reader).said, ["n:null"], "it is not stored yet");
    streams.push(reader.stream(), EventKind::Request, request(5));
    streams.push(reader.stream(), EventKind::Notification, notification());
    log.later.add_permits(1);
    log.asked(3).await;
    assert!(read(&mut reader).said.is_empty());
    log.later.add_permits(1);
    assert!(next(&mut reader).await.contains("roots/list"));
    journal(&streams).settled().await;
    assert_eq!(kinds(&log.entries().await), "beeee");
}

/// Nothing is logged for a caller that was never given an event id (section 6 of the design).
#[tokio::test(start_paused = true)]
async fn a_stream_without_an_event_is_not_in_the_log() {
    let log = Scripted::new([]).await;
    let streams = log.streams(settings(), NUMBERED);
    let reader = streams.begin_post(about([1]));
    streams.complete(reader.stream());
    journal(&streams).settled().await;
    assert_eq!(log.appends(), 0);
}

/// Who comes back with an id that no log knows could not be told what became of its call.
#[tokio::test(start_paused = true)]
async fn a_stream_that_the_store_does_not_take_gives_no_id() {
    for revision in [PRIMED, NUMBERED] {
        let log = Scripted::new([Act::Hang, Act::Fail, Act::Fail, Act::TakeLater]).await;
        let streams = log.streams(settings(), revision);
        let mut reader = streams.begin_post(about([1, 2]));
        streams.push(reader.stream(), EventKind::Response, response(1));
        let got = next(&mut reader).await;
        assert!(got.contains("\"id\":1") && !got.contains("id: "), "{got}");
        log.asked(4).await;
        log.later.add_permits(1);
        journal(&streams).settled().await;
        streams.push(reader.stream(), EventKind::Response, response(2));
        assert!(next(&mut reader).await.contains("id: 1.1-2"), "the log knows of it by now");
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_holds_nothing_longer_than_its_time() {
    let log = Scripted::new([Act::Take, Act::Hang, Act::Fail, Act::TakeAndFail]).await;
    let streams = log.streams(settings(), NUMBERED);
    let mut reader = streams.begin_post(about([1, 2]));
    streams.push(reader.stream(), EventKind::Notification, notification());
    journal(&streams).settled().await;
    read(&mut reader);
    let began = Instant::now();
    streams.push(reader.stream(), EventKind::Response, response(1));
    assert!(next(&mut reader).await.contains("\"id\":1"));
    assert!(began.elapsed() >= PATIENCE && began.elapsed() < PATIENCE + Duration::from_millis(10));
    assert!(journal(&streams).is_unlogged());
    streams.push(reader.stream(), EventKind::Response, response(2));
    assert_eq!(read(&mut reader).said, ["n:2"], "nothing waits now");
    streams.complete(reader.stream());
    journal(&streams).settled().await;
    assert!(!journal(&streams).is_unlogged());
    assert_eq!((journal(&streams).take_unlogged(), journal(&streams).take_unlogged()), (1, 0));
    assert_eq!(kinds(&log.entries().await), "beeez", "all is written later, once");
    log.script([Act::TakeLater]);
    let mut reader = streams.begin_post(about([3]));
    let before = log.appends();
    streams.push(reader.stream(), EventKind::Response, response(3));
    log.asked(before + 1).await;
    assert!(read(&mut reader).said.is_empty(), "it waits again");
}

/// A write whose answer was lost is refused the second time; that is not another owner.
#[tokio::test(start_paused = true)]
async fn a_write_that_was_taken_without_a_word_is_not_taken_for_lost() {
    for act in [Act::TakeAndHang, Act::TakeAndFail] {
        let log = Scripted::new([act]).await;
        let streams = log.streams(settings(), NUMBERED);
        let mut reader = streams.begin_post(about([1]));
        streams.push(reader.stream(), EventKind::Response, response(1));
        streams.complete(reader.stream());
        journal(&streams).settled().await;
        assert!(!journal(&streams).lost().is_cancelled(), "{act:?}");
        assert_eq!(kinds(&log.entries().await), "bez", "{act:?}");
        assert!(read(&mut reader).ended);
    }
}

/// The new owner says that the outcome is unknown; a caller must not hear both.
#[tokio::test(start_paused = true)]
async fn what_another_owner_answers_for_never_leaves() {
    let log = Scripted::new([]).await;
    let streams = log.streams(settings(), PRIMED);
    let mut reader = streams.begin_post(about([1]));
    journal(&streams).settled().await;
    assert_eq!(read(&mut reader).ids.len(), 1);
    log.script([Act::Hang, Act::Adopt]);
    streams.push(reader.stream(), EventKind::Notification, notification());
    assert_eq!(read(&mut reader).said.len(), 1);
    journal(&streams).lost().cancelled().await;
    streams.push(reader.stream(), EventKind::Response, response(1));
    let got = read(&mut reader);
    assert_eq!((got.said.len(), got.retries, got.ended), (0, 1, true), "it is led to the new owner");
    streams.close();
    let mut again = streams.resume(EventId::parse("1.1-1").expect("an id")).expect("resumed");
    assert_eq!((read(&mut again).said.len(), read(&mut again).ended), (0, true));
    let appends = log.appends();
    streams.push(reader.stream(), EventKind::Notification, notification());
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(log.appends(), appends, "nothing more is written");
}

/// A replica that may own the session no more tells its caller to come back and nothing else: the adopter tells the rest.
#[tokio::test(start_paused = true)]
async fn a_connection_that_ends_at_once_takes_no_event_along() {
    let log = Scripted::new([]).await;
    let streams = log.streams(settings(), PRIMED);
    let mut reader = streams.begin_post(about([1]));
    journal(&streams).settled().await;
    assert_eq!(read(&mut reader).ids.len(), 1, "primed");
    streams.push(reader.stream(), EventKind::Notification, notification());
    streams.push(reader.stream(), EventKind::Response, response(1));
    journal(&streams).settled().await;
    reader.end_with_retry();
    reader.end_at_once();
    let got = read(&mut reader);
    assert_eq!((got.said.len(), got.retries, got.ended), (0, 1, true));
}

/// A stream that the log does not know cannot be taken up by another owner: its caller is answered here, and told no
/// id to come back with.
#[tokio::test(start_paused = true)]
async fn a_stream_that_only_its_old_owner_knows_ends_there() {
    for revision in [PRIMED, NUMBERED] {
        let log = Scripted::new([Act::Adopt]).await;
        let streams = log.streams(settings(), revision);
        let mut reader = streams.begin_post(about([1]));
        streams.push(reader.stream(), EventKind::Notification, notification());
        assert!(read(&mut reader).said.is_empty());
        journal(&streams).lost().cancelled().await;
        streams.push(reader.stream(), EventKind::Response, response(1));
        streams.complete(reader.stream());
        let got = read(&mut reader);
        assert_eq!((got.said.len(), got.ids.len(), got.ended), (2, 0, true), "{revision}");
    }
}

/// Nobody else answers for a session that is no more. Whether it ended, or the store lost it, others say: the journal
/// tries until it is told.
#[tokio::test(start_paused = true)]
async fn what_waits_when_the_session_is_gone_leaves() {
    let log = Scripted::new([Act::Remove]).await;
    let streams = log.streams(settings(), PRIMED);
    let mut reader = streams.begin_post(about([1]));
    streams.push(reader.stream(), EventKind::Response, response(1));
    streams.complete(reader.stream());
    assert!(next(&mut reader).await.contains("\"id\":1"));
    assert!(read(&mut reader).ended && !journal(&streams).lost().is_cancelled());
    streams.close();
    journal(&streams).settled().await;
}

/// L7: what is closed writes no more, and lets nobody wait.
#[tokio::test(start_paused = true)]
async fn a_closed_session_writes_no_more() {
    let log = Scripted::new([Act::Take, Act::Hang]).await;
    let streams = log.streams(settings(), PRIMED);
    let mut reader = streams.begin_post(about([1]));
    journal(&streams).settled().await;
    streams.push(reader.stream(), EventKind::Response, response(1));
    log.asked(2).await;
    streams.close();
    streams.complete(reader.stream());
    assert_eq!(read(&mut reader).said, ["n:1"]);
    let tasks = journal(&streams).shared.tasks.clone();
    drop((reader, streams));
    tasks.close();
    tokio::time::timeout(Duration::from_secs(60), tasks.wait()).await.expect("the writer is gone");
}

#[tokio::test(start_paused = true)]
async fn the_store_keeps_no_more_than_the_memory() {
    let few = StreamSettings { max_events: 20, ..settings() };
    let log = Scripted::new([]).await;
    let streams = log.streams(few, PRIMED);
    let mut reader = streams.begin_post(about([1]));
    journal(&streams).settled().await;
    read(&mut reader);
    for _ in 0..200 {
        streams.push(reader.stream(), EventKind::Notification, notification());
        journal(&streams).settled().await;
    }
    assert!(log.entries().await.len() <= 21, "trimmed ones are taken out");
    streams.push(reader.stream(), EventKind::Response, response(1));
    streams.complete(reader.stream());
    read(&mut reader);
    drop(reader);
    let later = std::time::Instant::now() + Duration::from_secs(10);
    streams.prune(later, Duration::from_secs(5));
    journal(&streams).settled().await;
    assert_eq!(kinds(&log.entries().await), "", "nor is anything left of pruned streams");
}

/// What is lost in memory is lost in the log too, and both say so.
#[tokio::test(start_paused = true)]
async fn a_lost_response_is_an_error_in_the_log_too() {
    let small = StreamSettings { max_bytes: 5000, ..settings() };
    let log = Scripted::new([]).await;
    let streams = log.streams(small, PRIMED);
    let mut reader = streams.begin_post(about([1]));
    journal(&streams).settled().await;
    read(&mut reader);
    drop(reader);
    let stream = StreamId { epoch: Epoch(1), number: 1 };
    let big = format!(r#"{{"jsonrpc":"2.0","id":1,"result":"{}"}}"#, "x".repeat(9000));
    streams.push(stream, EventKind::Response, big.into());
    streams.complete(stream);
    journal(&streams).settled().await;
    let entries = log.entries().await;
    let said: Vec<&Bytes> = entries.iter().filter_map(payload).collect();
    assert_eq!(said.len(), 1);
    assert!(said[0].windows(13).any(|w| w == b"response_lost"));
    let restored = log.adopt(settings(), PRIMED).await;
    let id = EventId::parse("1.1-0").expect("an id");
    assert_eq!(read(&mut restored.streams.resume(id).expect("resumed")).said, ["response_lost:1"]);
    assert!(restored.unanswered.is_empty());
}

/// They stay in the owner's memory, and an adopter says that their outcome is unknown.
#[tokio::test(start_paused = true)]
async fn an_event_over_the_size_limit_is_not_stored() {
    let log = Scripted::new([]).await;
    let streams = log.streams(StreamSettings { max_event: 40, ..settings() }, PRIMED);
    let mut reader = streams.begin_post(about([123_456_789]));
    streams.push(reader.stream(), EventKind::Response, response(123_456_789));
    streams.complete(reader.stream());
    journal(&streams).settled().await;
    assert_eq!(read(&mut reader).said.len(), 1);
    assert_eq!(kinds(&log.entries().await), "b");
    assert_eq!(log.adopt(settings(), PRIMED).await.unanswered.len(), 1);
}

/// What came while the store took nothing is dropped at the bound, and nothing then claims to be whole.
#[tokio::test(start_paused = true)]
async fn a_queue_that_is_full_drops_the_oldest_and_says_so() {
    let log = Scripted::new([Act::Hang]).await;
    let streams = log.streams(StreamSettings { max_events: 100_000, ..settings() }, NUMBERED);
    let mut readers = Vec::new();
    for id in 0..queue::MOST_ENTRIES / 2 {
        let reader = streams.begin_post(about([id]));
        streams.push(reader.stream(), EventKind::Response, response(id));
        streams.complete(reader.stream());
        readers.push(reader);
        if id == 0 {
            log.asked(1).await;
        }
    }
    assert!(journal(&streams).is_unlogged());
    assert_eq!(read(readers.last_mut().expect("one")).said.len(), 1);
    journal(&streams).settled().await;
    let restored = log.adopt(settings(), NUMBERED).await;
    assert!(restored.unanswered.len() > 100, "{}", restored.unanswered.len());
    assert_eq!(restored.unanswered[0].request.as_ref(), "1", "the first was on its way already");
    let known = restored.unanswered.len() + kinds(&log.entries().await).matches('z').count();
    assert_eq!(known, readers.len(), "each is answered or known not to be");
}

/// Entries are in the order of their events, whoever pushes them.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_who_push_at_once_leave_the_order_of_their_streams() {
    let log = Scripted::new([]).await;
    let streams = log.streams(settings(), PRIMED);
    let readers: Vec<Reader> = (0..2).map(|n| streams.begin_post(about([n]))).collect();
    let tasks = TaskTracker::new();
    for n in 0..400 {
        let (streams, stream) = (streams.clone(), readers[n % 2].stream());
        tasks.spawn(async move { streams.push(stream, EventKind::Request, request(n)) });
    }
    tasks.close();
    tasks.wait().await;
    journal(&streams).settled().await;
    let entries = log.entries().await;
    for reader in &readers {
        let of_it = |entry: &LogEntry| match &entry.what {
            Logged::Event { stream, place, .. } if *stream == reader.stream().into() => Some(*place),
            _ => None,
        };
        let places: Vec<u64> = entries.iter().filter_map(of_it).collect();
        assert_eq!(places, (1..=200).collect::<Vec<_>>());
    }
}

fn payload(entry: &LogEntry) -> Option<&Bytes> {
    match &entry.what {
        Logged::Event { payload, .. } => Some(payload),
        Logged::Adopted | Logged::Began { .. } | Logged::Ended { .. } => None,
    }
}
