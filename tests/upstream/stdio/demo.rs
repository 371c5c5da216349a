//! The demo server at the end of a real pipe.

use mcpgate::protocol::revision::Revision;
use mcpgate::upstream::Known;
use serde_json::json;

use super::child::Child;

#[tokio::test]
async fn the_demo_server_serves() {
    let opened = Child::new(["demo"]).open().await;
    assert_eq!(opened.link.introduction().revision, Revision::V2025_06_18);
    let response = opened.call("count_words", json!({"text": "hello mcp world"})).await.expect("an answer");
    let counts = r#""structuredContent":{"words":3,"characters":15,"lines":1}"#;
    assert!(response.result().expect("a result").contains(counts), "{response:?}");
    opened.link.close().await;
    opened.ended().await;
}

/// L13: it speaks both eras, so that a gateway takes it for modern.
#[tokio::test]
async fn the_demo_server_is_modern_too() {
    let opened = Child::new(["demo"]).known(Known::Nothing).open().await;
    assert_eq!(opened.link.introduction().revision, Revision::V2026_07_28);
    let response = opened.call("count_words", json!({"text": "hello mcp world"})).await.expect("an answer");
    assert!(response.result().expect("a result").contains(r#""words":3"#), "{response:?}");
}
