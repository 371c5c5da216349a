//! The first minute of somebody new.

use serde_json::json;

use crate::binary::Binary;
use crate::client::tool;

/// The first config that people are shown serves a tool.
#[tokio::test]
async fn the_quickstart_config_serves() {
    let config =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/config/quickstart.yaml")).unwrap();
    let gateway = Binary::serve(&config).await;
    let client = gateway.client("/mcp").initialize("2025-11-25").await;
    let listed = client.call(1, "tools/list", json!({})).await;
    assert_eq!(listed["result"]["tools"][0]["name"], "mcp_demo_count_words");
    let counted =
        client.call(2, "tools/call", tool("mcp_demo_count_words", json!({"text": "one two three"}))).await;
    assert_eq!(counted["result"]["structuredContent"]["words"], 3);
}
