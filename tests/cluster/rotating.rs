//! The cluster keys rotate while replicas serve.

use std::time::Duration;

use serde_json::{Value, json};

use crate::binary::Binary;
use crate::client::{Client, tool};
use crate::fleet::{Fleet, KEY, OTHER_KEY};
use crate::http_server::HttpServer;

/// Long enough that no lease runs out on a machine that has much to do.
const LEASE: Duration = Duration::from_secs(3);

/// Gives a replica these keys, as a changed Secret does; returns once they are in force, the `nth` time.
async fn give(replica: &Binary, keys: &[&str], nth: f64) {
    let (new, place) = (replica.folder().join("new-keys"), replica.folder().join("cluster-keys"));
    std::fs::write(&new, keys.join("\n")).unwrap();
    std::fs::rename(new, place).unwrap();
    replica.await_metric("mcpgate_config_reloads_total", nth).await;
}

async fn echo(client: &Client, id: i32) -> Value {
    client.call(id, "tools/call", tool("mcp_u1_echo", json!({"n": id}))).await
}

/// Each session is served at each replica, and none has moved.
async fn all_are_served(when: &str, sessions: &[Client], replicas: [&Binary; 2], id: &mut i32) {
    for client in sessions {
        for replica in replicas {
            *id += 1;
            let answer = echo(&client.clone().via(replica.address), *id).await;
            assert!(answer["result"].is_object(), "{when}: {answer}");
        }
    }
    for replica in replicas {
        assert_eq!(replica.metric("mcpgate_ownership_transfers_total").await, 0.0, "{when}: one moved");
    }
}

/// Sessions of both replicas go on where they are while the keys rotate in three steps, one replica after the other;
/// each replica says in its lease what follows from the keys that are in force, so that the others see it.
#[tokio::test]
async fn no_session_moves_while_cluster_keys_rotate() {
    let server = HttpServer::start().await;
    let fleet = Fleet::start(format!("mcpServers: {{ u1: {{ url: '{}' }} }}\n", server.url()));
    let fleet = fleet.await.with_lease(LEASE);
    let (a, b) = tokio::join!(fleet.replica(), fleet.replica());
    let both = [&a, &b];
    let id = &mut 0;
    let before =
        [a.client("/mcp").initialize("2025-11-25").await, b.client("/mcp").initialize("2025-11-25").await];
    all_are_served("before", &before, both, id).await;

    give(&a, &[KEY, OTHER_KEY], 1.0).await;
    all_are_served("the new one is behind at one", &before, both, id).await;
    give(&b, &[KEY, OTHER_KEY], 1.0).await;
    all_are_served("the new one is behind at both", &before, both, id).await;

    give(&a, &[OTHER_KEY, KEY], 2.0).await;
    // What tells configs apart is made with the first key.
    b.await_metric("mcpgate_config_mismatch", 1.0).await;
    all_are_served("the new one is in front at one", &before, both, id).await;
    give(&b, &[OTHER_KEY, KEY], 2.0).await;
    a.await_metric("mcpgate_config_mismatch", 0.0).await;
    b.await_metric("mcpgate_config_mismatch", 0.0).await;
    all_are_served("the new one is in front at both", &before, both, id).await;

    // The store knows the sessions of before by the old key: it goes once they have ended.
    for client in &before {
        client.delete().await;
    }
    let after =
        [a.client("/mcp").initialize("2025-11-25").await, b.client("/mcp").initialize("2025-11-25").await];
    give(&a, &[OTHER_KEY], 3.0).await;
    all_are_served("the old one is gone at one", &after, both, id).await;
    give(&b, &[OTHER_KEY], 3.0).await;
    all_are_served("the old one is gone at both", &after, both, id).await;
}
