//! What is watched on one connection.

use super::*;

fn limits() -> LimitSettings {
    LimitSettings {
        header_read: Duration::from_secs(30),
        body_read: Duration::from_secs(40),
        ..LimitSettings::default()
    }
}

async fn overdue_after(watch: &Watch) -> Duration {
    let began = Instant::now();
    watch.overdue(&limits()).await;
    began.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_head_has_its_time_from_the_opening_on() {
    assert_eq!(overdue_after(&Watch::new()).await, Duration::from_secs(30));
}

/// case-J09: the time between two requests is not the time of a head.
#[tokio::test(start_paused = true)]
async fn a_connection_may_lie_unused_for_long_but_not_for_ever() {
    let watch = Watch::new();
    drop(watch.serve());
    assert_eq!(overdue_after(&watch).await, UNUSED);
}

#[tokio::test(start_paused = true)]
async fn an_answer_may_take_as_long_as_it_takes() {
    let watch = Watch::new();
    let serving = watch.serve();
    let hour = Duration::from_hours(1);
    assert!(tokio::time::timeout(hour, watch.overdue(&limits())).await.is_err());
    drop(serving);
    // Nothing went either way for an hour, and now nothing is being served either.
    assert_eq!(overdue_after(&watch).await, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn the_next_head_has_its_time_from_its_first_byte_on() {
    let watch = Watch::new();
    drop(watch.serve());
    tokio::time::sleep(Duration::from_secs(100)).await;
    watch.bytes_came();
    tokio::time::sleep(Duration::from_secs(10)).await;
    watch.bytes_came();
    assert_eq!(overdue_after(&watch).await, Duration::from_secs(20));
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_takes_nothing_is_overdue_and_one_that_takes_a_little_is_not() {
    let watch = Watch::new();
    let _serving = watch.serve();
    for _ in 0..10 {
        watch.note_write(&Poll::Pending);
        tokio::time::sleep(Duration::from_secs(30)).await;
        watch.note_write(&Poll::Pending);
        watch.note_write(&Poll::Ready(Ok(1)));
    }
    watch.note_write(&Poll::Pending);
    assert_eq!(overdue_after(&watch).await, Duration::from_secs(40));
}
