//! What a real server says passes unchanged through its own endpoint: the same words, fields and order.

use serde_json::{Value, json};

use crate::client::{Client, tool};
use crate::kit::Kit;

#[tokio::test]
async fn lists_and_results_are_those_of_the_server() {
    let Some(kit) = Kit::ready().await else { return };
    let wired = kit.open().await;
    let direct = client_of(&wired.direct).initialize("2025-11-25").await;
    for server in ["http", "stdio"] {
        let through = wired.gateway.client(&format!("/servers/{server}/mcp")).initialize("2025-11-25").await;
        for (method, params) in [
            ("tools/list", json!({})),
            ("prompts/list", json!({})),
            ("resources/list", json!({})),
            ("resources/templates/list", json!({})),
            ("tools/call", tool("test_multiple_content_types", json!({}))),
            ("tools/call", tool("test_error_handling", json!({}))),
            ("tools/call", tool("json_schema_2020_12_tool", json!({"to": {"lines": ["a"]}, "grams": 1}))),
            ("prompts/get", json!({"name": "test_prompt_with_image"})),
            ("resources/read", json!({"uri": "test://static-binary"})),
            ("no/such", json!({"a": [1, 2.50]})),
        ] {
            let expected = said(&direct, method, &params).await;
            assert_eq!(said(&through, method, &params).await, expected, "{server}: {method} {params}");
        }
    }
}

/// The result or the error, as text: the order of the fields counts.
async fn said(client: &Client, method: &str, params: &Value) -> String {
    let answer = client.call("id", method, params.clone()).await;
    assert_eq!(answer["id"], "id");
    json!([answer["result"], answer["error"]]).to_string()
}

fn client_of(url: &str) -> Client {
    let (address, path) = url.strip_prefix("http://").and_then(|rest| rest.split_once('/')).unwrap();
    Client::new(address.parse().unwrap(), &format!("/{path}")).header("host", address)
}
