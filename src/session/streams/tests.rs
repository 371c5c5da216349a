//! Streams of one session: bounds, replay, hand-over.

use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use super::super::stream::Wake;
use super::*;
use crate::protocol::sse::{ByteLimit, Decoder};
use crate::session::Step;

fn settings() -> StreamSettings {
    StreamSettings { retry: Duration::from_millis(700), ..StreamSettings::default() }
}

fn streams_of(settings: StreamSettings, revision: Revision) -> Arc<Streams> {
    let budget = Arc::new(Budget::new(settings.max_total));
    Arc::new(Streams::new(Arc::new(settings), revision, Epoch::FIRST, budget))
}

fn streams() -> Arc<Streams> {
    streams_of(settings(), Revision::V2025_11_25)
}

/// A message that is told apart by its number.
fn message(n: usize) -> Bytes {
    format!(r#"{{"jsonrpc":"2.0","id":{n},"result":{{}}}}"#).into()
}

fn big(n: usize, size: usize) -> Bytes {
    format!(r#"{{"jsonrpc":"2.0","id":{n},"result":"{}"}}"#, "x".repeat(size)).into()
}

/// What a reader has now: the numbers of the messages, a priming event as `0`, and whether it ended.
#[derive(Debug, Default, PartialEq, Eq)]
struct Got {
    ids: Vec<String>,
    numbers: Vec<i64>,
    retries: usize,
    ended: bool,
}

fn read(reader: &mut Reader) -> Got {
    let mut out = Vec::new();
    let mut got = Got::default();
    let mut cx = Context::from_waker(Waker::noop());
    loop {
        match reader.poll_step(&mut cx, &mut out) {
            Poll::Ready(Step::Data) => {}
            Poll::Ready(Step::End) => {
                got.ended = true;
                break;
            }
            Poll::Pending => break,
        }
    }
    let mut decoder = Decoder::new(ByteLimit(1 << 24));
    let mut chunk = Bytes::from(out);
    while let Some(event) = decoder.decode(&mut chunk).expect("events") {
        got.ids.extend(event.id.map(Into::into));
        got.retries += usize::from(event.retry.is_some());
        if !event.data.is_empty() {
            let value: serde_json::Value = serde_json::from_slice(&event.data).expect("JSON");
            got.numbers.push(if value.get("error").is_some() {
                -1
            } else {
                value["id"].as_i64().unwrap_or(0)
            });
        }
    }
    got
}

fn id(text: &str) -> EventId {
    EventId::parse(text).expect("an id")
}

#[test]
fn streams_of_the_newest_revision_are_primed_and_earlier_ones_never() {
    for revision in Revision::LEGACY {
        let streams = streams_of(settings(), revision);
        for mut reader in [streams.begin_post(About::default()), streams.open_get()] {
            let got = read(&mut reader);
            let primed = revision == Revision::V2025_11_25;
            assert_eq!(
                (got.ids.len(), got.retries),
                (usize::from(primed), usize::from(primed)),
                "{revision}"
            );
        }
    }
}

#[test]
fn a_resumed_stream_gives_what_followed_once_and_goes_on() {
    let streams = streams();
    let mut first = streams.begin_post(About::default());
    let stream = first.stream();
    streams.push(stream, EventKind::Notification, message(1));
    assert_eq!(read(&mut first).numbers, [1]);
    drop(first);
    streams.push(stream, EventKind::Notification, message(2));
    let mut second = streams.resume(id("1.1-1")).expect("resumed");
    assert_eq!(read(&mut second).numbers, [2]);
    streams.push(stream, EventKind::Response, message(3));
    streams.complete(stream);
    let got = read(&mut second);
    assert_eq!((got.numbers, got.ended, got.retries), (vec![3], true, 0), "a complete stream says no retry");
    assert_eq!(streams.resume(id("1.1-3")).err(), Some(ResumeError::Over));
    assert_eq!(read(&mut streams.resume(id("1.1-1")).expect("again")).numbers, [2, 3]);
}

#[test]
fn ids_that_were_never_given_out_are_unknown() {
    let streams = streams();
    let _reader = streams.begin_post(About::default());
    for foreign in ["1.2-0", "2.1-0", "1.1-1", "1.0-0"] {
        assert_eq!(streams.resume(id(foreign)).err(), Some(ResumeError::Unknown), "{foreign}");
    }
}

#[test]
fn an_older_reader_of_a_post_ends_without_retry_when_a_newer_one_comes() {
    let streams = streams();
    let mut older = streams.begin_post(About::default());
    assert_eq!(read(&mut older).numbers, [0; 0]);
    let mut newer = streams.resume(id("1.1-0")).expect("resumed");
    streams.push(newer.stream(), EventKind::Notification, message(1));
    let got = read(&mut older);
    assert_eq!((got.numbers.len(), got.retries, got.ended), (0, 0, true));
    assert_eq!(read(&mut newer).numbers, [1]);
}

#[test]
fn the_replay_of_a_new_connection_survives_the_end_of_the_old_one() {
    let streams = streams();
    for role in [StreamRole::Post, StreamRole::Get] {
        let mut old =
            if role == StreamRole::Get { streams.open_get() } else { streams.begin_post(About::default()) };
        let stream = old.stream();
        for n in 1..=3 {
            streams.push(stream, EventKind::Notification, message(n));
        }
        assert_eq!(read(&mut old).numbers, [1, 2, 3]);
        let last = EventId { stream, place: 1 };
        let mut new = streams.resume(last).expect("resumed");
        drop(old);
        assert_eq!(read(&mut new).numbers, [2, 3], "{role:?}");
    }
}

#[test]
fn the_newest_get_has_the_messages_and_an_older_one_takes_over() {
    let streams = streams();
    let mut readers: Vec<Reader> = (0..4).map(|_| streams.open_get()).collect();
    readers.iter_mut().for_each(|r| drop(read(r)));
    assert!(streams.push_get(EventKind::Notification, message(1)));
    let got: Vec<usize> = readers.iter_mut().map(|r| read(r).numbers.len()).collect();
    assert_eq!(got, [0, 0, 0, 1]);
    drop(readers.pop());
    streams.push_get(EventKind::Notification, message(2));
    let got: Vec<Vec<i64>> = readers.iter_mut().map(|r| read(r).numbers).collect();
    assert_eq!(got, [vec![], vec![], vec![2]], "and nothing twice");
}

#[test]
fn at_most_three_older_gets_stand_by() {
    let streams = streams();
    let mut readers: Vec<Reader> = (0..6).map(|_| streams.open_get()).collect();
    let ended: Vec<bool> = readers.iter_mut().map(|r| read(r).ended).collect();
    assert_eq!(ended, [true, true, false, false, false, false]);
}

/// A message goes to exactly one connection (T26), also when the newest was told to end.
#[test]
fn a_get_that_is_told_to_end_hands_over_at_once() {
    let streams = streams();
    let (mut older, mut newer) = (streams.open_get(), streams.open_get());
    read(&mut older);
    read(&mut newer);
    streams.push_get(EventKind::Notification, message(1));
    newer.end_with_retry();
    streams.push_get(EventKind::Notification, message(2));
    let got = read(&mut newer);
    assert_eq!((got.numbers.len(), got.retries, got.ended), (0, 1, true));
    assert_eq!(read(&mut older).numbers, [1, 2]);
}

#[test]
fn what_comes_while_no_get_is_open_waits_for_the_next() {
    let streams = streams();
    assert!(!streams.push_get(EventKind::Request, message(1)), "none was ever opened");
    let mut first = streams.open_get();
    read(&mut first);
    drop(first);
    assert!(streams.push_get(EventKind::Request, message(2)));
    assert_eq!(read(&mut streams.open_get()).numbers, [2]);
}

#[test]
fn a_notice_is_told_once_to_the_one_that_reads() {
    let streams = streams();
    streams.notice(Notice::Tools);
    streams.notice(Notice::Tools);
    let (mut older, mut newer) = (streams.open_get(), streams.open_get());
    assert_eq!(read(&mut older).numbers.len(), 0);
    assert_eq!(read(&mut newer).numbers.len(), 1);
    newer.end_with_retry();
    streams.notice(Notice::Prompts);
    assert_eq!(read(&mut newer).numbers.len(), 0);
    assert_eq!(read(&mut older).numbers.len(), 1);
}

#[test]
fn a_caller_without_an_event_id_leaves_nothing_behind() {
    let streams = streams_of(settings(), Revision::V2025_06_18);
    let mut reader = streams.begin_post(About::default());
    let stream = reader.stream();
    read(&mut reader);
    drop(reader);
    assert!(!streams.push(stream, EventKind::Response, message(1)));
    streams.complete(stream);
    assert!(lock(&streams.inner).streams.is_empty());
}

#[test]
fn a_full_log_loses_superseded_progress_then_notifications_and_responses_never_by_count() {
    let streams = streams_of(StreamSettings { max_events: 20, ..settings() }, Revision::V2025_11_25);
    let mut reader = streams.begin_post(About::default());
    let stream = reader.stream();
    read(&mut reader);
    drop(reader);
    streams.push(stream, EventKind::Notification, message(1));
    for n in 2..=10 {
        streams.push(stream, EventKind::Progress { exchange: 1 }, message(n));
    }
    for n in 11..=21 {
        streams.push(stream, EventKind::Response, message(n));
    }
    let kept = read(&mut streams.resume(id("1.1-0")).expect("resumed")).numbers;
    assert_eq!(kept, [vec![1], (5..=21).collect::<Vec<i64>>()].concat());
    for n in 22..=60 {
        streams.push(stream, EventKind::Response, message(n));
    }
    let kept = read(&mut streams.resume(id("1.1-0")).expect("resumed")).numbers;
    assert_eq!(kept, (11..=60).collect::<Vec<i64>>(), "every response is there");
    assert_eq!(streams.take_dropped(), 10);
}

#[test]
fn too_many_bytes_lose_responses_last_and_say_so() {
    let settings = StreamSettings { max_bytes: 20_000, ..settings() };
    let streams = streams_of(settings, Revision::V2025_11_25);
    let mut reader = streams.begin_post(About::default());
    let stream = reader.stream();
    read(&mut reader);
    drop(reader);
    streams.push(stream, EventKind::Request, message(1));
    for n in 2..=6 {
        streams.push(stream, EventKind::Response, big(n, 5_000));
    }
    let kept = read(&mut streams.resume(id("1.1-0")).expect("resumed")).numbers;
    assert_eq!(kept, [-1, -1, 4, 5, 6], "the request went, then the oldest responses; each is answered");
}

/// What a connection that reads has not taken yet is on its way, not lost.
#[test]
fn a_response_on_its_way_to_a_caller_that_reads_is_not_lost() {
    let streams = streams_of(StreamSettings { max_bytes: 100, ..settings() }, Revision::V2025_11_25);
    let mut reader = streams.begin_post(About::default());
    let stream = reader.stream();
    read(&mut reader);
    streams.push(stream, EventKind::Request, big(1, 2_000));
    streams.push(stream, EventKind::Response, big(2, 5_000));
    assert_eq!(read(&mut reader).numbers, [1, 2]);
    streams.push(stream, EventKind::Response, big(3, 5_000));
    assert_eq!(read(&mut reader).numbers, [3]);
    drop(reader);
    streams.prune(Instant::now(), Duration::from_secs(60));
    let left = read(&mut streams.resume(id("1.1-0")).expect("resumed")).numbers;
    assert_eq!(left, [-1, -1], "once nobody reads, the bound holds");
}

#[test]
fn a_response_over_the_size_of_events_stays() {
    let settings = StreamSettings { max_bytes: 10_000, max_event: 8_000, ..settings() };
    let streams = streams_of(settings, Revision::V2025_11_25);
    let mut reader = streams.begin_post(About::default());
    let stream = reader.stream();
    read(&mut reader);
    drop(reader);
    streams.push(stream, EventKind::Response, big(1, 50_000));
    streams.push(stream, EventKind::Response, big(2, 7_000));
    streams.push(stream, EventKind::Response, big(3, 7_000));
    assert_eq!(read(&mut streams.resume(id("1.1-0")).expect("resumed")).numbers, [1, -1, 3]);
}

#[test]
fn a_caller_that_stays_away_for_too_long_is_told_to_come_back() {
    let streams = streams();
    let mut reader = streams.begin_post(About::default());
    let stream = reader.stream();
    read(&mut reader);
    let mut inner = lock(&streams.inner);
    let log = inner.streams.get_mut(&stream).expect("a stream");
    let began = Instant::now();
    for n in 0..40 {
        log.push(EventKind::Notification, message(n), began, Wake::Now);
    }
    assert!(log.is_attended(), "a burst is no absence");
    log.push(EventKind::Notification, message(40), began + Duration::from_secs(2), Wake::Now);
    assert!(!log.is_attended());
    drop(inner);
    assert!(!streams.has_readers(), "it does not keep its session alive");
    let got = read(&mut reader);
    assert_eq!((got.numbers.len(), got.retries, got.ended), (41, 1, true));
}

#[test]
fn ended_streams_are_kept_for_their_retention_and_within_their_number() {
    let streams = streams();
    let mut reader = streams.begin_post(About::default());
    read(&mut reader);
    let stream = reader.stream();
    streams.push(stream, EventKind::Response, message(1));
    streams.complete(stream);
    drop(reader);
    let later = Instant::now() + Duration::from_secs(30);
    streams.prune(later, Duration::from_secs(60));
    assert!(streams.resume(id("1.1-0")).is_ok());
    streams.prune(later, Duration::from_secs(10));
    assert_eq!(streams.resume(id("1.1-0")).err(), Some(ResumeError::Unknown));
    for _ in 0..MOST_STREAMS + 10 {
        let mut reader = streams.begin_post(About::default());
        read(&mut reader);
        streams.complete(reader.stream());
    }
    assert_eq!(lock(&streams.inner).streams.len(), MOST_STREAMS);
}

/// T22: the connection ends, the stream goes on.
#[test]
fn a_caller_that_is_asked_to_poll_comes_back_to_the_same_stream() {
    let streams = streams();
    let mut reader = streams.begin_post(About::default());
    let stream = reader.stream();
    read(&mut reader);
    streams.ask_to_poll(stream);
    let got = read(&mut reader);
    assert_eq!((got.retries, got.ended), (1, true));
    drop(reader);
    streams.push(stream, EventKind::Response, message(1));
    streams.complete(stream);
    assert_eq!(read(&mut streams.resume(id("1.1-0")).expect("resumed")).numbers, [1]);
}

/// A caller that was given no event id could not come back: its stream is not ended under it, and its result
/// arrives.
#[test]
fn a_stream_without_an_id_yet_is_not_ended_early() {
    let streams = streams_of(settings(), Revision::V2025_06_18);
    let mut reader = streams.begin_post(About::default());
    assert!(!read(&mut reader).ended);
    streams.end_connections();
    reader.end_with_retry();
    assert!(streams.push(reader.stream(), EventKind::Response, message(1)));
    streams.complete(reader.stream());
    let got = read(&mut reader);
    assert_eq!((got.numbers, got.retries, got.ended), (vec![1], 0, true));
}

/// Nothing follows the response: what comes behind it belongs elsewhere.
#[test]
fn a_complete_stream_takes_nothing_more() {
    let streams = streams();
    let reader = streams.begin_post(About::default());
    assert!(streams.push(reader.stream(), EventKind::Response, message(1)));
    streams.complete(reader.stream());
    assert!(!streams.push(reader.stream(), EventKind::Notification, message(2)));
}

/// N5: what a listen tells is never queued; its result is the last of it, and its credential's end is not the end of
/// its connection, since the result is to come first.
#[test]
fn a_listen_tells_each_change_once_and_its_result_last() {
    let streams = streams_of(settings(), Revision::LATEST);
    let mut reader = streams.begin_listen("7");
    streams.push_get(EventKind::Notification, message(1));
    for n in 0..10_000 {
        streams.notice(Notice::Tools);
        let uri = format!("a:1/{}", n % 3);
        streams.notice(Notice::Within { uri, subscribed: "a:1".into() });
    }
    reader.end_with_retry();
    let got = read(&mut reader);
    assert_eq!((got.numbers.len(), got.numbers.first(), got.ended), (5, Some(&1), false), "{got:?}");
    streams.notice(Notice::Prompts);
    streams.end_listen(message(2));
    streams.notice(Notice::Tools);
    let got = read(&mut reader);
    assert_eq!((got.numbers.len(), got.numbers.last(), got.ended), (2, Some(&2), true), "{got:?}");
    assert_eq!((got.ids.len(), got.retries), (0, 0));
}
