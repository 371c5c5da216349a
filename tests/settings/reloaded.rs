//! Files that `include` names, as they change under a gateway that runs.

use serde_json::json;

use crate::binary::Binary;

const SERVER: &str = "{ command: mcpgate, args: [demo-server] }";

/// A bad file keeps its own old state, the others take effect, and the metric says that not all is well until it is.
#[tokio::test]
async fn a_bad_file_does_not_keep_the_others_from_taking_effect() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("conf.d")).unwrap();
    let write = |folder: &std::path::Path, name: &str, text: String| {
        std::fs::write(folder.join("conf.d").join(name), text).unwrap();
    };
    write(folder.path(), "a.yaml", format!("mcpServers: {{ a: {SERVER} }}\n"));
    let gateway = Binary::serve_in(folder, "include: [ 'conf.d/*.yaml' ]\n").await;
    let client = gateway.client("/mcp").initialize("2025-11-25").await;
    let count =
        |server: &str| json!({"name": format!("mcp_{server}_count_words"), "arguments": {"text": "a b"}});
    assert!(client.call(1, "tools/call", count("a")).await["result"].is_object());

    write(gateway.folder(), "a.yaml", "mcpServers: { a: { cmd: x } }\n".to_owned());
    write(gateway.folder(), "b.yaml", format!("mcpServers: {{ b: {SERVER} }}\n"));
    gateway.await_metric("mcpgate_config_last_reload_successful", 0.0).await;
    // The two files may have been seen one after the other.
    let mut n = 2;
    let served = async {
        while !client.call(n, "tools/call", count("b")).await["result"].is_object() {
            n += 1;
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(10), served).await.expect("the good file in force");
    assert!(client.call(1000, "tools/call", count("a")).await["result"].is_object(), "its old state");
    let said = gateway.process.said();
    assert!(said.contains("conf.d/a.yaml:1:20: mcpServers.a.cmd: unknown key"), "{said}");
    assert!(said.contains("keeps its old state, the others are in force"), "{said}");

    write(gateway.folder(), "a.yaml", format!("mcpServers: {{ a: {SERVER} }}\n"));
    gateway.await_metric("mcpgate_config_last_reload_successful", 1.0).await;
}
