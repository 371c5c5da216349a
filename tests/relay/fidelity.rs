//! What is not ours to change passes byte for byte.

use serde_json::json;

use crate::client::{Client, init};
use crate::gateway::TestGateway;
use crate::http_server::{Answer, HttpServer, message, raw, rpc};
use crate::kit::{REVISION, server_with, session};

/// Keys in no order, numbers that no float holds, spellings that a parser would change, members of revisions to
/// come, and text that must be escaped.
const RICH: &str = r##"{"zzz":{"b":1,"a":2},"$schema":"https://json-schema.org/draft/2020-12/schema","big":12345678901234567890123,"one":1.0,"exp":1e2,"neg":-0.0,"tiny":1E-400,"$defs":{"x":{"const":null}},"$ref":"#/$defs/x","anyOf":[{"type":["string","null"]},{}],"x-unknown":[[],[[]],{}],"~/odd key":"~","":"empty","unicode":"é\u00e9\ud83e\udd80🦀\u2028","escaped":"\/\"\\\b\f\n\r\t\u0001","name":"inner name","id":7,"uri":"x://inner","_meta":{"progressToken":"inner","k":0.10}}"##;

/// case-G05: a tool is listed as its server wrote it but for its name: unknown members, order, spellings.
#[tokio::test]
async fn a_listed_tool_is_the_servers_own_text() {
    let head = r#"{"zeta":1.0 , "title":"T","annotations":{"readOnlyHint":true,"future":1e2},"#;
    let tail = format!(
        r#" "inputSchema": {RICH},"outputSchema":{RICH},"icons":[{{"src":"x"}}],"execution":{{"taskSupport":"optional"}},"_meta":{RICH},"future":{RICH}}}"#
    );
    let tool = |name: &str| format!("{head}\"name\" : \"{name}\",{tail}");
    let server = HttpServer::start().await;
    server.on(rpc("tools/list"), Answer::result(&format!(r#"{{"tools":[{}]}}"#, tool("t"))));
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    for (path, name) in [("/mcp", "mcp_u1_t"), ("/servers/u1/mcp", "t")] {
        let client = gateway.client(path).initialize(REVISION).await;
        let text = post(&client, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#).await;
        assert_eq!(text, format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{}]}}}}"#, tool(name)));
    }
}

/// case-G05: the same for prompts, resources and templates.
#[tokio::test]
async fn prompts_resources_and_templates_are_the_servers_own_text() {
    let server = server_with(r#"{"prompts":{},"resources":{}}"#).await;
    let prompt = |name: &str| format!(r#"{{"arguments":[{RICH}],"name":"{name}","x":{RICH}}}"#);
    let resource = format!(r#"{{"name":"r","size":1.0,"uri":"x://a b","x":{RICH}}}"#);
    let template = format!(r#"{{"name":"r","uriTemplate":"x://{{t}}","x":{RICH}}}"#);
    server.on(rpc("prompts/list"), Answer::result(&format!(r#"{{"prompts":[{}]}}"#, prompt("p"))));
    server.on(rpc("resources/list"), Answer::result(&format!(r#"{{"resources":[{resource}]}}"#)));
    server.on(
        rpc("resources/templates/list"),
        Answer::result(&format!(r#"{{"resourceTemplates":[{template}]}}"#)),
    );
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = session(&gateway).await;
    for (method, member, item) in [
        ("prompts/list", "prompts", prompt("mcp_u1_p")),
        ("resources/list", "resources", resource),
        ("resources/templates/list", "resourceTemplates", template),
    ] {
        let text = post(&client, &format!(r#"{{"jsonrpc":"2.0","id":"x","method":"{method}"}}"#)).await;
        assert_eq!(text, format!(r#"{{"jsonrpc":"2.0","id":"x","result":{{"{member}":[{item}]}}}}"#));
    }
}

/// case-G05: the arguments of a call and all around them reach the server as the caller wrote them; the result, an
/// error with its data included, comes back so. Only id, name and progress token change.
#[tokio::test]
async fn calls_and_results_pass_byte_for_byte() {
    let server = server_with(r#"{"tools":{},"prompts":{},"resources":{}}"#).await;
    server.on(rpc("prompts/list"), Answer::result(r#"{"prompts":[{"name":"echo"}]}"#));
    server.on(rpc("resources/list"), Answer::result(r#"{"resources":[{"uri":"x://a","name":"a"}]}"#));
    server.on(rpc("resources/templates/list"), Answer::result(r#"{"resourceTemplates":[]}"#));
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = session(&gateway).await;
    for (method, key, ours, own) in [
        ("tools/call", "name", "mcp_u1_echo", "echo"),
        ("prompts/get", "name", "mcp_u1_echo", "echo"),
        ("resources/read", "uri", "x://a", "x://a"),
    ] {
        server.on(move |seen| seen.is(method), Answer::result(RICH));
        let body = |id: &str, name: &str, token: &str| {
            format!(
                r#"{{ "zz" : {RICH}, "method":"{method}" ,"params": {{"arguments":{RICH}, "{key}" :"{name}","future":{RICH},"_meta":{{"a":{RICH},"progressToken" : {token},"z":1.0}}}},"jsonrpc":"2.0", "id" : {id} }}"#
            )
        };
        let answer = post(&client, &body("\"my \\u0069d\"", ours, "\"tok\"")).await;
        assert_eq!(answer, format!(r#"{{"jsonrpc":"2.0","id":"my \u0069d","result":{RICH}}}"#));
        let seen = server.await_request(move |seen| seen.is(method)).await;
        let id = seen.id.clone().expect("an id");
        assert_eq!(seen.text(), body(&id, own, &id), "{method}");
    }
    let error = format!(r#"{{"code":-32099,"message":"no","data":{RICH},"x":1.0}}"#);
    server.on_each(rpc("tools/call"), {
        let error = error.clone();
        move |seen| {
            let id = seen.id.as_deref().expect("an id");
            Answer::json(format!(r#"{{"jsonrpc":"2.0","error":{error},"id":{id},"x":1.0}}"#))
        }
    });
    let call =
        r#"{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/call","params":{"name":"mcp_u1_echo"}}"#;
    let answer = post(&client, call).await;
    assert_eq!(answer, format!(r#"{{"jsonrpc":"2.0","error":{error},"id":9007199254740993,"x":1.0}}"#));
}

/// case-G05: the same over streams: results, and what comes before them.
#[tokio::test]
async fn messages_on_streams_pass_byte_for_byte() {
    let server = HttpServer::start().await;
    let note = format!(r#"{{"method":"notifications/message","params":{RICH},"jsonrpc":"2.0","x":1.0}}"#);
    let unknown = format!(r#"{{"method":"notifications/of/the/future","params":{RICH},"jsonrpc":"2.0"}}"#);
    server.on_each(rpc("tools/call"), {
        let (note, unknown) = (note.clone(), unknown.clone());
        move |seen| {
            let id = seen.id.as_deref().expect("an id");
            let progress = format!(
                r#"{{"params":{{"total":1e2,"progressToken":{id},"progress":1.0,"x":{RICH}}},"jsonrpc":"2.0","method":"notifications/progress"}}"#
            );
            let result = format!(r#"{{"result":{RICH},"id":{id},"jsonrpc":"2.0"}}"#);
            Answer::events([message(&note), message(&unknown), message(&progress), raw(format!("data:{result}\n\n"))])
        }
    });
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = session(&gateway).await;
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mcp_u1_echo","_meta":{"progressToken":"T"}}}"#;
    let mut stream = client.send(http::Method::POST, call.to_owned()).await.stream();
    let mut texts = Vec::new();
    while let Some(event) = stream.event().await {
        if !event.data.is_empty() {
            texts.push(String::from_utf8(event.data.to_vec()).expect("UTF-8"));
        }
    }
    let progress = format!(
        r#"{{"params":{{"total":1e2,"progressToken":"T","progress":1.0,"x":{RICH}}},"jsonrpc":"2.0","method":"notifications/progress"}}"#
    );
    assert_eq!(texts, [note, unknown, progress, format!(r#"{{"result":{RICH},"id":1,"jsonrpc":"2.0"}}"#)]);
}

/// case-G05: over stdio as well, where a message may not break its line.
#[tokio::test]
async fn over_stdio_the_text_stays_but_for_line_breaks() {
    let gateway = TestGateway::new().stdio("u1", &[]).start().await;
    let client = session(&gateway).await;
    let line = format!(r#"{{"jsonrpc":"2.0","result":{RICH},"id":$ID}}"#);
    let text = json!(format!("{line}\n"));
    let call = format!(
        "{{\n  \"jsonrpc\": \"2.0\",\r\n  \"id\": \"a\",\n \"method\":\"tools/call\",\"params\":{{\"name\":\"mcp_u1_raw\",\n\"arguments\":{{\"text\":{text}}}}}}}"
    );
    let answer = post(&client, &call).await;
    assert_eq!(answer, format!(r#"{{"jsonrpc":"2.0","result":{RICH},"id":"a"}}"#));
}

/// G21, G28: what a server is told of the caller is the caller's own text, as far as it can be relayed.
#[tokio::test]
async fn the_server_learns_of_the_caller_what_can_be_relayed() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let mut hello = init(
        REVISION,
        json!({"roots": {"listChanged": true, "x": 1}, "sampling": {}, "elicitation": {"form": {}, "url": {}},
            "tasks": {"list": {}}, "vendor": {"y": 2}}),
    );
    hello["params"]["clientInfo"] = json!({"name": "n", "version": "v", "title": "t", "future": [1]});
    let answer = gateway.client("/mcp").post(&hello).await;
    let id = answer.header("mcp-session-id").expect("a session").to_owned();
    let client = gateway.client("/mcp").header("mcp-session-id", &id);
    client.call(1, "tools/list", json!({})).await;
    let seen = server.await_request(rpc("initialize")).await.json();
    assert_eq!(seen["params"]["clientInfo"], hello["params"]["clientInfo"]);
    assert_eq!(
        seen["params"]["capabilities"],
        json!({"roots": {"listChanged": true, "x": 1}, "sampling": {}, "elicitation": {"form": {}, "url": {}},
            "tasks": {}})
    );
}

async fn post(client: &Client, body: &str) -> String {
    client.send(http::Method::POST, body.to_owned()).await.text().await
}
