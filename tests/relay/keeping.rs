//! Last good catalogs, kept on disk over the life of a process.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::init;
use crate::gateway::{Setup, TestGateway};
use crate::http_server::{Answer, HttpServer, rpc};
use crate::kit::{REVISION, call, failure, offers, server_with, session, tools, until};

fn keeping(dir: &Path) -> Setup {
    TestGateway::new().with(|s| s.state_dir = Some(dir.to_owned()))
}

/// A gateway that starts while its servers are down shows what they offered last, and declares
/// exactly what they can do.
#[tokio::test]
async fn a_gateway_that_starts_alone_knows_its_servers() {
    let dir = tempfile::tempdir().expect("a directory");
    let server = server_with(r#"{"tools":{},"prompts":{}}"#).await;
    server.on(rpc("prompts/list"), Answer::result(r#"{"prompts":[{"name":"p","title":"T"}]}"#));
    offers(&server, &["a", "b"]);
    let url = server.url();
    let gateway =
        keeping(dir.path()).http("u1", url.clone()).stdio("child", &["--delay", "700"]).start().await;
    let client = session(&gateway).await;
    let all = tools(&client).await;
    let prompts = client.call(1, "prompts/list", json!({})).await["result"].clone();
    gateway.stopped().await;
    drop(server);

    let gateway = keeping(dir.path()).http("u1", url).stdio("child", &["--delay", "700"]).start().await;
    let greeting = gateway.client("/servers/u1/mcp").post(&init(REVISION, json!({}))).await.json().await;
    let known = json!({"prompts": {"listChanged": true}, "tools": {"listChanged": true}});
    assert_eq!(greeting["result"]["capabilities"], known);
    let client = session(&gateway).await;
    let begun = Instant::now();
    assert_eq!(tools(&client).await, all);
    assert_eq!(client.call(1, "prompts/list", json!({})).await["result"], prompts);
    assert!(begun.elapsed() < Duration::from_millis(500), "at once: {:?}", begun.elapsed());
    let answer = call(&client, 1, "mcp_u1_a", json!({})).await;
    assert_eq!(failure(&answer)["server"], "u1", "{answer}");
}

/// What was kept is read again at its first use, and callers are told if it has changed meanwhile.
#[tokio::test]
async fn what_was_kept_is_read_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let server = HttpServer::start().await;
    offers(&server, &["old"]);
    let gateway = keeping(dir.path()).http("u1", server.url()).start().await;
    assert_eq!(tools(&session(&gateway).await).await, ["mcp_u1_old"]);
    gateway.stopped().await;
    offers(&server, &["new"]);
    let gateway = keeping(dir.path()).http("u1", server.url()).start().await;
    let client = session(&gateway).await;
    let mut get = client.open_get().await;
    assert_eq!(tools(&client).await, ["mcp_u1_old"]);
    let told = get.message().await.expect("a notice");
    assert_eq!(told["method"], "notifications/tools/list_changed");
    assert_eq!(tools(&client).await, ["mcp_u1_new"]);
    // The change is on disk soon, not only at the end.
    let file = dir.path().join("catalog/u1.json");
    until("it is written", async || fs::read_to_string(&file).is_ok_and(|text| text.contains("\"new\"")))
        .await;
    assert_eq!(fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
}

/// A kept catalog of a server that is reached in another way now, or that is no catalog, is of no use; the gateway
/// starts all the same.
#[tokio::test]
async fn a_kept_catalog_of_another_server_is_not_shown() {
    let dir = tempfile::tempdir().expect("a directory");
    let (one, two) = (HttpServer::start().await, HttpServer::start().await);
    offers(&one, &["one"]);
    offers(&two, &["two"]);
    let gateway = keeping(dir.path()).http("u1", one.url()).start().await;
    tools(&session(&gateway).await).await;
    gateway.stopped().await;
    let gateway = keeping(dir.path()).http("u1", two.url()).start().await;
    assert_eq!(tools(&session(&gateway).await).await, ["mcp_u1_two"]);
    gateway.stopped().await;
    for text in ["", "{", "[]", "{\"format\":\"mcpgate-catalog-1\"}", "\0\u{1}"] {
        fs::write(dir.path().join("catalog/u1.json"), text).expect("written");
        let gateway = keeping(dir.path()).http("u1", two.url()).start().await;
        assert_eq!(tools(&session(&gateway).await).await, ["mcp_u1_two"]);
        gateway.stopped().await;
    }
}

/// Without a place to write to everything works, in memory.
#[tokio::test]
async fn without_a_place_to_write_to_everything_works() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("file");
    fs::write(&file, "").expect("written");
    let server = HttpServer::start().await;
    let gateway = keeping(&file).http("u1", server.url()).start().await;
    let client = session(&gateway).await;
    assert_eq!(tools(&client).await, ["mcp_u1_echo"]);
    assert!(call(&client, 1, "mcp_u1_echo", json!({})).await["result"].is_object());
    gateway.stopped().await;
}
