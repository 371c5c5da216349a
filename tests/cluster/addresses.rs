//! The caller's address, as the replica knows it that serves a request for another.

use std::io::Write;
use std::sync::{Arc, Mutex};

use serde_json::json;

use crate::gateway::TestGateway;
use crate::http_server::HttpServer;
use crate::replicas::Cluster;

/// What was logged.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Both replicas log the address that the edge saw, whatever the caller says of itself.
#[tokio::test]
async fn the_owner_logs_the_address_that_the_edge_saw() {
    let lines = Lines::default();
    let writer = lines.clone();
    let logs = tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG).with_ansi(false);
    // All of this test runs on one thread.
    let _logging = tracing::subscriber::set_default(logs.with_writer(move || writer.clone()).finish());
    let server = HttpServer::start().await;
    let cluster = Cluster::new();
    let first = cluster.replica(TestGateway::new().http("u1", server.url())).await;
    let second = cluster.replica(TestGateway::new().http("u1", server.url())).await;
    let client = first.gateway.client("/mcp").initialize("2025-11-25").await;
    let there = second.caller(&client).header("mcpgate-hop-peer", "203.0.113.6:666");
    lines.0.lock().unwrap().clear();
    assert!(there.call(7, "ping", json!({})).await["result"].is_object());
    let said = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let addresses: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("answered"))
        .map(|line| line.split("client.address=").nth(1).unwrap_or_else(|| panic!("no address: {line}")))
        .map(|rest| rest.split(' ').next().unwrap())
        .collect();
    assert_eq!(addresses.len(), 2, "at the edge and at the owner: {said}");
    assert_eq!(addresses[0], addresses[1]);
    assert!(addresses[0].starts_with("127.0.0.1:"), "{addresses:?}");
    assert!(!said.contains("203.0.113.6"), "what a caller says is not heard");
}
