//! What several of these tests need.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Client, tool};
use crate::gateway::TestGateway;
use crate::http_server::{Answer, HttpServer, rpc};

/// The revision most tests speak.
pub(crate) const REVISION: &str = "2025-11-25";

/// A client of `/mcp` with a session.
pub(crate) async fn session(gateway: &TestGateway) -> Client {
    gateway.client("/mcp").initialize(REVISION).await
}

/// The same with client capabilities.
pub(crate) async fn session_with(gateway: &TestGateway, capabilities: Value) -> Client {
    gateway.client("/mcp").initialize_with(REVISION, capabilities).await
}

/// Calls a tool and gives the whole response.
pub(crate) async fn call(client: &Client, id: impl Into<Value>, name: &str, arguments: Value) -> Value {
    client.call(id, "tools/call", tool(name, arguments)).await
}

/// The names in a list response.
pub(crate) fn names(response: &Value) -> Vec<String> {
    let tools = response["result"]["tools"].as_array();
    let tools = tools.unwrap_or_else(|| panic!("a list of tools: {response}"));
    tools.iter().map(|t| t["name"].as_str().expect("a name").to_owned()).collect()
}

/// The tools a client sees.
pub(crate) async fn tools(client: &Client) -> Vec<String> {
    names(&client.call("list", "tools/list", json!({})).await)
}

/// What a scripted stdio tool answered with.
pub(crate) fn value(response: &Value) -> &Value {
    let value = &response["result"]["structuredContent"]["value"];
    assert!(!value.is_null(), "a scripted result: {response}");
    value
}

/// What the gateway says of a failure of its own.
pub(crate) fn failure(response: &Value) -> &Value {
    let said = &response["error"]["data"]["mcpgate"];
    assert!(said.is_object(), "an error of the gateway: {response}");
    said
}

/// A server that declares these capabilities.
pub(crate) async fn server_with(capabilities: &str) -> HttpServer {
    let server = HttpServer::start().await;
    introduces(&server, capabilities);
    server
}

/// From now on the server declares these capabilities.
pub(crate) fn introduces(server: &HttpServer, capabilities: &str) {
    let capabilities = capabilities.to_owned();
    server.on_each(rpc("initialize"), move |seen| {
        let version = seen.param("protocolVersion").expect("a version");
        Answer::result(&format!(
            r#"{{"protocolVersion":{version},"capabilities":{capabilities},"serverInfo":{{"name":"scripted","version":"1"}}}}"#
        ))
    });
}

/// From now on the server lists these tools, by name.
pub(crate) fn offers(server: &HttpServer, names: &[&str]) {
    let tools: Vec<Value> =
        names.iter().map(|n| json!({"name": n, "inputSchema": {"type": "object"}})).collect();
    server.on(rpc("tools/list"), Answer::result(&json!({ "tools": tools }).to_string()));
}

/// Waits until something holds; a test fails if it does not come about.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !holds().await {
        assert!(Instant::now() < deadline, "in time: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
