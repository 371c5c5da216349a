//! Extensions of the protocol: which are declared, to whom, and with which settings.

use serde_json::{Value, json};

use crate::client::{init, tool};
use crate::gateway::TestGateway;
use crate::http_server::{Answer, HttpServer, rpc};
use crate::kit::{LEGACY, auto, modern};

const UI: &str = "io.modelcontextprotocol/ui";
const TASKS: &str = "io.modelcontextprotocol/tasks";
const OTHER: &str = "com.example/rooms";

/// A legacy server with these extensions, and a tool that has a page.
async fn legacy_with(extensions: Value) -> HttpServer {
    let server = HttpServer::start().await;
    let introduction = json!({
        "protocolVersion": LEGACY, "capabilities": { "tools": {}, "resources": {}, "extensions": extensions },
        "serverInfo": { "name": "scripted", "version": "1" },
    });
    server.on(rpc("initialize"), Answer::result(&introduction.to_string()));
    server.on(rpc("tools/list"), Answer::result(&json!({ "tools": [page_tool()] }).to_string()));
    server.on(rpc("resources/list"), Answer::result(r#"{"resources":[]}"#));
    server.on(rpc("resources/templates/list"), Answer::result(r#"{"resourceTemplates":[]}"#));
    server.on(rpc("resources/read"), Answer::result(&page().to_string()));
    server
}

fn page_tool() -> Value {
    json!({ "name": "draw", "inputSchema": { "type": "object" }, "_meta": {
        "ui": { "resourceUri": "ui://draw/page", "visibility": ["model", "app"] } } })
}

fn page() -> Value {
    json!({ "contents": [{ "uri": "ui://draw/page", "mimeType": "text/html;profile=mcp-app", "text": "<p>",
        "_meta": { "ui": { "csp": { "connectDomains": ["https://a.example.com"] }, "prefersBorder": true } } }] })
}

async fn declared(gateway: &TestGateway, path: &str) -> Value {
    let client = gateway.client(path).initialize(LEGACY).await;
    client.call(1, "tools/list", json!({})).await;
    let answer = gateway.client(path).post(&init(LEGACY, json!({}))).await.json().await;
    answer["result"]["capabilities"]["extensions"].clone()
}

/// L14, G1: declared is what a server has and the gateway can carry; settings if all say the same.
#[tokio::test]
async fn callers_see_the_extensions_that_servers_have() {
    let all = json!({ UI: { "n": 1 }, OTHER: { "rooms": 2 }, TASKS: {} });
    let (one, two) = (legacy_with(all).await, legacy_with(json!({ UI: { "n": 2 } })).await);
    let gateway = TestGateway::new().http("u1", one.url()).http("u2", two.url()).start().await;
    assert_eq!(declared(&gateway, "/mcp").await, json!({ UI: {} }), "two servers that differ");
    assert_eq!(declared(&gateway, "/servers/u1/mcp").await, json!({ UI: { "n": 1 }, OTHER: { "rooms": 2 } }));

    let listed =
        TestGateway::new().with(|s| s.extensions = vec![OTHER.into()]).http("u1", one.url()).start().await;
    assert_eq!(declared(&listed, "/mcp").await, json!({ UI: { "n": 1 }, OTHER: { "rooms": 2 } }), "V7");

    let none = HttpServer::start().await;
    let gateway = TestGateway::new().http("u1", none.url()).start().await;
    assert_eq!(declared(&gateway, "/mcp").await, Value::Null);
}

/// G28: a server hears of the extensions that its caller declared and the gateway can carry to it.
#[tokio::test]
async fn servers_hear_of_extensions_that_can_be_carried() {
    let given =
        json!({ "extensions": { UI: { "mimeTypes": ["text/html"] }, TASKS: {}, OTHER: {} }, "roots": {} });
    let (old, new) = (legacy_with(json!({})).await, HttpServer::modern().await);
    let gateway = TestGateway::new()
        .http("u1", old.url())
        .adjust(auto)
        .http("u2", new.url())
        .adjust(auto)
        .start()
        .await;
    let ui = json!({ UI: { "mimeTypes": ["text/html"] } });

    let legacy = gateway.client("/mcp").initialize_with(LEGACY, given.clone()).await;
    legacy.call(1, "tools/call", tool("mcp_u1_draw", json!({}))).await;
    let heard = old.await_request(rpc("initialize")).await.json()["params"]["capabilities"].clone();
    assert_eq!(heard, json!({ "extensions": ui, "roots": {} }));
    legacy.call(2, "tools/call", tool("mcp_u2_echo", json!({}))).await;
    let heard = |seen: &crate::http_server::Seen| {
        seen.json()["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"].clone()
    };
    let first = new.await_request(rpc("tools/call")).await;
    assert_eq!(heard(&first)["extensions"], ui, "X20: tasks are not for a legacy caller");

    let modern = modern(&gateway, "/mcp").with(given);
    modern.call(1, "tools/call", tool("mcp_u2_echo", json!({}))).await;
    let seen = new.await_requests(2, rpc("tools/call")).await.pop().unwrap();
    let mut both = ui.clone();
    both[TASKS] = json!({});
    assert_eq!(heard(&seen), json!({ "extensions": both, "roots": {} }));
    let alone = crate::kit::ModernClient { client: gateway.client("/servers/u2/mcp"), ..modern };
    alone.call(1, "tools/call", tool("echo", json!({}))).await;
    let seen = new.await_requests(3, rpc("tools/call")).await.pop().unwrap();
    assert_eq!(heard(&seen)["extensions"][OTHER], json!({}), "one server alone");
}

/// G28: a modern caller's capabilities pass byte for byte where all of them can.
#[tokio::test]
async fn what_passes_whole_is_not_touched() {
    let server = HttpServer::modern().await;
    let gateway = TestGateway::new().http("u1", server.url()).adjust(auto).start().await;
    let caller = modern(&gateway, "/mcp");
    let mut request = caller.request(1, "tools/call", tool("mcp_u1_echo", json!({}))).to_string();
    let capabilities = r#"{ "extensions" : {"io.modelcontextprotocol/ui":{ "n":1.0 }} , "roots":{} }"#;
    request = request.replace(
        r#""io.modelcontextprotocol/clientCapabilities":{}"#,
        &format!(r#""io.modelcontextprotocol/clientCapabilities":{capabilities}"#),
    );
    let client = caller.mirrored(&serde_json::from_str(&request).unwrap());
    let answer = client.send(http::Method::POST, request).await.response().await;
    assert_eq!(answer["result"]["content"][0]["text"], "ok", "{answer}");
    assert!(server.await_request(rpc("tools/call")).await.text().contains(capabilities));
}

/// G8: pages of tools pass as they are where one server stands alone, in both eras.
#[tokio::test]
async fn a_page_passes_on_a_single_server_endpoint() {
    let server = legacy_with(json!({ UI: {} })).await;
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let legacy =
        gateway.client("/servers/u1/mcp").initialize_with(LEGACY, json!({ "extensions": { UI: {} } })).await;
    let list = legacy.call(1, "tools/list", json!({})).await;
    assert_eq!(list["result"]["tools"][0], page_tool());
    let read = legacy.call(2, "resources/read", json!({ "uri": "ui://draw/page" })).await;
    assert_eq!(read["result"], page());
    let modern = modern(&gateway, "/servers/u1/mcp").with(json!({ "extensions": { UI: {} } }));
    let list = modern.call(1, "tools/list", json!({})).await;
    assert_eq!(list["result"]["tools"][0]["_meta"], page_tool()["_meta"]);
    let read = modern.call(2, "resources/read", json!({ "uri": "ui://draw/page" })).await;
    assert_eq!(read["result"]["contents"], page()["contents"]);
    // On a merged endpoint the only server with resources is asked too.
    let merged = gateway.client("/mcp").initialize(LEGACY).await;
    let read = merged.call(3, "resources/read", json!({ "uri": "ui://draw/page" })).await;
    assert_eq!(read["result"], page());
}

/// L14, J1: a modern caller is told of the tasks of a modern server, and of what else passes; not of those of 2025-11-25.
#[tokio::test]
async fn modern_callers_discover_extensions() {
    let (old, new) = (legacy_with(json!({ UI: { "n": 1 }, TASKS: {} })).await, HttpServer::modern().await);
    let capabilities = json!({ "tools": {}, "extensions": { TASKS: {}, OTHER: {} } });
    let discovered = json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"],
        "capabilities": capabilities, "ttlMs": 0, "cacheScope": "private" });
    new.on(rpc("server/discover"), Answer::result(&discovered.to_string()));
    let gateway = TestGateway::new()
        .http("u1", old.url())
        .adjust(auto)
        .http("u2", new.url())
        .adjust(auto)
        .start()
        .await;
    let of = async |path: &str| {
        let answer = modern(&gateway, path).call(1, "server/discover", json!({})).await;
        answer["result"]["capabilities"]["extensions"].clone()
    };
    assert_eq!(of("/mcp").await, json!({ UI: { "n": 1 }, TASKS: {} }));
    assert_eq!(of("/servers/u1/mcp").await, json!({ UI: { "n": 1 } }), "no tasks between the eras");
    assert_eq!(of("/servers/u2/mcp").await, json!({ TASKS: {}, OTHER: {} }));
}
