//! A list that comes in many pieces is one list.

use std::time::Duration;

use mcpgate::settings::EndpointSettings;
use serde_json::json;

use crate::gateway::TestGateway;
use crate::http_server::{Answer, HttpServer, pause, raw, rpc};

/// case-B11: 200 kB of tools on a stream in pieces of 1 kB: every name is qualified, what is denied is absent.
#[tokio::test]
async fn a_list_that_comes_in_many_pieces_is_renamed_and_filtered_whole() {
    let server = HttpServer::start().await;
    let tools: Vec<_> = (0..400)
        .map(|n| {
            let description = format!("{n}: {}", "words and \u{e4}\u{f6}\u{fc} ".repeat(40));
            json!({"name": format!("tool_{n:03}"), "description": description, "inputSchema": {"type": "object"}})
        })
        .collect();
    let result = json!({ "tools": tools }).to_string();
    assert!(result.len() > 200 << 10);
    server.on_each(rpc("tools/list"), move |seen| {
        let id = seen.id.clone().expect("an id");
        let text =
            format!("event: message\ndata: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n\n");
        let pieces = text
            .as_bytes()
            .chunks(1024)
            .flat_map(|piece| [raw(piece.to_vec()), pause(Duration::from_millis(1))]);
        Answer::events(pieces.collect::<Vec<_>>())
    });
    let endpoint = EndpointSettings {
        name: "some".into(),
        servers: Vec::new(),
        allow: Vec::new(),
        deny: vec!["mcp_u1_tool_1*".into()],
        ..EndpointSettings::default()
    };
    let gateway =
        TestGateway::new().http("u1", server.url()).with(|s| s.endpoints.push(endpoint)).start().await;
    let client = gateway.client("/some/mcp").initialize("2025-06-18").await;
    let list = client.call(1, "tools/list", json!({})).await;
    let listed = list["result"]["tools"].as_array().expect("tools");
    let names: Vec<&str> = listed.iter().map(|t| t["name"].as_str().expect("a name")).collect();
    let expected: Vec<String> =
        (0..400).filter(|n| !(100..200).contains(n)).map(|n| format!("mcp_u1_tool_{n:03}")).collect();
    assert_eq!(names, expected);
    assert_eq!(listed[7]["description"], tools[7]["description"]);
}
