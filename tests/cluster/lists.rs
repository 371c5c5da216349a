//! Lists that all replicas show alike.

use std::time::Duration;

use serde_json::json;

use crate::client::Client;
use crate::gateway::TestGateway;
use crate::http_server::{Answer, HttpServer, rpc};
use crate::replicas::Cluster;

fn tools(names: &[&str]) -> Answer {
    let tools: Vec<_> =
        names.iter().map(|name| json!({"name": name, "inputSchema": {"type": "object"}})).collect();
    Answer::result(&json!({"tools": tools}).to_string())
}

async fn listed(client: &Client) -> usize {
    client.call(1, "tools/list", json!({})).await["result"]["tools"].as_array().unwrap().len()
}

/// A server changes its list and tells nobody. A replica that reads it later sees the new one, and so does every other
/// from then on: a caller that comes to another replica with each request must not see tools come and go.
#[tokio::test]
async fn what_one_replica_finds_changed_all_read_again() {
    let server = HttpServer::start().await;
    server.once(rpc("tools/list"), tools(&["echo"]));
    server.on(rpc("tools/list"), tools(&["echo", "new"]));
    let cluster = Cluster::new();
    let first = cluster.replica(TestGateway::new().http("u1", server.url())).await;
    let early = first.gateway.client("/mcp").initialize("2025-11-25").await;
    assert_eq!(listed(&early).await, 1);
    assert_eq!(listed(&early).await, 1, "it is kept");
    let second = cluster.replica(TestGateway::new().http("u1", server.url())).await;
    let late = second.gateway.client("/mcp").initialize("2025-11-25").await;
    assert_eq!(listed(&late).await, 2);
    let same = async {
        while listed(&early).await != 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(crate::client::SOON, same).await.expect("both show the same");
    // Nothing changed since: they do not go on asking.
    let asked = server.count(rpc("tools/list"));
    assert_eq!((listed(&early).await, listed(&late).await), (2, 2));
    assert!(server.count(rpc("tools/list")) <= asked + 1, "one of them may have to look once more");
}
