//! Nothing a caller invents becomes a series.

use std::collections::BTreeSet;

use serde_json::json;

use crate::client::request;
use crate::gateway::TestGateway;
use crate::http_server::HttpServer;
use crate::raw::Raw;

fn series(gateway: &TestGateway) -> BTreeSet<String> {
    let text = gateway.metrics();
    let lines = text.lines().filter(|l| !l.starts_with('#'));
    lines.filter_map(|l| Some(l.rsplit_once(' ')?.0.to_owned())).collect()
}

/// case-I09: a thousand names that do not exist, in every place a caller can put one, make no new series.
#[tokio::test]
async fn names_that_callers_invent_make_no_series() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = gateway.client("/mcp").initialize("2025-06-18").await;
    client.call(1, "tools/list", json!({})).await;
    let before = series(&gateway);
    let session = client.session();
    let mut raw = Raw::connect(gateway.address).await;
    for n in 0..1000 {
        let (line, headers, body) = match n % 8 {
            0 => ("POST /mcp".into(), String::new(), request(n, &format!("invented/{n}"), json!({}))),
            1 => (
                "POST /mcp".into(),
                String::new(),
                request(n, "tools/call", json!({"name": format!("mcp_u1_{n}")})),
            ),
            2 => (
                "POST /mcp".into(),
                String::new(),
                request(n, "prompts/get", json!({"name": format!("p{n}")})),
            ),
            3 => (format!("POST /e{n}/mcp"), String::new(), request(n, "ping", json!({}))),
            4 => (format!("GET /path/{n}?q={n}"), String::new(), json!(null)),
            5 => (format!("M{n} /mcp"), String::new(), json!(null)),
            6 => {
                ("POST /mcp".into(), format!("MCP-Protocol-Version: v{n}\r\n"), request(n, "ping", json!({})))
            }
            _ => (
                "POST /mcp".into(),
                format!("User-Agent: agent-{n}\r\nX-Request-Id: r{n}\r\n"),
                request(n, "resources/read", json!({"uri": format!("x:{n}")})),
            ),
        };
        let headers = format!("Content-Type: application/json\r\nMcp-Session-Id: {session}\r\n{headers}");
        raw.request(&line, &headers, &body.to_string()).await;
        raw.answer().await;
    }
    let grown: Vec<String> = series(&gateway).difference(&before).cloned().collect();
    assert!(grown.len() <= 20, "{} series more: {grown:#?}", grown.len());
    for word in ["invented", "agent-", "path", "e3", &session] {
        assert!(!grown.iter().any(|s| s.contains(word)), "{word} in {grown:#?}");
    }
}
