//! `server/discover`: what the gateway is to a modern caller.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use crate::gateway::TestGateway;
use crate::http_server::{Answer, Gate, HttpServer, discovered, hold, http, rpc};
use crate::kit::{MODERN, auto, modern};

async fn discover(gateway: &TestGateway, path: &str) -> Value {
    modern(gateway, path).call("d", "server/discover", json!({})).await
}

/// L9, L10, M12: the shape of the answer, built from what a modern server said.
#[tokio::test]
async fn says_what_its_servers_do() {
    let server = HttpServer::modern().await;
    let mut said = discovered(&json!({ "tools": { "listChanged": true }, "completions": {} }));
    said["instructions"] = json!("Ask nicely.");
    server.on(rpc("server/discover"), Answer::result(&said.to_string()));
    let gateway = TestGateway::new().http("u1", server.url()).adjust(auto).start().await;
    let answer = discover(&gateway, "/mcp").await;
    assert_eq!(answer["id"], "d");
    let result = &answer["result"];
    assert_eq!(result["resultType"], "complete");
    assert_eq!(result["supportedVersions"], json!([MODERN]));
    assert_eq!(result["capabilities"], json!({ "completions": {}, "tools": { "listChanged": true } }));
    assert!(result["instructions"].as_str().unwrap().ends_with("## u1\nAsk nicely."), "{result}");
    assert!(result["ttlMs"].as_u64().unwrap() > 0, "{result}");
    assert_eq!(result["cacheScope"], "private");
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "mcpgate");
    let again = discover(&gateway, "/mcp").await;
    assert_eq!(again["result"], answer["result"]);
    assert_eq!(server.count(rpc("server/discover")), 1, "asked once");
    let bare = discover(&gateway, "/servers/u1/mcp").await;
    assert_eq!(bare["result"]["instructions"], "Ask nicely.");
}

/// X33: of a legacy server it says what `initialize` of that server did, and nothing of what it lacks.
#[tokio::test]
async fn is_built_from_initialize_of_a_legacy_server() {
    let gateway = TestGateway::new().stdio("u1", &[]).start().await;
    let result = discover(&gateway, "/mcp").await["result"].clone();
    assert_eq!(
        result["capabilities"],
        json!({ "logging": {}, "tools": { "listChanged": true } }),
        "{result}"
    );
    assert!(result["instructions"].as_str().unwrap().contains("Ask for trouble."));
}

/// X41, case-K07: a legacy HTTP server whose GET answers 405 can tell of no change, whatever it declares.
#[tokio::test]
async fn promises_no_changes_that_cannot_be_heard() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let result = discover(&gateway, "/mcp").await["result"].clone();
    assert_eq!(result["capabilities"], json!({ "tools": {} }));
    let other = HttpServer::start().await;
    other.on(http(Method::GET), Answer::events([hold()]));
    let gateway = TestGateway::new().http("u1", server.url()).http("u2", other.url()).start().await;
    let result = discover(&gateway, "/mcp").await["result"].clone();
    assert_eq!(result["capabilities"], json!({ "tools": { "listChanged": true } }), "one of them tells");
}

/// L11: a server that says nothing holds the answer up for `timeouts.list` at most, once; then everything is declared that it
/// may have, for no time at all.
#[tokio::test]
async fn waits_for_a_silent_server_within_bounds() {
    let server = HttpServer::modern().await;
    let gate = Gate::new();
    server.on(
        rpc("server/discover"),
        Answer::result(&discovered(&json!({ "tools": {} })).to_string()).after(&gate),
    );
    let gateway = TestGateway::new()
        .http("u1", server.url())
        .adjust(auto)
        .adjust(|server| server.timeouts.list = Duration::from_millis(100))
        .start()
        .await;
    let result = discover(&gateway, "/mcp").await["result"].clone();
    assert_eq!(result["ttlMs"], 0);
    assert_eq!(result["capabilities"]["prompts"], json!({ "listChanged": true }));
    gate.open();
    // What it says at last is known without being asked for again.
    let known = async {
        loop {
            let result = discover(&gateway, "/mcp").await["result"].clone();
            if result["ttlMs"] != 0 {
                return result;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let result = tokio::time::timeout(Duration::from_secs(10), known).await.unwrap();
    assert_eq!(result["capabilities"], json!({ "tools": {} }));
}
