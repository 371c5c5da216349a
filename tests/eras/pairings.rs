//! The plainest call and list in each pairing of eras.

use serde_json::json;

use crate::client::tool;
use crate::gateway::TestGateway;
use crate::http_server::{HttpServer, rpc};
use crate::kit::{LEGACY, auto, modern};

/// case-K01: a modern caller reaches a legacy server over a session that the gateway keeps.
#[tokio::test]
async fn a_modern_caller_reaches_a_legacy_server() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new().http("u1", server.url()).adjust(auto).start().await;
    let caller = modern(&gateway, "/mcp");
    let list = caller.call(1, "tools/list", json!({})).await;
    assert_eq!(list["result"]["tools"][0]["name"], "mcp_u1_echo");
    assert_eq!(list["result"]["resultType"], "complete");
    let answer = caller.call("b", "tools/call", tool("mcp_u1_echo", json!({}))).await;
    assert_eq!(answer["id"], "b");
    assert_eq!(answer["result"]["resultType"], "complete");
    assert_eq!(answer["result"]["content"][0]["text"], "ok");
    let call = server.await_request(rpc("tools/call")).await;
    assert!(call.header("mcp-session-id").is_some(), "over a session");
    assert!(
        call.json()["params"]["_meta"].as_object().is_none_or(serde_json::Map::is_empty),
        "{}",
        call.text()
    );
    assert_eq!(server.count(rpc("initialize")), 1);
    assert_eq!(server.count(rpc("server/discover")), 1, "asked once");
}

/// T43, T44: a legacy caller reaches a modern server, whose requests say all that they must.
#[tokio::test]
async fn a_legacy_caller_reaches_a_modern_server() {
    let server = HttpServer::modern().await;
    let gateway = TestGateway::new().http("u1", server.url()).adjust(auto).start().await;
    let caller = gateway.client("/mcp").initialize(LEGACY).await;
    let list = caller.call(1, "tools/list", json!({})).await;
    assert_eq!(list["result"]["tools"][0]["name"], "mcp_u1_echo");
    let answer = caller.call("b", "tools/call", tool("mcp_u1_echo", json!({}))).await;
    assert_eq!(answer["result"]["content"][0]["text"], "ok", "{answer}");
    assert_eq!(server.count(rpc("initialize")), 0);
}

/// X50: a modern caller and a modern server.
#[tokio::test]
async fn a_modern_caller_reaches_a_modern_server() {
    let server = HttpServer::modern().await;
    let gateway = TestGateway::new().http("u1", server.url()).adjust(auto).start().await;
    let caller = modern(&gateway, "/mcp").with(json!({ "roots": {} }));
    let answer = caller.call(1, "tools/call", tool("mcp_u1_echo", json!({}))).await;
    assert_eq!(answer["result"]["content"][0]["text"], "ok", "{answer}");
    let call = server.await_request(rpc("tools/call")).await;
    let declared = &call.json()["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!(*declared, json!({ "roots": {} }));
    assert_eq!(call.header("mcp-name"), Some("echo"), "by the server's own name");
}
