//! The end of a child that nobody asked for.

use std::time::{Duration, Instant};

use mcpgate::protocol::error::Layer;
use mcpgate::upstream::Delivery;
use serde_json::json;

use super::child::{Child, none_runs, pids, runs};

/// case-C03: all calls that wait fail at once, with the status; later ones at once too, as surely not run.
#[tokio::test]
async fn an_exit_fails_every_call_at_once() {
    let opened = Child::new([]).open().await;
    let sleeping = opened.call("sleep", json!({"ms": 60_000}));
    let exiting = opened.call("exit", json!({"code": 3}));
    let begun = Instant::now();
    let (sleeping, exiting) = tokio::join!(sleeping, exiting);
    assert!(begun.elapsed() < Duration::from_secs(1));
    for failure in [sleeping, exiting].map(|r| r.expect_err("no answer")) {
        assert_eq!((failure.layer, failure.reason), (Layer::Process, "child_exited"));
        assert_eq!(failure.delivery, Delivery::Unknown);
        assert!(failure.message.contains("exited with status 3"), "{failure}");
    }

    assert!(opened.link.is_down());
    let failure = opened.failure("echo", json!({})).await;
    assert_eq!((failure.reason, failure.delivery), ("child_exited", Delivery::NotDelivered));
    assert!(opened.link.notify("{}".into()).await.is_err());
    opened.ended().await;
}

/// case-C03: a death by signal names the signal.
#[tokio::test]
async fn a_signal_is_named() {
    let opened = Child::new([]).open().await;
    let failure = opened.failure("abort", json!({})).await;
    assert!(failure.message.contains("was ended by signal 6"), "{failure}");
}

/// The rest of the group ends with its leader.
#[tokio::test]
async fn grandchildren_end_with_the_child() {
    let opened = Child::new([]).open().await;
    let pids = pids(&opened.value("spawn", json!({})).await);
    assert!(pids.iter().all(|pid| runs(*pid)));
    opened.failure("exit", json!({"code": 0})).await;
    none_runs(&pids).await;
    opened.ended().await;
}

const HELLO: &str = r#"read hello; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}'; read initialized; "#;

/// A descendant that left the group may hold the pipes open; the exit is noticed all the same.
#[tokio::test]
async fn a_pipe_held_open_by_a_stranger_delays_nothing() {
    let script = format!("{HELLO} setsid sleep 3 & read call; exit 5");
    let opened = Child::shell(&script).open().await;
    let begun = Instant::now();
    let failure = opened.failure("echo", json!({})).await;
    assert!(failure.message.contains("status 5"), "{failure}");
    assert!(begun.elapsed() < Duration::from_secs(1));
    assert!(opened.link.is_down());
}

/// What a child wrote before its end is delivered, even if the end of its output does not show.
#[tokio::test]
async fn last_words_are_heard() {
    let answer =
        r#"printf '{"jsonrpc":"2.0","id":2,"result":"'; head -c 900000 /dev/zero | tr '\0' x; echo '"}'"#;
    let script = format!("{HELLO} setsid sleep 3 & read call; {answer}");
    for _ in 0..5 {
        let opened = Child::shell(&script).open().await;
        let response = opened.call("echo", json!({})).await.expect("an answer");
        assert_eq!(response.result().map(str::len), Some(900_002));
        opened.ended().await;
    }
}

/// A server without output can answer nothing: its calls fail and it is ended.
#[tokio::test]
async fn a_closed_output_is_an_end() {
    let opened = Child::shell(&format!("{HELLO} read call; exec >&-; cat; sleep 1000")).open().await;
    let failure = opened.failure("echo", json!({})).await;
    assert_eq!((failure.reason, failure.delivery), ("output_closed", Delivery::Unknown));
    assert!(opened.link.is_down());
    opened.link.close_within(mcpgate::upstream::stdio::Patience::NONE).await;
    opened.ended().await;
}

/// A server that reads no more can be asked nothing: the link is replaced.
#[tokio::test]
async fn a_closed_input_is_an_end() {
    let script = format!("{HELLO} exec <&-; sleep 0.2; exit 4");
    let opened = Child::shell(&script).open().await;
    let mut failure = opened.failure("echo", json!({})).await;
    // The first may have been written before the pipe was closed.
    while failure.delivery == Delivery::Unknown {
        failure = opened.failure("echo", json!({})).await;
    }
    assert!(opened.link.is_down());
    assert_eq!(failure.layer, Layer::Process);
    opened.ended().await;
}
