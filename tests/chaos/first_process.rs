//! The gateway as the first process of a container.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::binary::{Binary, MCPGATE};
use crate::process::children;

/// Nothing that was orphaned stays as a zombie, not even what left its group; signals reach the gateway, and its exit
/// code is that of the container.
#[tokio::test]
async fn the_first_process_reaps_orphans_and_hands_signals_on() {
    // Twenty that leave the group, lose their parent and end.
    let orphan = "(setsid sleep 0.01 &)";
    let script =
        format!("for n in 1 2 3 4 5 6 7 8 9 10; do {orphan}; {orphan}; done; exec '{MCPGATE}' demo-server");
    let server = json!({"command": "sh", "args": ["-c", script]});
    let shutdown = "shutdown: { delay: 0s, drain: 100ms, children: 2s }";
    let config = format!("mcpServers: {{ demo: {server} }}\n{shutdown}");
    let Some(gateway) = Binary::serve_first(&config).await else {
        eprintln!("not run: namespaces may not be made here");
        return;
    };
    let first = only_child(gateway.process.id());
    assert_eq!(children(first).len(), 1, "process 1 has the gateway and nobody else");
    let client = gateway.client("/mcp").initialize("2025-11-25").await;
    client.call(1, "tools/call", json!({"name": "mcp_demo_count_words", "arguments": {"text": "a b"}})).await;
    none_left(first).await;

    kill_process(Pid::from_raw(first).unwrap(), Signal::TERM).unwrap();
    let (status, said) = gateway.process.ended(Duration::from_secs(20)).await;
    assert!(status.success(), "{status}: {said}");
    assert!(said.contains("stopping: running calls may end"), "{said}");
}

fn only_child(pid: i32) -> i32 {
    match children(pid).as_slice() {
        [(child, _)] => *child,
        other => panic!("one child was expected: {other:?}"),
    }
}

/// Waits until process 1 has one child again, the dead ones counted.
async fn none_left(first: i32) {
    let path = format!("/proc/{first}/task/{first}/children");
    let count = || std::fs::read_to_string(&path).unwrap().split_whitespace().count();
    let gone = async {
        while count() > 1 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let gone = tokio::time::timeout(Duration::from_secs(10), gone).await;
    assert!(gone.is_ok(), "{} processes are left to process 1", count() - 1);
}
