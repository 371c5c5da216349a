//! What an adopter makes of the log.

mod any_order;

use std::time::Duration;

use super::*;
use crate::session::journal::Origin;
use crate::session::journal::scripted::{
    Act, Read, Scripted, notification, read, request, response, settings,
};
use crate::session::stream::Wake;
use crate::session::streams::ResumeError;
use crate::session::{EventId, Reader};

const PRIMED: Revision = Revision::V2025_11_25;

fn about(ids: impl IntoIterator<Item = usize>) -> About {
    let requests = ids.into_iter().map(|id| id.to_string().into()).collect();
    About { requests, method: "tools/call".into(), server: Some("a".into()) }
}

fn id(text: &str) -> EventId {
    EventId::parse(text).expect("an id")
}

async fn settled(streams: &Streams) {
    streams.journal().expect("a journal").settled().await;
}

/// Primes the stream of a new POST.
async fn begun(streams: &Arc<Streams>, about: About) -> Reader {
    let mut reader = streams.begin_post(about);
    settled(streams).await;
    assert_eq!(read(&mut reader).ids.len(), 1);
    reader
}

async fn read_on(restored: &Restored, from: EventId) -> Read {
    let mut reader = restored.streams.resume(from).expect("resumed");
    settled(&restored.streams).await;
    read(&mut reader)
}

/// case-B05 over owners: only what followed on that stream, each once.
#[tokio::test(start_paused = true)]
async fn a_callers_last_event_id_goes_on_at_the_next_owner() {
    let log = Scripted::new([]).await;
    let streams = log.streams(settings(), PRIMED);
    let (one, two) = (begun(&streams, about([1])).await, begun(&streams, about([2])).await);
    for n in 0..3 {
        streams.push(one.stream(), EventKind::Request, request(10 + n));
        streams.push(two.stream(), EventKind::Request, request(20 + n));
    }
    streams.push(one.stream(), EventKind::Response, response(1));
    streams.complete(one.stream());
    settled(&streams).await;
    let mut restored = log.adopt(settings(), PRIMED).await;
    let got = read_on(&restored, id("1.1-2")).await;
    assert_eq!((got.said, got.ended), (vec!["n:12".to_owned(), "n:1".to_owned()], true));
    assert_eq!(restored.streams.resume(id("1.1-4")).err(), Some(ResumeError::Over));
    assert_eq!(restored.streams.resume(id("1.3-0")).err(), Some(ResumeError::Unknown));
    let [left] = restored.unanswered.clone().try_into().expect("one");
    assert_eq!((&*left.request, left.server.as_deref()), ("2", Some("a")));
    restored.give_up(vec![left]);
    let got = read_on(&restored, id("1.2-3")).await;
    assert_eq!((got.said, got.ended), (vec!["outcome_unknown:2".to_owned()], true));
}

/// case-B09: places that the log does not show are not given out again.
#[tokio::test(start_paused = true)]
async fn ids_stay_unique_over_owners() {
    let log = Scripted::new([]).await;
    let streams = log.streams(settings(), PRIMED);
    let mut reader = begun(&streams, about([1])).await;
    streams.push(reader.stream(), EventKind::Request, request(5));
    settled(&streams).await;
    log.script([Act::Hang; 9]);
    streams.push(reader.stream(), EventKind::Notification, notification());
    streams.push(reader.stream(), EventKind::Notification, notification());
    let mut ids = read(&mut reader).ids;
    assert_eq!(ids.last(), Some(&id("1.1-3")), "they left before they were stored");
    let mut last = ids[2];
    for epoch in 2..4_u64 {
        let restored = log.adopt(settings(), PRIMED).await;
        let mut reader = restored.streams.resume(last).expect("between what is logged and what comes");
        restored.streams.push(reader.stream(), EventKind::Request, request(6));
        settled(&restored.streams).await;
        let got = read(&mut reader);
        assert_eq!(got.said, ["n:6"], "once");
        assert_eq!(got.ids[0], last, "the priming event of a resume says where it goes on");
        let new_ids = &got.ids[1..];
        assert!(new_ids.iter().all(|id| id.place > epoch << PLACES_BITS), "{new_ids:?}");
        let new = begun(&restored.streams, About::default()).await;
        assert_eq!(u64::from(new.stream().epoch.0), epoch);
        restored.streams.complete(new.stream());
        ids.extend(new_ids);
        last = *ids.last().expect("one");
        settled(&restored.streams).await;
    }
    assert!((1..ids.len()).all(|at| !ids[..at].contains(&ids[at])), "{ids:?}");
}

#[tokio::test(start_paused = true)]
async fn the_standalone_get_is_one_stream_over_all_owners() {
    let log = Scripted::new([]).await;
    let streams = log.streams(settings(), PRIMED);
    let mut get = streams.open_get();
    settled(&streams).await;
    streams.push_get(EventKind::Request, request(1));
    streams.push_get(EventKind::Request, request(2));
    settled(&streams).await;
    assert_eq!(read(&mut get).said.len(), 2);
    for epoch in 2..4 {
        let restored = log.adopt(settings(), PRIMED).await;
        assert!(restored.streams.has_get() && !restored.streams.get_is_open());
        let mut get = restored.streams.resume(id("1.0-1")).expect("resumed");
        assert_eq!(read(&mut get).said.first().map(String::as_str), Some("n:2"));
        restored.streams.push_get(EventKind::Request, request(epoch));
        settled(&restored.streams).await;
        assert_eq!(read(&mut get).said, [format!("n:{epoch}")], "it goes on live");
        let mut newer = restored.streams.open_get();
        assert_eq!((newer.stream(), read(&mut newer).said.len()), (get.stream(), 0));
    }
}

/// Most sessions have a GET that tells nothing: it costs the store nothing, and its caller can come back all the same.
#[tokio::test(start_paused = true)]
async fn a_get_that_told_nothing_is_not_logged_and_goes_on() {
    let log = Scripted::new([]).await;
    let streams = log.streams(settings(), PRIMED);
    let mut get = streams.open_get();
    assert_eq!(read(&mut get).ids, [id("1.0-0")], "it can be come back to at once");
    settled(&streams).await;
    assert!(log.entries().await.is_empty());
    let restored = log.adopt(settings(), PRIMED).await;
    assert!(!restored.streams.has_get());
    assert_eq!(restored.streams.resume(id("2.0-0")).err(), Some(ResumeError::Unknown), "nobody was given it");
    let mut get = restored.streams.resume(id("1.0-0")).expect("resumed");
    restored.streams.push_get(EventKind::Request, request(1));
    settled(&restored.streams).await;
    let got = read(&mut get);
    assert_eq!((got.said, got.ids[0]), (vec!["n:1".to_owned()], id("1.0-0")));
    assert!(got.ids[1].place > 1 << PLACES_BITS, "behind what may have gone out before");
    let again = log.adopt(settings(), PRIMED).await;
    assert_eq!(read_on(&again, id("1.0-0")).await.said, ["n:1"], "it is logged by now");
}

/// A caller that came back without the id has another GET already; who comes with it is led there.
#[tokio::test(start_paused = true)]
async fn a_get_that_told_nothing_may_have_another_in_its_place() {
    let log = Scripted::new([]).await;
    drop(log.streams(settings(), PRIMED).open_get());
    let restored = log.adopt(settings(), PRIMED).await;
    let new = restored.streams.open_get();
    let old = restored.streams.resume(id("1.0-0")).expect("resumed");
    assert_eq!((new.stream(), old.stream()), (id("2.0-0").stream, id("2.0-0").stream));
}

/// Each request of a batch is answered; what was resumed meanwhile keeps the stream open.
#[tokio::test(start_paused = true)]
async fn what_is_missing_of_a_batch_is_given_up_one_by_one() {
    let log = Scripted::new([]).await;
    let streams = log.streams(settings(), PRIMED);
    let reader = begun(&streams, about([1, 2, 3])).await;
    let origin = Origin { cursor: Some("c".into()), question: None };
    streams.append(reader.stream(), EventKind::Response, response(2), Wake::Now, origin);
    settled(&streams).await;
    let mut restored = log.adopt(settings(), PRIMED).await;
    let left: Vec<&str> = restored.unanswered.iter().map(|u| &*u.request).collect();
    assert_eq!(left, ["1", "3"]);
    assert_eq!(restored.unanswered[0].cursor, None, "of which of them, nobody knows");
    restored.give_up(vec![restored.unanswered[0].clone()]);
    let got = read_on(&restored, id("1.1-0")).await;
    assert_eq!((got.said, got.ended), (vec!["n:2".to_owned(), "outcome_unknown:1".to_owned()], false));
    restored.give_up(restored.unanswered.clone());
    let got = read_on(&restored, id("1.1-1")).await;
    assert_eq!(got.said, ["outcome_unknown:1", "outcome_unknown:3"]);
    assert!(got.ended);
}

#[tokio::test(start_paused = true)]
async fn a_request_with_a_cursor_can_be_resumed_there() {
    let log = Scripted::new([]).await;
    let streams = log.streams(settings(), PRIMED);
    let reader = begun(&streams, about([1])).await;
    for cursor in ["c1", "c2"] {
        let origin = Origin { cursor: Some(cursor.into()), question: None };
        streams.append(reader.stream(), EventKind::Notification, notification(), Wake::Now, origin);
    }
    streams.push(reader.stream(), EventKind::Notification, notification());
    settled(&streams).await;
    let restored = log.adopt(settings(), PRIMED).await;
    assert_eq!(restored.unanswered[0].cursor.as_deref(), Some("c2"));
    restored.streams.push(reader.stream(), EventKind::Response, response(1));
    restored.streams.complete(reader.stream());
    let got = read_on(&restored, id("1.1-3")).await;
    assert_eq!((got.said, got.ended), (vec!["n:1".to_owned()], true));
}

/// Ages are not stored.
#[tokio::test(start_paused = true)]
async fn a_complete_stream_is_kept_for_a_full_retention_again() {
    let log = Scripted::new([]).await;
    let streams = log.streams(settings(), PRIMED);
    let reader = begun(&streams, about([1])).await;
    streams.push(reader.stream(), EventKind::Response, response(1));
    streams.complete(reader.stream());
    settled(&streams).await;
    let restored = log.adopt(settings(), PRIMED).await;
    let retention = Duration::from_secs(60);
    restored.streams.prune(Instant::now() + retention / 2, retention);
    assert!(restored.streams.resume(id("1.1-0")).is_ok());
    restored.streams.prune(Instant::now() + retention, retention);
    settled(&restored.streams).await;
    assert_eq!(restored.streams.resume(id("1.1-0")).err(), Some(ResumeError::Unknown));
    let left: Vec<Logged> = log.entries().await.into_iter().map(|entry| entry.what).collect();
    assert_eq!(left, [], "an earlier owner's entries are taken out too, and what the adopter began with");
}

#[tokio::test(start_paused = true)]
async fn what_makes_no_sense_in_a_log_is_skipped_and_counted() {
    let log = Scripted::new([]).await;
    let stream = |number| StreamId { epoch: Epoch(1), number }.into();
    let began = |number| Logged::Began {
        stream: stream(number),
        requests: vec!["1".into()],
        method: "m".into(),
        server: None,
    };
    let event = |number, place, payload| Logged::Event {
        stream: stream(number),
        place,
        payload,
        cursor: None,
        question: None,
    };
    let whats = [
        event(1, 1, request(1)),
        Logged::Ended { stream: stream(2) },
        began(1),
        began(1),
        event(1, 2, request(2)),
        event(1, 1, request(1)),
        event(1, 2, request(3)),
        event(1, 0, request(4)),
        event(1, u64::MAX, Bytes::from_static(b"{")),
        event(1, 3, response(1)),
        event(1, 4, response(1)),
        Logged::Ended { stream: stream(1) },
        Logged::Ended { stream: stream(1) },
        event(2, 1, request(1)),
    ];
    let entry = |(at, what)| LogEntry { id: EntryId { epoch: Epoch(1), number: at }, what };
    let entries: Vec<LogEntry> = (1..).zip(whats).map(entry).collect();
    crate::store::EventLog::append(&*log, crate::session::journal::scripted::KEY, entries)
        .await
        .expect("stored");
    let restored = log.adopt(settings(), PRIMED).await;
    assert_eq!((restored.skipped, restored.unanswered.len()), (9, 0));
    let got = read_on(&restored, id("1.1-0")).await;
    assert_eq!((got.said, got.ended), (vec!["n:1".to_owned(), "n:2".to_owned(), "n:1".to_owned()], true));
    assert_eq!(log.entries().await.len(), 5, "and taken out");
}
