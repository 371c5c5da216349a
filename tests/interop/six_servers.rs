//! Six real servers behind one URL: five over stdio, from npm and PyPI, and one over Streamable HTTP.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::binary::Binary;
use crate::client::{Client, tool};
use crate::kit::Kit;
use crate::process::{Process, command};

/// The servers, and the gateway in front of them.
struct Six {
    gateway: Binary,
    /// A folder with a git repository in it, and a file.
    files: TempDir,
    _remote: Process,
}

#[tokio::test]
async fn all_tools_of_six_servers_are_listed_and_called() {
    let Some(kit) = Kit::ready().await else { return };
    let six = Six::serve(&kit).await;
    let client = six.gateway.client("/mcp").initialize("2025-11-25").await;

    let listed = client.call("list", "tools/list", json!({})).await;
    let names: Vec<_> = listed["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    let mut counts = BTreeMap::new();
    for server in ["everything", "filesystem", "git", "memory", "remote", "time"] {
        let of_it = names.iter().filter(|name| name.starts_with(&format!("mcp_{server}_"))).count();
        counts.insert(server, of_it);
    }
    assert_eq!(counts.values().sum::<usize>(), names.len(), "every name is qualified: {names:?}");
    assert!(counts.values().all(|count| *count > 1), "every server has tools: {counts:?}");

    let repository = six.files.path().to_str().unwrap();
    let file = six.files.path().join("hello.txt");
    let entity = json!({"name": "gate", "entityType": "thing", "observations": ["it is open"]});
    for (name, arguments, expected) in [
        ("mcp_everything_echo", json!({"message": "near"}), "Echo: near"),
        ("mcp_remote_echo", json!({"message": "far"}), "Echo: far"),
        ("mcp_filesystem_read_text_file", json!({"path": file}), "hello from a file"),
        ("mcp_memory_create_entities", json!({"entities": [entity]}), "gate"),
        ("mcp_memory_read_graph", json!({}), "it is open"),
        ("mcp_git_git_log", json!({"repo_path": repository}), "the first commit"),
        ("mcp_time_get_current_time", json!({"timezone": "Europe/Vienna"}), "Europe/Vienna"),
    ] {
        assert!(names.contains(&name), "{name} is listed: {names:?}");
        let result = call(&client, name, arguments).await;
        assert!(result.contains(expected), "{name}: {result}");
    }
    assert!(client.delete().await.is_success());
    six.gateway.await_metric("mcpgate_upstream_processes", 0.0).await;
}

/// Prompts and resources of several servers stand side by side, and are served by the one that has them.
#[tokio::test]
async fn prompts_and_resources_of_six_servers_are_served() {
    let Some(kit) = Kit::ready().await else { return };
    let six = Six::serve(&kit).await;
    let client = six.gateway.client("/mcp").initialize("2025-06-18").await;

    let prompts = client.call(1, "prompts/list", json!({})).await;
    let prompts = prompts["result"]["prompts"].to_string();
    assert!(prompts.contains("mcp_everything_") && prompts.contains("mcp_remote_"), "{prompts}");
    let prompt = client.call(2, "prompts/get", json!({"name": "mcp_remote_simple-prompt"})).await;
    assert!(prompt["result"]["messages"][0].is_object(), "{prompt}");

    let resources = client.call(3, "resources/list", json!({})).await;
    let uri = resources["result"]["resources"][0]["uri"].clone();
    let read = client.call(4, "resources/read", json!({"uri": uri})).await;
    assert_eq!(read["result"]["contents"][0]["uri"], uri, "{read}");
}

/// Calls a tool; the result as text.
async fn call(client: &Client, name: &str, arguments: Value) -> String {
    let answer = client.call(name, "tools/call", tool(name, arguments)).await;
    assert_eq!(answer["id"], name, "{answer}");
    assert_ne!(answer["result"]["isError"], true, "{answer}");
    answer["result"].to_string()
}

// === impl Six ===

impl Six {
    async fn serve(kit: &Kit) -> Self {
        let (remote, url) = kit.everything_over_http().await;
        let files = tempfile::tempdir().unwrap();
        std::fs::write(files.path().join("hello.txt"), "hello from a file\n").unwrap();
        repository(files.path()).await;
        let folder = tempfile::tempdir().unwrap();
        // JSON is YAML.
        let servers = json!({
            "everything": {"command": "node", "args": [kit.npm_server("everything")]},
            "filesystem": {"command": "node", "args": [kit.npm_server("filesystem"), files.path()]},
            "memory": {
                "command": "node",
                "args": [kit.npm_server("memory")],
                "env": {"MEMORY_FILE_PATH": folder.path().join("memory.jsonl")},
            },
            "git": {"command": kit.pypi_server("git"), "args": ["--repository", files.path()]},
            "time": {"command": kit.pypi_server("time")},
            "remote": {"url": url},
        });
        // A list leaves out who is slow to start, as those in Python are on a busy machine.
        let config = format!("mcpServers: {servers}\ntimeouts: {{ list: 60s }}");
        let gateway = Binary::serve_in(folder, &config).await;
        Self { gateway, files, _remote: remote }
    }
}

/// Makes a git repository with one commit of `folder`.
async fn repository(folder: &Path) {
    let commit =
        ["-c", "user.name=Test", "-c", "user.email=test@example.com", "commit", "-qm", "the first commit"];
    for args in [&["init", "-q"][..], &["add", "."], &commit] {
        let done = command("git").args(args).current_dir(folder).output().await.unwrap();
        assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    }
}
