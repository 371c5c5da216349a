//! How soon a gateway is ready.

use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use serde_json::json;

use crate::binary::Binary;
use crate::client::Client;

/// A gateway is ready at once, whatever its servers do: here one never says a word, one never takes a connection
/// and one is not there.
#[tokio::test]
async fn a_gateway_is_ready_within_100_ms() {
    let deaf = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let config = format!(
        "mcpServers:\n  mute: {{ command: sleep, args: ['1000'] }}\n  deaf: {{ url: 'http://{}/mcp' }}\n  none: {{ command: no-such-program }}\n",
        deaf.local_addr().unwrap()
    );
    let mut best = Duration::MAX;
    // Other tests run beside this one: what counts is what it can do.
    for _ in 0..10 {
        let began = Instant::now();
        let gateway = Binary::serve(&config).await;
        let ready = Client::new(gateway.admin, "/readyz").send(Method::GET, "").await;
        assert_eq!(ready.status, StatusCode::OK);
        best = best.min(began.elapsed());
    }
    println!("ready after {best:?} at best");
    assert!(best < Duration::from_millis(100), "ready after {best:?}");
}

/// Tools that are missing because their server is slow leave one line that says so, and a server that does not
/// start one line for each try.
#[tokio::test]
async fn a_list_that_goes_out_without_a_server_says_so_once() {
    let config = "timeouts: { list: 50ms }\nmcpServers:\n  mute: { command: sleep, args: ['1000'] }\n  \
                  none: { command: no-such-program }\n";
    let gateway = Binary::serve(config).await;
    let client = gateway.client("/mcp").initialize("2025-11-25").await;
    for method in ["tools/list", "tools/list", "prompts/list"] {
        client.call(1, method, json!({})).await;
    }
    let late =
        "server `mute` has not answered within timeouts.list (50ms): lists go out without it until it has";
    gateway.process.line(|line| line.contains(late).then_some(())).await;
    let said = gateway.process.said();
    assert_eq!(said.matches(late).count(), 1, "{said}");
    assert!(said.contains("a child process started server=\"mute\" pid="), "{said}");
    assert!(said.contains("The process of server `none` did not start"), "{said}");
    assert!(!said.contains("a list cannot be read"), "{said}");
}
