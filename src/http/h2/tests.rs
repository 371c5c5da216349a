//! How long an HTTP/2 connection may lie unused.

use super::*;

/// case-J09: a connection is kept as long as a stream is open and for a time after it; not for ever.
#[tokio::test(start_paused = true)]
async fn a_connection_without_streams_ends_in_time() {
    let limits = LimitSettings::default();
    let streams = Streams::new(&limits);
    let second = Duration::from_secs(1);
    let begun = Instant::now();
    streams.overdue(&limits).await;
    assert!(begun.elapsed() < limits.header_read + second, "none came: {:?}", begun.elapsed());

    let open = streams.open();
    let mut overdue = Box::pin(streams.overdue(&limits));
    assert!(timeout(10 * UNUSED, &mut overdue).await.is_err(), "it is in use");
    drop(open);
    assert!(timeout(UNUSED - second, &mut overdue).await.is_err(), "it may be used again");
    drop(streams.open());
    assert!(timeout(UNUSED - second, &mut overdue).await.is_err(), "it was");
    assert!(timeout(2 * second, &mut overdue).await.is_ok());
}
