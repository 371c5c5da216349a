//! The demo server at the end of a real pipe.

use mcpgate::protocol::revision::Revision;
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
