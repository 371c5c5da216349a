//! Taking leave of a child.

use std::time::{Duration, Instant};

use mcpgate::upstream::Delivery;
use mcpgate::upstream::stdio::Patience;
use serde_json::json;

use super::child::{Child, none_runs, pids, runs};

const SHORT: Patience = Patience { stdin: Duration::from_millis(100), term: Duration::from_millis(100) };

/// T62: a child that ends when its stdin does is not signalled, and the wait is short.
#[tokio::test]
async fn closing_stdin_is_enough_for_most() {
    let opened = Child::new([]).open().await;
    let pids = pids(&opened.value("spawn", json!({})).await);
    let begun = Instant::now();
    let link = opened.link.ended().clone();
    assert!(!link.is_cancelled());
    opened.link.close().await;
    assert!(begun.elapsed() < Duration::from_secs(1));
    assert!(!runs(pids[0]) && link.is_cancelled());
    none_runs(&pids).await;
    opened.link.close().await;
    opened.ended().await;
}

/// T62: SIGTERM ends one that goes on without stdin.
#[tokio::test]
async fn then_comes_sigterm() {
    let opened = Child::new(["--ignore-eof"]).open().await;
    let patience = Patience { term: Duration::from_secs(20), ..SHORT };
    let begun = Instant::now();
    opened.link.close_within(patience).await;
    assert!(begun.elapsed() >= SHORT.stdin && begun.elapsed() < Duration::from_secs(5));
    opened.ended().await;
}

/// T62: SIGKILL ends one that goes on after SIGTERM; all in bounded time.
#[tokio::test]
async fn then_comes_sigkill() {
    let opened = Child::new(["--ignore-eof", "--ignore-term"]).open().await;
    let pids = pids(&opened.value("spawn", json!({})).await);
    let begun = Instant::now();
    opened.link.close_within(SHORT).await;
    assert!(begun.elapsed() >= SHORT.stdin + SHORT.term && begun.elapsed() < Duration::from_secs(2));
    assert!(!runs(pids[0]));
    none_runs(&pids).await;
    opened.ended().await;
}

/// Calls that run when the link is closed fail at once; what was queued before is still written.
#[tokio::test]
async fn closing_fails_what_waits() {
    let opened = Child::new([]).open().await;
    let sleeping = opened.call("sleep", json!({"ms": 60_000}));
    let closing = async {
        opened.value("echo", json!({})).await;
        opened.link.close().await;
    };
    let (sleeping, ()) = tokio::join!(sleeping, closing);
    let failure = sleeping.expect_err("no answer");
    assert_eq!((failure.reason, failure.delivery), ("link_closed", Delivery::Unknown));
    let failure = opened.failure("echo", json!({})).await;
    assert_eq!((failure.reason, failure.delivery), ("link_closed", Delivery::NotDelivered));
}

/// A child that does not read cannot hold the farewell up.
#[tokio::test]
async fn a_full_pipe_does_not_hold_the_farewell_up() {
    let opened = Child::new(["--ignore-term"]).open().await;
    let stuffing = opened.call("stop_reading", json!({"ms": 60_000, "fill": "x".repeat(1000)}));
    let filling = opened.call("echo", json!({"fill": "x".repeat(1 << 20)}));
    let closing = async {
        tokio::task::yield_now().await;
        opened.link.close_within(SHORT).await;
    };
    let begun = Instant::now();
    let (stuffed, filled, ()) = tokio::join!(stuffing, filling, closing);
    assert!(stuffed.is_err() && filled.is_err());
    assert!(begun.elapsed() < Duration::from_secs(2));
    opened.ended().await;
}

/// A link that is dropped ends its child.
#[tokio::test]
async fn dropping_is_closing() {
    let opened = Child::new([]).open().await;
    let pids = pids(&opened.value("spawn", json!({})).await);
    opened.ended().await;
    assert!(!pids.iter().any(|pid| runs(*pid)));
}

/// An opening that is given up ends its child too.
#[tokio::test]
async fn giving_up_an_opening_ends_the_child() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("pid");
    let script = format!("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 1000", file.display());
    let opening = Child::shell(&script).open();
    let written = async {
        loop {
            match std::fs::read_to_string(&file) {
                Ok(pid) => return pid.trim().parse::<u64>().expect("a number"),
                Err(_) => tokio::time::sleep(Duration::from_millis(2)).await,
            }
        }
    };
    let pid = tokio::select! {
        _ = opening => panic!("it opened"),
        pid = written => pid,
    };
    none_runs(&[pid]).await;
}
