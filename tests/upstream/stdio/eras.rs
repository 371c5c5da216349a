//! Finding out which era a child speaks.

use std::sync::Arc;
use std::time::Duration;

use mcpgate::protocol::error::Layer;
use mcpgate::protocol::revision::Revision;
use mcpgate::upstream::{Introduction, Known};
use serde_json::{Value, json};

use super::child::{Child, Opened};

const STARTED: &str = r#"mcpgate_upstream_process_starts_total{server="scripted"}"#;

/// Of this the patience with `server/discover` is a twentieth.
const START: Duration = Duration::from_secs(4);
/// More than the patience, in milliseconds.
const LATE: &str = "600";

/// A child of which nothing is known.
fn unknown<const N: usize>(args: [&str; N]) -> Child {
    Child::new(args).known(Known::Nothing).start_within(START)
}

fn introduced(revision: Revision) -> Arc<Introduction> {
    let (capabilities, server_info) = ("{}".into(), "{}".into());
    Arc::new(Introduction { revision, capabilities, server_info, instructions: None })
}

/// What the child was sent, but for the question for it.
async fn sent(opened: &Opened) -> Value {
    let mut methods = opened.value("methods", json!({})).await;
    assert_eq!(methods.as_array_mut().unwrap().pop(), Some(json!("tools/call")));
    methods
}

fn revision(opened: &Opened) -> Revision {
    opened.link.introduction().revision
}

/// T64: a `DiscoverResult` makes it modern; it is never initialized.
#[tokio::test]
async fn a_modern_child_is_not_initialized() {
    for era in ["modern", "dual"] {
        let opened = unknown(["--era", era]).open().await;
        let said = opened.link.introduction();
        assert_eq!(said.revision, Revision::V2026_07_28);
        assert_eq!(&*said.server_info, r#"{"name":"scripted","version":"1.0"}"#);
        assert_eq!(said.instructions.as_deref(), Some("Ask for trouble."));
        assert_eq!(sent(&opened).await, json!(["server/discover"]), "{era}");
    }
}

/// T64: any other answer leads to `initialize`, on the same child; no code is special.
#[tokio::test]
async fn any_other_answer_leads_to_initialize() {
    for discover in ["answer", "refuse", "blank", "junk"] {
        let opened = unknown(["--discover", discover]).open().await;
        assert_eq!(revision(&opened), Revision::V2025_06_18, "{discover}");
        let expected = json!(["server/discover", "initialize", "notifications/initialized"]);
        assert_eq!(sent(&opened).await, expected, "{discover}");
        assert_eq!(opened.sample(STARTED), 1.0, "{discover}");
    }
}

/// T64: an answer that is no response at all is an answer.
#[tokio::test]
async fn an_answer_that_is_no_response_leads_to_initialize() {
    let script = r#"
        read question; echo '{"jsonrpc":"2.0","id":1,"result":{},"error":7}'
        read hello; echo '{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}'
        read confirmation; sleep 60"#;
    let opened = Child::shell(script).known(Known::Nothing).open().await;
    assert_eq!(revision(&opened), Revision::V2025_06_18);
}

/// T64: lines that are no messages are passed over; the answer behind them counts.
#[tokio::test]
async fn junk_before_the_answer_is_passed_over() {
    let opened = unknown(["--era", "modern", "--discover", "junk"]).open().await;
    assert_eq!(revision(&opened), Revision::V2026_07_28);
}

/// T64: -32022 is the answer of a modern server. It is not initialized, though it would have agreed.
#[tokio::test]
async fn a_newer_server_is_not_initialized() {
    let failure = unknown(["--discover", "newer"]).fail().await;
    assert_eq!((failure.layer, failure.reason), (Layer::Handshake, "unsupported_revision"));
    assert!(failure.message.contains("2031-01-01") && failure.message.contains("2026-07-28"), "{failure}");
}

/// T64: a child that says nothing is initialized too, after a while.
#[tokio::test]
async fn silence_leads_to_initialize() {
    let opened = unknown(["--discover", "mute"]).open().await;
    assert_eq!(revision(&opened), Revision::V2025_06_18);
    let expected = json!(["server/discover", "initialize", "notifications/initialized"]);
    assert_eq!(sent(&opened).await, expected);
}

/// T64: a `DiscoverResult` that comes late still counts where `initialize` was refused, or not answered.
#[tokio::test]
async fn a_late_modern_answer_counts() {
    let opened = unknown(["--era", "modern", "--discover-delay", LATE]).open().await;
    assert_eq!(revision(&opened), Revision::V2026_07_28);
    assert_eq!(sent(&opened).await, json!(["server/discover", "initialize"]));

    let opened = unknown(["--era", "dual", "--mute", "--discover-delay", LATE]).open().await;
    assert_eq!(revision(&opened), Revision::V2026_07_28);
    assert_eq!(sent(&opened).await, json!(["server/discover", "initialize"]));
}

/// T64: whichever good answer comes first decides.
#[tokio::test]
async fn the_first_good_answer_decides() {
    let opened = unknown(["--era", "dual", "--discover-delay", LATE]).open().await;
    assert_eq!(revision(&opened), Revision::V2025_06_18);
    let expected = json!(["server/discover", "initialize", "notifications/initialized"]);
    assert_eq!(sent(&opened).await, expected);
}

/// case-C09: a slow starter finds both questions; it is what it answers first.
#[tokio::test]
async fn a_slow_start_changes_nothing() {
    let opened = unknown(["--era", "modern", "--delay", LATE]).open().await;
    assert_eq!(revision(&opened), Revision::V2026_07_28);
    let opened = unknown(["--era", "legacy", "--delay", LATE]).open().await;
    assert_eq!(revision(&opened), Revision::V2025_06_18);
    assert_eq!(opened.sample(STARTED), 1.0);
}

/// T64: a child that ends over a message it does not know is started once more and initialized at once.
#[tokio::test]
async fn a_child_that_ends_over_the_question_is_started_again() {
    let opened = unknown(["--discover", "die"]).open().await;
    assert_eq!(revision(&opened), Revision::V2025_06_18);
    assert_eq!(sent(&opened).await, json!(["initialize", "notifications/initialized"]));
    assert_eq!(opened.sample(STARTED), 2.0);
}

/// case-C03: if it ends again, that is told, with its status.
#[tokio::test]
async fn a_child_that_ends_twice_has_failed() {
    let failure = unknown(["--exit", "5"]).fail().await;
    assert_eq!((failure.layer, failure.reason), (Layer::Process, "child_exited"));
    assert!(failure.message.contains("status 5"), "{failure}");
}

/// A refusal is told as such, not as slowness, though the other answer was waited for.
#[tokio::test]
async fn a_refusal_is_told_though_more_was_hoped_for() {
    let limit = Duration::from_millis(400);
    let failure = unknown(["--refuse", "--discover", "mute"]).start_within(limit).fail().await;
    assert_eq!((failure.layer, failure.reason), (Layer::Handshake, "bad_initialize"));
    let failure = unknown(["--mute", "--discover", "mute"]).start_within(limit).fail().await;
    assert_eq!((failure.layer, failure.reason), (Layer::Handshake, "start_timeout"));
    assert!(failure.message.contains("neither `server/discover` nor `initialize`"), "{failure}");
}

/// A server that is configured as modern must be so.
#[tokio::test]
async fn a_child_that_must_be_modern_is_not_initialized() {
    let pinned = |args: [&'static str; 2]| Child::new(args).pinned(Revision::V2026_07_28);
    let opened = pinned(["--era", "modern"]).open().await;
    assert_eq!(revision(&opened), Revision::V2026_07_28);
    for discover in ["answer", "blank"] {
        let failure = pinned(["--discover", discover]).fail().await;
        assert_eq!((failure.layer, failure.reason), (Layer::Handshake, "bad_discover"));
        assert!(
            failure.message.contains("2026-07-28") && failure.message.contains("`scripted`"),
            "{failure}"
        );
    }
    let failure = pinned(["--discover", "die"]).fail().await;
    assert_eq!((failure.layer, failure.reason), (Layer::Process, "child_exited"));
    let failure = pinned(["--discover", "mute"]).start_within(Duration::from_millis(300)).fail().await;
    assert_eq!(failure.reason, "start_timeout");
}

/// A server that is configured as legacy is not asked.
#[tokio::test]
async fn a_child_that_must_be_legacy_is_not_asked() {
    let opened = Child::new(["--era", "dual"]).pinned(Revision::V2025_11_25).open().await;
    assert_eq!(sent(&opened).await, json!(["initialize", "notifications/initialized"]));
}

/// T66: what is known is used, and found out anew where it is wrong.
#[tokio::test]
async fn what_was_known_may_be_wrong() {
    let opened = Child::new([]).known(Known::Legacy).open().await;
    assert_eq!(sent(&opened).await, json!(["initialize", "notifications/initialized"]));

    let opened = Child::new(["--era", "modern"]).known(Known::Legacy).open().await;
    assert_eq!(revision(&opened), Revision::V2026_07_28);
    assert_eq!(sent(&opened).await, json!(["initialize", "server/discover"]));

    let modern = Known::Modern(introduced(Revision::V2026_07_28));
    let opened = Child::new([]).known(modern).open().await;
    assert_eq!(revision(&opened), Revision::V2025_06_18);
}
