//! Resources: every URI that a caller was given leads back to its server.

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::Client;
use crate::gateway::TestGateway;
use crate::http_server::{Answer, HttpServer, http, message, rpc};
use crate::kit::{call, server_with, session};

/// A server with these resources and templates that tells by which URI it was asked, and who it is.
async fn library(name: &'static str, resources: &[&str], templates: &[&str]) -> HttpServer {
    let server = server_with(r#"{"tools":{},"resources":{"subscribe":true},"completions":{}}"#).await;
    let resources: Vec<Value> = resources.iter().map(|u| json!({"uri": u, "name": u})).collect();
    let templates: Vec<Value> = templates.iter().map(|u| json!({"uriTemplate": u, "name": u})).collect();
    server.on(rpc("resources/list"), Answer::result(&json!({ "resources": resources }).to_string()));
    server.on(
        rpc("resources/templates/list"),
        Answer::result(&json!({ "resourceTemplates": templates }).to_string()),
    );
    server.on_each(rpc("resources/read"), move |seen| {
        let uri = seen.json()["params"]["uri"].clone();
        Answer::result(&json!({"contents": [{"uri": uri, "text": name}]}).to_string())
    });
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        server.on(move |seen| seen.is(method), Answer::result("{}"));
    }
    server.on_each(rpc("completion/complete"), move |seen| {
        let reference = seen.json()["params"]["ref"].clone();
        let values = json!([name, reference.to_string()]);
        Answer::result(&json!({"completion": {"values": values}}).to_string())
    });
    server
}

async fn read(client: &Client, uri: &str) -> Value {
    let answer = client.call(1, "resources/read", json!({ "uri": uri })).await;
    assert!(answer["result"].is_object(), "{uri} -> {answer}");
    answer["result"]["contents"][0].clone()
}

/// case-G13: an expanded template leads to its server; of two that fit the more specific one is meant.
#[tokio::test]
async fn expanded_templates_lead_to_their_server() {
    let db = library("db", &["db://index"], &["db://{t}/rows/{id}", "db://{t}/rows/{id}/cols/{c}"]).await;
    let special = library("special", &[], &["db://special/rows/{id}", "file:///{+path}"]).await;
    let gateway = TestGateway::new().http("db", db.url()).http("special", special.url()).start().await;
    let client = session(&gateway).await;
    for (uri, server) in [
        ("db://index", "db"),
        ("db://a/rows/1", "db"),
        ("db://a/rows/1/cols/x", "db"),
        ("db://special/rows/1", "special"),
        ("db://special/rows/1/cols/2", "db"),
        ("file:///a/b%20c.txt", "special"),
    ] {
        assert_eq!(read(&client, uri).await, json!({"uri": uri, "text": server}));
    }
    let unknown = client.call(2, "resources/read", json!({"uri": "db://a/b/c/rows"})).await;
    assert_eq!(unknown["error"]["code"], -32002, "{unknown}");
    assert_eq!(unknown["id"], 2);
}

/// case-G13: a URI of two servers stays as it is for the first and names its server for the other; what is read,
/// subscribed to, told and completed by it stays so.
#[tokio::test]
async fn a_uri_of_two_servers_names_its_server_for_the_second() {
    let one = library("one", &["x://a"], &["x://{t}/t"]).await;
    let two = library("two", &["x://a", "x://b"], &["x://{t}/t"]).await;
    let (feed, stream) = Answer::fed();
    two.on(http(http::Method::GET), stream);
    let gateway = TestGateway::new().http("one", one.url()).http("two", two.url()).start().await;
    let client = session(&gateway).await;
    let list = client.call(1, "resources/list", json!({})).await;
    let uris: Vec<_> =
        list["result"]["resources"].as_array().expect("a list").iter().map(|r| &r["uri"]).collect();
    assert_eq!(uris, ["x://a", "mcpgate:two/x://a", "x://b"]);
    let templates = client.call(1, "resources/templates/list", json!({})).await;
    let templates = templates["result"]["resourceTemplates"].as_array().expect("a list");
    assert_eq!(templates[1]["uriTemplate"], "mcpgate:two/x://{t}/t");

    assert_eq!(read(&client, "x://a").await, json!({"uri": "x://a", "text": "one"}));
    for (uri, text) in [
        ("mcpgate:two/x://a", "two"),
        ("mcpgate:two/x://q/t", "two"),
        ("mcpgate:one/x://a", "one"),
        ("x://b", "two"),
    ] {
        assert_eq!(read(&client, uri).await, json!({"uri": uri, "text": text}));
    }
    for uri in ["mcpgate:nobody/x://a", "mcpgate:", "mcpgate:two"] {
        let answer = client.call(2, "resources/read", json!({ "uri": uri })).await;
        assert_eq!(answer["error"]["code"], -32002, "{uri} -> {answer}");
    }

    let mut get = client.open_get().await;
    let subscribed = client.call(3, "resources/subscribe", json!({"uri": "mcpgate:two/x://a"})).await;
    assert_eq!(subscribed["result"], json!({}));
    let seen = two.await_request(rpc("resources/subscribe")).await;
    assert_eq!(seen.json()["params"]["uri"], "x://a");
    feed.send(message(
        r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x://a"}}"#,
    ))
    .await;
    let told = get.message().await.expect("an update");
    assert_eq!(told["params"]["uri"], "mcpgate:two/x://a", "{told}");
    // A child of what was subscribed to (N7).
    feed.send(message(
        r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x://a/child"}}"#,
    ))
    .await;
    let told = get.message().await.expect("an update");
    assert_eq!(told["params"]["uri"], "mcpgate:two/x://a/child", "{told}");
    let gone = client.call(4, "resources/unsubscribe", json!({"uri": "mcpgate:two/x://a"})).await;
    assert_eq!(gone["result"], json!({}));
    assert_eq!(two.await_request(rpc("resources/unsubscribe")).await.json()["params"]["uri"], "x://a");

    for (uri, server) in [("x://{t}/t", "one"), ("mcpgate:two/x://{t}/t", "two")] {
        let params =
            json!({"ref": {"type": "ref/resource", "uri": uri}, "argument": {"name": "t", "value": "q"}});
        let answer = client.call(5, "completion/complete", params).await;
        let values = &answer["result"]["completion"]["values"];
        assert_eq!(values[0], server, "{answer}");
        assert!(values[1].as_str().is_some_and(|r| r.contains(r#""x://{t}/t""#)), "{answer}");
    }
}

/// case-G13: a resource that only a result linked to can be read afterwards, wherever it is; and one that two
/// servers have leads back to the one that linked to it.
#[tokio::test]
async fn links_inside_results_can_be_read() {
    let one = library("one", &["x://both"], &["any:{+rest}"]).await;
    let two = library("two", &[], &[]).await;
    let result = json!({"content": [
        {"type": "text", "text": "x://both resource_link"},
        {"type": "resource_link", "uri": "y://hidden", "name": "h"},
        {"type": "resource_link", "uri": "any:two", "name": "a"},
        {"type": "resource_link", "name": "b", "uri": "x://both"},
        {"type": "resource", "resource": {"uri": "x://both", "text": "t"}},
    ], "structuredContent": {"uri": "x://both"}});
    two.on(rpc("tools/call"), Answer::result(&result.to_string()));
    let gateway = TestGateway::new().http("one", one.url()).http("two", two.url()).start().await;
    let client = session(&gateway).await;
    client.call(1, "resources/list", json!({})).await;
    let unknown = client.call(2, "resources/read", json!({"uri": "y://hidden"})).await;
    assert_eq!(unknown["error"]["code"], -32002);
    let answer = call(&client, 3, "mcp_two_echo", json!({})).await;
    let mut expected = result.clone();
    expected["content"][3]["uri"] = json!("mcpgate:two/x://both");
    expected["content"][4]["resource"]["uri"] = json!("mcpgate:two/x://both");
    assert_eq!(answer["result"], expected);
    for uri in ["y://hidden", "any:two", "mcpgate:two/x://both"] {
        assert_eq!(read(&client, uri).await["text"], "two", "{uri}");
    }
    assert_eq!(read(&client, "x://both").await["text"], "one");
    assert_eq!(read(&client, "any:other").await["text"], "one");
}

/// case-G13: where one server alone has resources, a URI that it never listed is its own to judge.
#[tokio::test]
async fn the_only_server_with_resources_judges_unlisted_uris() {
    let one = library("one", &["x://a"], &[]).await;
    let other = HttpServer::start().await;
    let gateway = TestGateway::new().http("other", other.url()).http("one", one.url()).start().await;
    let client = session(&gateway).await;
    assert_eq!(read(&client, "z://dynamic/7").await["text"], "one");
    assert_eq!(other.count(rpc("resources/read")), 0);
}

/// case-G13: completion for a prompt goes to its server under its own name.
#[tokio::test]
async fn completion_for_a_prompt_goes_to_its_server() {
    let one = library("one", &[], &[]).await;
    let two = server_with(r#"{"prompts":{},"completions":{}}"#).await;
    two.on(rpc("prompts/list"), Answer::result(r#"{"prompts":[{"name":"p"}]}"#));
    two.on_each(rpc("completion/complete"), |seen| {
        let name = seen.json()["params"]["ref"]["name"].clone();
        Answer::result(&json!({"completion": {"values": [name], "hasMore": false}}).to_string())
    });
    let gateway = TestGateway::new().http("one", one.url()).http("two", two.url()).start().await;
    let client = session(&gateway).await;
    let ask = |reference: Value| json!({"ref": reference, "argument": {"name": "a", "value": "v"}, "context": {"arguments": {"b": "c"}}});
    let answer =
        client.call(1, "completion/complete", ask(json!({"type": "ref/prompt", "name": "mcp_two_p"}))).await;
    assert_eq!(answer["result"]["completion"], json!({"values": ["p"], "hasMore": false}));
    for wrong in [
        json!({"type": "ref/prompt", "name": "mcp_two_q"}),
        json!({"type": "ref/tool", "name": "mcp_two_p"}),
        json!({"type": "ref/prompt"}),
        json!("mcp_two_p"),
    ] {
        let answer = client.call(2, "completion/complete", ask(wrong.clone())).await;
        assert_eq!(answer["error"]["code"], -32602, "{wrong} -> {answer}");
    }
}

/// Subscriptions of one session are no other's; an update is told once, however often it comes.
#[tokio::test]
async fn an_update_is_told_to_the_session_that_subscribed() {
    let server = library("one", &["x://a"], &[]).await;
    let (feed, stream) = Answer::fed();
    server.once(http(http::Method::GET), stream);
    let gateway = TestGateway::new().http("one", server.url()).start().await;
    let (a, b) = (session(&gateway).await, session(&gateway).await);
    a.call(1, "resources/subscribe", json!({"uri": "x://a"})).await;
    server.await_request(http(http::Method::GET)).await;
    b.call(1, "resources/read", json!({"uri": "x://a"})).await;
    let (mut of_a, mut of_b) = (a.open_get().await, b.open_get().await);
    feed.send(message(
        r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x://a"}}"#,
    ))
    .await;
    assert_eq!(of_a.message().await.expect("an update")["params"]["uri"], "x://a");
    let nothing = tokio::time::timeout(Duration::from_millis(300), of_b.message()).await;
    assert!(nothing.is_err(), "{nothing:?}");
}
