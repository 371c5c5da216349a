//! Messages that two readers would read in two ways never leave.

use http::Method;
use serde_json::{Value, json};

use crate::gateway::TestGateway;
use crate::http_server::{Answer, HttpServer, rpc};
use crate::kit::{REVISION, offers, server_with};

/// case-G07: a name that stands twice, in whatever spelling, reaches no server, by any method that routes by it.
#[tokio::test]
async fn a_member_that_stands_twice_reaches_no_server() {
    let server = server_with(r#"{"tools":{},"prompts":{},"resources":{},"completions":{}}"#).await;
    offers(&server, &["ok", "denied"]);
    server.on(rpc("prompts/list"), Answer::result(r#"{"prompts":[{"name":"ok"},{"name":"denied"}]}"#));
    server.on(rpc("resources/list"), Answer::result(r#"{"resources":[{"uri":"ok","name":"x"}]}"#));
    server.on(rpc("resources/templates/list"), Answer::result(r#"{"resourceTemplates":[]}"#));
    let gateway = TestGateway::new()
        .http("u1", server.url())
        .adjust(|s| s.exclude = vec!["denied".into()])
        .start()
        .await;
    let clients =
        [("/mcp", "mcp_u1_"), ("/servers/u1/mcp", "")].map(|(path, prefix)| (gateway.client(path), prefix));
    let doubled = |key: &str, prefix: &str| {
        let escaped = format!("{}\\u{:04x}{}", &key[..1], key.as_bytes()[1], &key[2..]);
        let capital = format!("{}{}", key[..1].to_uppercase(), &key[1..]);
        let upper = key.to_uppercase();
        [key, &escaped, &capital, &upper].map(|other| {
            [
                format!(r#""{key}":"{prefix}ok","{other}":"{prefix}denied","arguments":{{}}"#),
                format!(r#""{other}":"{prefix}denied","arguments":{{}},"{key}":"{prefix}ok""#),
            ]
        })
    };
    for (client, prefix) in clients {
        let client = client.initialize(REVISION).await;
        let mut bodies = Vec::new();
        for (method, key) in [
            ("tools/call", "name"),
            ("prompts/get", "name"),
            ("resources/read", "uri"),
            ("resources/subscribe", "uri"),
        ] {
            for params in doubled(key, prefix).into_iter().flatten() {
                bodies
                    .push(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}}}}}"#));
            }
        }
        for reference in doubled("name", prefix).into_iter().flatten() {
            bodies.push(format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{{"ref":{{"type":"ref/prompt",{reference}}},"argument":{{"name":"a","value":""}}}}}}"#
            ));
        }
        let call = |name: &str| format!(r#"{{"name":"{prefix}{name}","arguments":{{}}}}"#);
        let (ok, denied) = (call("ok"), call("denied"));
        for envelope in [
            format!(r#""method":"tools/call","params":{ok},"params":{denied}"#),
            format!(r#""method":"tools/call","params":{ok},"p\u0061rams":{denied}"#),
            format!(r#""method":"tools/call","params":{ok},"Params":{denied}"#),
            format!(r#""method":"tools/call","param\u017f":{denied},"params":{ok}"#),
            format!(r#""method":"prompts/get","Method":"tools/call","params":{ok}"#),
            format!(r#""method":"ping","method":"tools/call","params":{ok}"#),
            format!(r#""method":"tools/call","params":{ok},"ID":2"#),
        ] {
            bodies.push(format!(r#"{{"jsonrpc":"2.0","id":1,{envelope}}}"#));
        }
        for body in bodies {
            let answer = client.send(Method::POST, body.clone()).await;
            let answer: Value = answer.json().await;
            let code = answer["error"]["code"].as_i64();
            assert!(matches!(code, Some(-32602 | -32600 | -32700)), "{body} -> {answer}");
        }
    }
    for method in
        ["tools/call", "prompts/get", "resources/read", "resources/subscribe", "completion/complete"]
    {
        assert_eq!(server.count(|seen| seen.is(method)), 0, "{method}");
    }
}

/// case-G07: `Name` is not `name`: alone it names nothing.
#[tokio::test]
async fn a_name_in_another_case_names_nothing() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    for path in ["/mcp", "/servers/u1/mcp"] {
        let client = gateway.client(path).initialize(REVISION).await;
        for params in [
            json!({"Name": "mcp_u1_echo"}),
            json!({"NAME": "echo"}),
            json!({}),
            json!({"name": 5}),
            json!({"name": ["echo"]}),
            json!({"name": null}),
            json!(["echo"]),
        ] {
            let answer = client.call("n", "tools/call", params.clone()).await;
            assert_eq!(answer["error"]["code"], -32602, "{params} -> {answer}");
            assert_eq!(answer["id"], "n");
        }
    }
    assert_eq!(server.count(rpc("tools/call")), 0);
}

/// case-G07: what is inside the arguments is the tool's own business and passes, doubled or not.
#[tokio::test]
async fn arguments_are_not_looked_into() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = gateway.client("/mcp").initialize(REVISION).await;
    let arguments = r#"{"name":"a","name":"b","Name":"c","params":{"x":1,"x":2}}"#;
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"mcp_u1_echo","arguments":{arguments}}}}}"#
    );
    let answer: Value = client.send(Method::POST, body).await.response().await;
    assert!(answer["result"].is_object(), "{answer}");
    let seen = server.await_request(rpc("tools/call")).await;
    assert!(seen.text().contains(arguments), "{}", seen.text());
}

/// case-G07: a doubled progress token is refused too: it would be two tokens at the server.
#[tokio::test]
async fn a_doubled_progress_token_reaches_no_server() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = gateway.client("/mcp").initialize(REVISION).await;
    for meta in [r#"{"progressToken":1,"progressToken":2}"#, r#"{"progressToken":1,"progressT\u006fken":2}"#]
    {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"mcp_u1_echo","_meta":{meta}}}}}"#
        );
        let answer: Value = client.send(Method::POST, body).await.json().await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    assert_eq!(server.count(rpc("tools/call")), 0);
}
