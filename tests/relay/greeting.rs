//! What `initialize` is answered with, once servers are known and before.

use serde_json::{Value, json};

use crate::client::init;
use crate::gateway::TestGateway;
use crate::http_server::{Answer, HttpServer, rpc};
use crate::kit::{REVISION, server_with, session, tools};

async fn greeting(gateway: &TestGateway, path: &str, revision: &str) -> Value {
    let answer = gateway.client(path).post(&init(revision, json!({}))).await;
    assert_eq!(answer.status, 200);
    answer.json().await["result"].clone()
}

/// case-D13: once all servers are known, exactly what they have together is declared, and nothing experimental.
#[tokio::test]
async fn known_servers_are_declared_exactly() {
    let u1 = server_with(r#"{"tools":{},"logging":{},"experimental":{"secret":{}},"vendor":{"x":1}}"#).await;
    let u2 = server_with(r#"{"prompts":{"listChanged":true},"resources":{"subscribe":true}}"#).await;
    u2.on(rpc("prompts/list"), Answer::result(r#"{"prompts":[]}"#));
    let gateway = TestGateway::new().http("u1", u1.url()).http("u2", u2.url()).start().await;
    let before = greeting(&gateway, "/mcp", REVISION).await;
    let all = json!({
        "logging": {}, "completions": {}, "prompts": {"listChanged": true},
        "resources": {"subscribe": true, "listChanged": true}, "tools": {"listChanged": true},
    });
    assert_eq!(before["capabilities"], all, "of unknown servers all is declared");
    let client = session(&gateway).await;
    assert_eq!(tools(&client).await, ["mcp_u1_echo"]);
    client.call(1, "prompts/list", json!({})).await;
    let after = greeting(&gateway, "/mcp", REVISION).await;
    let known = json!({
        "logging": {}, "prompts": {"listChanged": true},
        "resources": {"subscribe": true, "listChanged": true}, "tools": {"listChanged": true},
    });
    assert_eq!(after["capabilities"], known);
    assert_eq!(after["serverInfo"]["name"], "mcpgate");
    let one = greeting(&gateway, "/servers/u1/mcp", REVISION).await;
    assert_eq!(one["capabilities"], json!({"logging": {}, "tools": {"listChanged": true}}));
    let other = greeting(&gateway, "/servers/u2/mcp", REVISION).await;
    let known =
        json!({"prompts": {"listChanged": true}, "resources": {"subscribe": true, "listChanged": true}});
    assert_eq!(other["capabilities"], known);
}

/// case-D13: a server that cannot subscribe does not make subscribing known.
#[tokio::test]
async fn subscribing_is_declared_only_where_a_server_can() {
    let server = server_with(r#"{"resources":{"listChanged":true},"completions":{}}"#).await;
    server.on(rpc("resources/list"), Answer::result(r#"{"resources":[]}"#));
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = session(&gateway).await;
    client.call(1, "resources/list", json!({})).await;
    let known = greeting(&gateway, "/mcp", REVISION).await;
    assert_eq!(known["capabilities"], json!({"completions": {}, "resources": {"listChanged": true}}));
    // 2024-11-05 has no such field.
    let old = greeting(&gateway, "/mcp", "2024-11-05").await;
    assert_eq!(old["capabilities"], json!({"resources": {"listChanged": true}}));
}

/// case-D13: the version asked for is the answer, whatever versions servers speak; an unknown one is answered with
/// the newest of this era (L2).
#[tokio::test]
async fn the_version_asked_for_is_the_answer() {
    let server = HttpServer::start().await;
    server.on(
        rpc("initialize"),
        Answer::result(
            r#"{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"old","version":"1"}}"#,
        ),
    );
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    for (asked, answered) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
        ("", "2025-11-25"),
        ("nonsense", "2025-11-25"),
    ] {
        assert_eq!(greeting(&gateway, "/mcp", asked).await["protocolVersion"], answered, "{asked}");
    }
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let client = gateway.client("/mcp").initialize(revision).await;
        assert_eq!(tools(&client).await, ["mcp_u1_echo"], "{revision}");
    }
}

/// case-D13: instructions are merged, each under its server's name, and bounded.
#[tokio::test]
async fn instructions_are_merged_and_bounded() {
    let (u1, u2, u3) = (HttpServer::start().await, HttpServer::start().await, HttpServer::start().await);
    let long = "long ".repeat(10_000);
    for (server, text) in [(&u1, "Say please."), (&u2, long.as_str())] {
        let result = json!({
            "protocolVersion": REVISION, "capabilities": {"tools": {}},
            "serverInfo": {"name": "x", "version": "1"}, "instructions": text,
        });
        server.on(rpc("initialize"), Answer::result(&result.to_string()));
    }
    let gateway =
        TestGateway::new().http("u1", u1.url()).http("u2", u2.url()).http("u3", u3.url()).start().await;
    assert!(greeting(&gateway, "/mcp", REVISION).await.get("instructions").is_none(), "nothing is known yet");
    tools(&session(&gateway).await).await;
    let merged = greeting(&gateway, "/mcp", REVISION).await;
    let merged = merged["instructions"].as_str().expect("instructions");
    let (first, second) = (merged.find("## u1\nSay please."), merged.find("## u2\nlong "));
    assert!(first.is_some() && first < second, "in the order of the config");
    assert!(!merged.contains("u3"), "a server without instructions has no part");
    assert!(merged.chars().count() <= 16_385, "{}", merged.chars().count());
    let one = greeting(&gateway, "/servers/u1/mcp", REVISION).await;
    assert_eq!(one["instructions"], "Say please.");
}

/// L1: params that are none are refused in words, and no session begins.
#[tokio::test]
async fn initialize_without_its_params_is_refused() {
    let gateway = TestGateway::new().start().await;
    for params in [json!({}), json!({"protocolVersion": 5}), json!([]), json!(null)] {
        let mut message = json!({"jsonrpc": "2.0", "id": "i", "method": "initialize", "params": params});
        if params.is_null() {
            message.as_object_mut().expect("an object").remove("params");
        }
        let answer = gateway.client("/mcp").post(&message).await;
        assert!(answer.header("mcp-session-id").is_none(), "{params}");
        let answer = answer.json().await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("i"), &json!(-32602)), "{answer}");
    }
}
