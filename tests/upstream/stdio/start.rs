//! Starting a child and saying hello.

use std::time::{Duration, Instant};

use mcpgate::protocol::error::Layer;
use mcpgate::protocol::revision::Revision;
use mcpgate::upstream::Delivery;
use serde_json::json;

use super::child::Child;

/// L1: the server hears the hello as it was given, then that it is initialized; we hear its introduction.
#[tokio::test]
async fn both_sides_introduce_themselves() {
    let opened = Child::new([]).open().await;
    let introduction = opened.link.introduction();
    assert_eq!(introduction.revision, Revision::V2025_06_18);
    assert_eq!(&*introduction.server_info, r#"{"name":"scripted","version":"1.0"}"#);
    assert_eq!(&*introduction.capabilities, r#"{"tools":{"listChanged":true},"logging":{}}"#);
    assert_eq!(introduction.instructions.as_deref(), Some("Ask for trouble."));

    let heard = opened.value("heard", json!({})).await;
    assert_eq!(heard[0]["capabilities"]["x-own"].to_string(), "1.0");
    assert_eq!(heard[0]["clientInfo"]["name"], "tests");
    assert_eq!(heard[0]["protocolVersion"], "2025-06-18");
    assert_eq!(heard[1]["method"], "notifications/initialized");
}

/// L2: another revision that we speak is accepted, one that we do not speak is not.
#[tokio::test]
async fn the_server_chooses_among_the_revisions_we_speak() {
    let opened = Child::new(["--revision", "2024-11-05"]).open().await;
    assert_eq!(opened.link.introduction().revision, Revision::V2024_11_05);

    let failure = Child::new(["--revision", "2031-01-01"]).fail().await;
    assert_eq!((failure.layer, failure.reason), (Layer::Handshake, "bad_initialize"));
    assert!(failure.message.contains("`scripted`"), "{failure}");
}

#[tokio::test]
async fn a_refusal_is_a_failed_handshake() {
    let failure = Child::new(["--refuse"]).fail().await;
    assert_eq!((failure.layer, failure.reason), (Layer::Handshake, "bad_initialize"));
    assert!(failure.message.contains("-32000") && !failure.message.contains("not today"), "{failure}");
}

/// case-C09: a server may take its time, within `timeouts.start`.
#[tokio::test]
async fn a_slow_start_is_waited_for() {
    let opened = Child::new(["--delay", "300"]).start_within(Duration::from_secs(20)).open().await;
    assert_eq!(opened.value("echo", json!({"a": 1})).await, json!({"a": 1}));
}

/// case-C09: beyond that it is ended, and the failure says what to do.
#[tokio::test]
async fn a_start_beyond_the_limit_fails() {
    let (begun, limit) = (Instant::now(), Duration::from_millis(300));
    let failure = Child::new(["--mute", "--stderr", "downloading\n"]).start_within(limit).fail().await;
    assert_eq!((failure.layer, failure.reason), (Layer::Handshake, "start_timeout"));
    assert_eq!(failure.delivery, Delivery::NotDelivered);
    assert!(failure.message.contains("1 line") && failure.message.contains("timeouts.start"), "{failure}");
    assert!(begun.elapsed() >= limit && begun.elapsed() < limit * 10);
}

/// case-C03: a child that dies in the handshake fails it at once, with its status.
#[tokio::test]
async fn a_death_in_the_handshake_is_told() {
    let failure = Child::new(["--exit", "3", "--stderr", "no key\nbye\n"]).fail().await;
    assert_eq!((failure.layer, failure.reason), (Layer::Process, "child_exited"));
    assert_eq!(failure.delivery, Delivery::NotDelivered);
    assert_eq!(failure.message, "The process of server `scripted` exited with status 3 (2 lines on stderr).");
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let failure = Child::command("/nowhere/no-such-program", ["--key", "secret"]).fail().await;
    assert_eq!((failure.layer, failure.reason), (Layer::Process, "spawn_failed"));
    assert!(failure.message.contains("`no-such-program` was not found"), "{failure}");
    assert!(!failure.message.contains("secret"), "{failure}");

    let failure = Child::new([]).cwd("/nowhere").fail().await;
    assert!(failure.message.contains("`cwd`"), "{failure}");
}

/// case-C11: the child sees the allow-list and what is configured, not what else the gateway has.
#[tokio::test]
async fn the_environment_is_an_allow_list() {
    let allowed = |name: &str| {
        ["PATH", "HOME", "USER", "LANG", "LANGUAGE", "TMPDIR", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR"]
            .contains(&name)
            || name.starts_with("LC_")
            || name.to_uppercase().ends_with("_PROXY")
            || name == "NODE_EXTRA_CA_CERTS"
    };
    assert!(std::env::vars().any(|(name, _)| !allowed(&name)), "there is something to hide");
    let opened = Child::new([]).env("DECLARED", "yes").open().await;
    let mut environment = opened.value("environ", json!({})).await;
    let environment = environment.as_object_mut().expect("variables");
    assert_eq!(environment.remove("DECLARED"), Some(json!("yes")));
    assert_eq!(environment["PATH"], std::env::var("PATH").expect("a PATH"));
    assert!(environment.keys().all(|name| allowed(name)), "{environment:?}");
}
