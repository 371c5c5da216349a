//! Arrays of messages, which revision 2025-03-26 has and no other (T19).

use std::collections::BTreeSet;

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::client::{init, request, tool};
use crate::gateway::TestGateway;
use crate::http_server::{Answer, Gate, HttpServer, rpc};

fn note() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}})
}

fn ids(responses: &[Value]) -> BTreeSet<String> {
    responses.iter().map(|r| r["id"].to_string()).collect()
}

/// All requests of a batch are answered, in one array or on one stream, whatever else is in it.
#[tokio::test]
async fn the_requests_of_a_batch_are_answered_together() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = gateway.client("/mcp").initialize("2025-03-26").await;
    let batch = json!([
        request(1, "ping", json!({})),
        note(),
        request("b", "tools/call", tool("mcp_u1_echo", json!({}))),
        request(3, "nobody/knows", json!({})),
    ]);
    let answer = client.clone().header("accept", "application/json").post(&batch).await;
    assert_eq!((answer.status, answer.header("content-type")), (StatusCode::OK, Some("application/json")));
    let all = answer.json().await;
    let all = all.as_array().expect("an array");
    assert_eq!(ids(all), ["1", "\"b\"", "3"].map(String::from).into());
    let errors = all.iter().filter(|r| r.get("error").is_some()).count();
    assert_eq!(errors, 1, "one failure is one failure");
    let stream = client.clone().header("accept", "text/event-stream").post(&batch).await.stream();
    assert_eq!(ids(&stream.rest().await), ["1", "\"b\"", "3"].map(String::from).into());
    assert_eq!(server.count(rpc("tools/call")), 2);
    assert_eq!(server.count(|seen| seen.text().starts_with('[')), 0, "X53: no batch goes to a server");
}

/// case-H09: a request can be taken back by its own batch, before or behind it.
#[tokio::test]
async fn a_batch_can_take_its_own_request_back() {
    let server = HttpServer::start().await;
    server.on(rpc("tools/call"), Answer::result("{}").after(&Gate::new()));
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = gateway.client("/mcp").initialize("2025-03-26").await;
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "z"}});
    let call = request("z", "tools/call", tool("mcp_u1_echo", json!({})));
    for batch in [json!([call, cancel]), json!([cancel, call])] {
        assert_eq!(client.post(&batch).await.status, StatusCode::ACCEPTED);
    }
}

/// A batch of one request is answered with an array of one.
#[tokio::test]
async fn a_batch_of_one_is_a_batch() {
    let gateway = TestGateway::new().start().await;
    let client = gateway.client("/mcp").initialize("2025-03-26").await;
    let answer = client.post(&json!([request(1, "ping", json!({}))])).await;
    assert_eq!(answer.json().await, json!([{"jsonrpc": "2.0", "id": 1, "result": {}}]));
}

/// T8: where nothing asks, nothing is answered.
#[tokio::test]
async fn a_batch_without_requests_is_202() {
    let gateway = TestGateway::new().start().await;
    let client = gateway.client("/mcp").initialize("2025-03-26").await.header("accept", "text/html");
    let response = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
    for batch in [json!([note()]), json!([note(), note()]), json!([response]), json!([response, note()])] {
        let answer = client.post(&batch).await;
        assert_eq!(answer.status, StatusCode::ACCEPTED, "{batch}");
        assert_eq!(answer.text().await, "", "{batch}");
    }
}

/// What is no batch is 400 as a whole, and nothing of it runs.
#[tokio::test]
async fn a_batch_that_is_none_is_400_and_nothing_of_it_runs() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = gateway.client("/mcp").initialize("2025-03-26").await;
    let call = request(1, "tools/call", tool("mcp_u1_echo", json!({})));
    let many: Vec<Value> = (0..101).map(|n| request(n, "ping", json!({}))).collect();
    for batch in [
        json!([]),
        json!([call, 1]),
        json!([call, [call]]),
        json!([call, {"jsonrpc": "2.0", "id": null, "method": "ping"}]),
        json!([call, {"id": 2, "method": "ping"}]),
        json!([call, init("2025-03-26", json!({}))]),
        json!(many),
    ] {
        let answer = client.post(&batch).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{batch}");
        assert_eq!(answer.json().await["error"]["code"], -32600, "{batch}");
    }
    let broken = client.send(Method::POST, r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}"#).await;
    assert_eq!(broken.status, StatusCode::BAD_REQUEST);
    assert_eq!(broken.json().await["error"]["code"], -32700);
    assert_eq!(server.count(rpc("tools/call")), 0);
}

/// Every other revision has no batches: 400 -32600.
#[tokio::test]
async fn other_revisions_have_no_batches() {
    let gateway = TestGateway::new().start().await;
    for revision in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let client = gateway.client("/mcp").initialize(revision).await;
        for batch in [json!([request(1, "ping", json!({}))]), json!([note()])] {
            let answer = client.post(&batch).await;
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{revision}");
            assert_eq!(answer.json().await["error"]["code"], -32600, "{revision}");
        }
    }
    let without = gateway.client("/mcp").post(&json!([init("2025-03-26", json!({}))])).await;
    assert_eq!(without.status, StatusCode::BAD_REQUEST, "initialize is no part of a batch");
}
