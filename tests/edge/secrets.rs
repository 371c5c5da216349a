//! What callers must never find again: in another's hands, in logs, in metrics.

use std::io::Write;
use std::sync::{Arc, Mutex};

use http::Method;
use mcpgate::telemetry::logs::{LogFormat, dispatch};
use serde_json::json;

use crate::client::{init, request, tool};
use crate::credentials::api_key;
use crate::gateway::TestGateway;
use crate::http_server::{Answer, HttpServer, rpc};

/// Keeps what is logged.
#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Page {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

const KEY: &str = "canary-key-4711";
const COOKIE: &str = "canary-cookie-4712";
const QUERY: &str = "canary-query-4713";
const WRONG: &str = "canary-wrong-4714";
const ARGUMENT: &str = "canary-argument-4715";
const PROXY: &str = "canary-proxy-4716";

/// case-F11, case-F13: the caller's credentials, cookies and queries go to no server, log line, metric or answer; nor
/// do session ids and arguments to the log.
#[test]
fn credentials_reach_no_server_and_no_log() {
    let page = Page::default();
    let writer = page.clone();
    let logs = dispatch(LogFormat::Json, "trace", move || writer.clone()).expect("a filter");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    // On one thread, so that all its lines come here and no other test's.
    let (answers, session, seen, metrics) =
        tracing::dispatcher::with_default(&logs, || runtime.block_on(all_kinds_of_requests()));
    let log = page.text();
    assert!(log.contains("mcpgate"), "something was logged");
    for canary in [KEY, COOKIE, QUERY, WRONG, PROXY] {
        assert!(!log.contains(canary), "{canary} in the log");
        assert!(!seen.contains(canary), "{canary} at the server");
        assert!(!metrics.contains(canary), "{canary} in the metrics");
        assert!(!answers.contains(canary), "{canary} in an answer");
    }
    assert!(seen.contains(ARGUMENT), "arguments are for the server");
    assert!(!log.contains(ARGUMENT), "and not for the log");
    assert!(
        !log.contains(&session) && !metrics.contains(&session) && !seen.contains(&session),
        "the session id"
    );
}

/// Gives all answers, the session id, all that the server saw, and the metrics.
async fn all_kinds_of_requests() -> (String, String, String, String) {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new()
        .http("u1", server.url())
        .with(|s| s.auth.api_keys = vec![api_key("ann", KEY)])
        .start()
        .await;
    let dressed = gateway
        .client(&format!("/mcp?api_key={QUERY}&access_token={QUERY}"))
        .header("cookie", &format!("sid={COOKIE}"))
        .header("proxy-authorization", &format!("Basic {PROXY}"));
    let mut answers = Vec::new();
    for client in [
        dressed.clone().header("x-api-key", KEY),
        dressed.clone().header("authorization", &format!("Bearer {KEY}")),
    ] {
        let client = client.initialize("2025-11-25").await;
        let call = tool("mcp_u1_echo", json!({"a": ARGUMENT}));
        for accept in ["application/json", "text/event-stream"] {
            let client = client.clone().header("accept", accept);
            answers.push(client.call(1, "tools/call", call.clone()).await.to_string());
        }
        server.once(rpc("tools/call"), Answer::status(401).header("www-authenticate", "Bearer realm=\"up\""));
        answers.push(client.call(2, "tools/call", call.clone()).await.to_string());
        server.once(rpc("tools/call"), Answer::status(500));
        answers.push(client.call(3, "tools/call", call.clone()).await.to_string());
        answers.push(
            client.call(4, "tools/call", tool("mcp_u1_nope", json!({"a": ARGUMENT}))).await.to_string(),
        );
        answers.push(client.call(5, "tools/list", json!({})).await.to_string());
        answers.push(client.send(Method::POST, format!("{{\"{ARGUMENT}")).await.text().await);
        answers.push(
            client.clone().header("mcp-protocol-version", "x").send(Method::GET, "").await.text().await,
        );
        drop(client.open_get().await);
    }
    for client in [
        dressed.clone(),
        dressed.clone().header("x-api-key", WRONG),
        dressed.clone().header("authorization", &format!("Bearer {WRONG}")),
        dressed.clone().header("authorization", &format!("Basic {WRONG}")),
        dressed.clone().header("authorization", &format!("Bearer a.{WRONG}.b")),
        dressed.clone().header("x-api-key", WRONG).also("x-api-key", WRONG),
        dressed.clone().at(&format!("/nowhere?api_key={QUERY}")),
        dressed.clone().at(&format!("/none/mcp?api_key={QUERY}")),
    ] {
        answers.push(client.post(&init("2025-11-25", json!({}))).await.text().await);
    }
    let last = dressed.header("x-api-key", KEY).initialize("2025-11-25").await;
    last.call(9, "tools/call", tool("mcp_u1_echo", json!({}))).await;
    let session = last.session();
    answers.push(last.post(&request(1, "ping", json!({}))).await.text().await);
    last.delete().await;
    let seen: String =
        server.requests().iter().map(|s| format!("{:?} {} {}\n", s.headers, s.path, s.text())).collect();
    let metrics = gateway.metrics();
    gateway.stopped().await;
    (answers.concat(), session, seen, metrics)
}
