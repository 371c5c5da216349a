//! A connection that is cut in the middle of a long call, with real servers.

use std::time::Duration;

use http::StatusCode;
use serde_json::{Value, json};

use crate::binary::Binary;
use crate::client::request;
use crate::kit::Kit;

/// The call takes so long, in so many steps.
const SECONDS: u32 = 5;

/// case-B05: with a stdio server, progress and result come once each, whether the caller is back at once or late.
#[tokio::test]
async fn a_cut_call_of_a_stdio_server_goes_on() {
    let Some(kit) = Kit::ready().await else { return };
    let server = kit.npm_server("everything");
    let config = format!("mcpServers: {{ everything: {{ command: node, args: ['{}'] }} }}", server.display());
    both_come_back(&Binary::serve(&config).await).await;
}

/// case-B05: the same with a server over Streamable HTTP.
#[tokio::test]
async fn a_cut_call_of_an_http_server_goes_on() {
    let Some(kit) = Kit::ready().await else { return };
    let (_server, url) = kit.everything_over_http().await;
    both_come_back(&Binary::serve(&format!("mcpServers: {{ everything: {{ url: '{url}' }} }}")).await).await;
}

async fn both_come_back(gateway: &Binary) {
    tokio::join!(
        comes_back(gateway, "2025-11-25", Duration::ZERO),
        // After the call's end: all that is left comes from the log.
        comes_back(gateway, "2025-06-18", Duration::from_secs(u64::from(SECONDS))),
    );
}

/// Cuts a call after its second step and comes back after `away`.
async fn comes_back(gateway: &Binary, revision: &str, away: Duration) {
    let client = gateway.client("/servers/everything/mcp").initialize(revision).await;
    let params = json!({
        "name": "trigger-long-running-operation",
        "arguments": {"duration": SECONDS, "steps": SECONDS},
        "_meta": {"progressToken": "bar"},
    });
    let mut stream = client.post(&request("long", "tools/call", params)).await.stream();
    let mut told = vec![stream.message().await.unwrap(), stream.message().await.unwrap()];
    let last = stream.last_id.clone().unwrap();
    drop(stream);

    tokio::time::sleep(away).await;
    let mut stream = client.resume(&last).await.stream();
    while let Some(message) = stream.message().await {
        told.push(message);
    }
    let (result, steps) = told.split_last().unwrap();
    let steps: Vec<_> = steps.iter().map(step).collect();
    assert_eq!(steps, (1..=u64::from(SECONDS)).collect::<Vec<_>>(), "{told:?}");
    assert_eq!(result["id"], "long");
    assert!(result["result"]["content"][0]["text"].as_str().unwrap().contains("completed"), "{result}");

    // Who has all of it is told that nothing more will come.
    let end = client.resume(&stream.last_id.unwrap()).await;
    assert_eq!(end.status, StatusCode::NO_CONTENT);
}

/// The step that a progress notification tells of.
fn step(message: &Value) -> u64 {
    assert_eq!(message["method"], "notifications/progress", "{message}");
    assert_eq!(message["params"]["progressToken"], "bar");
    message["params"]["progress"].as_u64().unwrap()
}
