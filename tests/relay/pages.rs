//! Lists that come in pages, and the one page that callers get.

use serde_json::{Value, json};

use crate::gateway::TestGateway;
use crate::http_server::{Answer, HttpServer, rpc};
use crate::kit::{server_with, session, tools};

/// Lists `count` tools in pages of `size`, with cursors that begin with an empty one.
fn pages(server: &HttpServer, count: usize, size: usize) {
    server.on_each(rpc("tools/list"), move |seen| {
        let at = match seen.json()["params"]["cursor"].as_str() {
            None => 0,
            Some("") => 1,
            Some(cursor) => cursor.strip_prefix("page ").and_then(|n| n.parse().ok()).expect("our cursor"),
        };
        let tools = (at * size..count.min((at + 1) * size))
            .map(|n| json!({"name": format!("t{n}"), "inputSchema": {"type": "object"}}));
        let mut result = json!({"tools": tools.collect::<Vec<_>>()});
        if (at + 1) * size < count {
            result["nextCursor"] = if at == 0 { json!("") } else { json!(format!("page {}", at + 1)) };
        }
        Answer::result(&result.to_string())
    });
}

/// case-G09: all pages of all servers come in one list, each item once; an empty cursor is a cursor.
#[tokio::test]
async fn all_pages_of_all_servers_come_in_one_list() {
    let (u1, u2) = (HttpServer::start().await, HttpServer::start().await);
    pages(&u1, 250, 50);
    pages(&u2, 3, 50);
    let gateway = TestGateway::new().http("u1", u1.url()).http("u2", u2.url()).start().await;
    let all = tools(&session(&gateway).await).await;
    let expected = (0..250).map(|n| format!("mcp_u1_t{n}")).chain((0..3).map(|n| format!("mcp_u2_t{n}")));
    assert_eq!(all, expected.collect::<Vec<_>>());
    assert_eq!(u1.count(rpc("tools/list")), 5);
}

/// case-G09: the same for what else is listed.
#[tokio::test]
async fn pages_of_prompts_resources_and_templates_are_drained_too() {
    let server = server_with(r#"{"prompts":{},"resources":{}}"#).await;
    for (method, member, key) in [
        ("prompts/list", "prompts", "name"),
        ("resources/list", "resources", "uri"),
        ("resources/templates/list", "resourceTemplates", "uriTemplate"),
    ] {
        server.on_each(
            move |seen| seen.is(method),
            move |seen| {
                let second = seen.param("cursor").is_some();
                let item = if second { "x://b" } else { "x://a" };
                let mut result = json!({ member: [{ key: item, "name": item }] });
                if !second {
                    result["nextCursor"] = json!("more");
                }
                Answer::result(&result.to_string())
            },
        );
    }
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = session(&gateway).await;
    for (method, member) in [
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ] {
        let list = client.call(1, method, json!({})).await;
        assert_eq!(list["result"][member].as_array().map(Vec::len), Some(2), "{list}");
    }
}

/// case-G09: a server that never comes to an end, or only says so, is cut off; the others are listed.
#[tokio::test]
async fn cursors_that_lead_nowhere_end_the_list() {
    let (circle, good) = (HttpServer::start().await, HttpServer::start().await);
    circle.on(
        rpc("tools/list"),
        Answer::result(r#"{"tools":[{"name":"t","inputSchema":{"type":"object"}}],"nextCursor":""}"#),
    );
    let gateway = TestGateway::new().http("circle", circle.url()).http("good", good.url()).start().await;
    let client = session(&gateway).await;
    assert_eq!(tools(&client).await, ["mcp_circle_t", "mcp_good_echo"]);
    assert!(circle.count(rpc("tools/list")) <= 3);
    assert_eq!(gateway.sample(r#"mcpgate_tools_quarantined{server="circle"}"#), 0.0);
}

/// case-G11: callers get everything in one page, and a cursor nobody gave out is refused.
#[tokio::test]
async fn callers_get_one_page_and_no_cursor() {
    let server = HttpServer::start().await;
    pages(&server, 1000, 100);
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = session(&gateway).await;
    let list = client.call(1, "tools/list", json!({})).await;
    assert_eq!(list["result"]["tools"].as_array().map(Vec::len), Some(1000));
    assert!(list["result"].get("nextCursor").is_none());
    for method in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
        for cursor in [json!("garbage"), json!(""), json!("page 2"), json!(5), json!({})] {
            let refused = client.call("c", method, json!({ "cursor": cursor })).await;
            assert_eq!(refused["error"]["code"], -32602, "{method} {cursor}");
            assert_eq!(refused["id"], "c");
        }
        let listed = client.call(2, method, json!({"cursor": Value::Null})).await;
        assert!(listed["result"].is_object(), "null is no cursor: {listed}");
    }
}
