//! Nested JSON, from both sides.

use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use serde_json::json;

use crate::gateway::TestGateway;

/// A call of `tool` whose `arguments.deep` is nested so deep.
fn call(tool: &str, open: &str, inner: &str, close: &str, depth: usize) -> String {
    let (open, close) = (open.repeat(depth), close.repeat(depth));
    format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"{tool}","arguments":{{"deep":{open}{inner}{close}}}}}}}"#
    )
}

/// case-I07: from the caller: what is legal goes through as it is, what is too deep is 400 at once, and the process
/// lives.
#[tokio::test]
async fn depth_from_the_caller() {
    let gateway = TestGateway::new().stdio("u1", &[]).start().await;
    let client = gateway.client("/mcp").initialize("2025-06-18").await;
    client.call(1, "tools/call", json!({"name": "mcp_u1_echo", "arguments": {}})).await; // the child has started
    for (open, inner, close) in [("[", "1", "]"), (r#"{"a":"#, "1", "}"), (r#"[{"a":"#, "1", "}]")] {
        for depth in [10, 50] {
            let began = Instant::now();
            let body = call("mcp_u1_echo", open, inner, close, depth);
            let answer = client.send(Method::POST, body).await;
            assert_eq!(answer.status, StatusCode::OK, "{open} {depth}");
            let response = answer.response().await;
            let text = response["result"]["content"][0]["text"].as_str().expect("a text").to_owned();
            assert!(text.contains(&close.repeat(depth)), "{open} {depth}");
            assert!(began.elapsed() < Duration::from_secs(1));
        }
        for depth in [600, 2_000, 100_000] {
            let began = Instant::now();
            let body = call("mcp_u1_echo", open, inner, close, depth);
            let answer = client.send(Method::POST, body).await;
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{open} {depth}");
            let code = answer.json().await["error"]["code"].clone();
            assert!(code == -32600 || code == -32700, "{open} {depth}: {code}");
            assert!(began.elapsed() < Duration::from_secs(1));
        }
    }
    for body in
        ["[".repeat(100_000), "{\"a\":".repeat(100_000), format!("{}{}", "[".repeat(600), "]".repeat(600))]
    {
        assert_eq!(client.send(Method::POST, body).await.status, StatusCode::BAD_REQUEST);
    }
    let quoted =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"x":"{}"}}}}"#, "[{".repeat(5_000));
    assert_eq!(
        client.send(Method::POST, quoted).await.status,
        StatusCode::OK,
        "brackets in a text have no depth"
    );
}

/// case-I07: depth that serde would refuse but the limit allows is legal: payloads are passed on, not built.
#[tokio::test]
async fn depth_within_the_limit_passes() {
    let gateway = TestGateway::new().stdio("u1", &[]).start().await;
    let client = gateway.client("/mcp").initialize("2025-06-18").await;
    for depth in [120, 125, 130, 200, 400] {
        // The scripted server reads arguments with a limit of its own, so the depth goes where it does not look.
        let deep = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        let body = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"ping","params":{{"deep":{deep}}}}}"#);
        let answer = client.send(Method::POST, body).await;
        assert_eq!(answer.status, StatusCode::OK, "{depth}");
        assert_eq!(answer.json().await["id"], 7);
    }
}

/// case-I07: from the server: 200 levels pass byte for byte, 100,000 are an error for this call and no other.
#[tokio::test]
async fn depth_from_the_server() {
    let gateway = TestGateway::new().stdio("u1", &[]).start().await;
    let client = gateway.client("/mcp").initialize("2025-06-18").await;
    client.call(1, "tools/call", json!({"name": "mcp_u1_echo", "arguments": {}})).await; // the child has started
    for depth in [10, 120, 130, 200, 400] {
        let params = json!({"name": "mcp_u1_deep", "arguments": {"depth": depth}});
        let began = Instant::now();
        let answer = client.post(&crate::client::request(7, "tools/call", params)).await;
        let text = answer.text().await;
        let deep = format!(r#""deep":{}{}"#, "[".repeat(depth), "]".repeat(depth));
        assert!(text.contains(&deep) && text.contains(r#""id":7"#), "{depth}: {text}");
        assert!(began.elapsed() < Duration::from_secs(1));
    }
    for depth in [600, 100_000] {
        let params = json!({"name": "mcp_u1_deep", "arguments": {"depth": depth}});
        let began = Instant::now();
        let response = client.call(7, "tools/call", params).await;
        assert_eq!(response["id"], 7, "{depth}");
        assert_eq!(response["error"]["code"], -32603, "{depth}: {response}");
        assert!(began.elapsed() < Duration::from_secs(1), "{depth}: {:?}", began.elapsed());
        let next = client.call(8, "tools/call", json!({"name": "mcp_u1_echo", "arguments": {}})).await;
        assert!(next.get("result").is_some(), "{next}");
    }
}
