//! What operators see while callers have trouble.

use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::json;

use crate::client::{Client, init, request, tool};
use crate::gateway::TestGateway;
use crate::http_server::{Answer, Gate, HttpServer, rpc};

async fn get(client: Client) -> (StatusCode, String) {
    let answer = client.send(Method::GET, "").await;
    (answer.status, answer.text().await)
}

/// case-J03: no server that is down and no cap that is reached makes the process look sick; nothing is said of them.
#[tokio::test]
async fn probes_do_not_depend_on_servers_or_sessions() {
    let nobody = "http://127.0.0.1:1/mcp".parse().expect("a URL");
    let setup = TestGateway::new().http("hidden-name", nobody).command("gone", "/no/such/program", &[]);
    let gateway = setup.with(|s| s.sessions.max = 1).start().await;
    let client = gateway.client("/mcp").initialize("2025-11-25").await;
    let list = client.call(1, "tools/list", json!({})).await;
    assert_eq!(list["result"]["tools"], json!([]));
    let full = gateway.client("/mcp").post(&init("2025-11-25", json!({}))).await;
    assert_eq!(full.status, StatusCode::SERVICE_UNAVAILABLE);
    for path in ["/livez", "/readyz", "/readyz?verbose"] {
        let (status, text) = get(gateway.operator(path)).await;
        assert_eq!(status, StatusCode::OK, "{path}: {text}");
        assert!(!text.contains("hidden-name") && !text.contains("127.0.0.1"), "{path}: {text}");
    }
}

/// case-J01: readiness is off at once when the gateway is told to stop, liveness stays until the end.
#[tokio::test]
async fn readiness_is_off_while_running_calls_end() {
    let server = HttpServer::start().await;
    let gate = Gate::new();
    server.on(rpc("tools/call"), Answer::result(r#"{"content":[]}"#).after(&gate));
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = gateway.client("/servers/u1/mcp").initialize("2025-11-25").await;
    let call = client.post(&request(1, "tools/call", tool("echo", json!({})))).await;
    assert_eq!(get(gateway.operator("/readyz")).await.0, StatusCode::OK);
    gateway.stop();
    let began = std::time::Instant::now();
    while get(gateway.operator("/readyz")).await.0 != StatusCode::SERVICE_UNAVAILABLE {
        assert!(began.elapsed() < Duration::from_secs(5), "readiness stays on");
    }
    assert_eq!(get(gateway.operator("/livez")).await.0, StatusCode::OK);
    gate.open();
    assert!(call.response().await["result"].is_object());
    gateway.stopped().await;
}
