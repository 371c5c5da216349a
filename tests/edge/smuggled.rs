//! Headers that replicas send each other, sent by a caller.

use http::StatusCode;

use crate::gateway::TestGateway;
use crate::raw::Raw;

/// They are taken out before anything looks at the request: not even their size counts, though the same bytes under
/// another name are too many.
#[tokio::test]
async fn what_replicas_say_to_each_other_is_not_heard_from_a_caller() {
    let gateway = TestGateway::new().with(|s| s.limits.headers = 2 << 10).start().await;
    let client = gateway.client("/mcp").initialize("2025-06-18").await;
    let value = "1".repeat(3 << 10);
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for (name, status) in [
        ("Mcpgate-Hop-Peer", StatusCode::OK),
        ("mcpgate-hop-count", StatusCode::OK),
        ("MCPGATE-HOP-ANYTHING", StatusCode::OK),
        ("Mcpgate-Hops", StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE),
    ] {
        let headers = format!(
            "Content-Type: application/json\r\nMcp-Session-Id: {}\r\n{name}: {value}\r\n{name}: 2\r\n",
            client.session()
        );
        let mut raw = Raw::connect(gateway.address).await;
        raw.request("POST /mcp", &headers, body).await;
        assert_eq!(raw.answer().await.status, status, "{name}");
    }
}
