//! What callers call tools and prompts, and that every listed name can be called.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::gateway::{Setup, TestGateway};
use crate::http_server::{Answer, HttpServer, rpc};
use crate::kit::{REVISION, call, names, offers, server_with, session, tools};
use mcpgate::settings::EndpointSettings;

/// Names that no model API would take as they are, and pairs that differ in what must be mapped only.
const STRANGE: [&str; 12] = [
    "short",
    "a.b/c d",
    "a_b/c d",
    "a.b.c d",
    "文件",
    "文件x",
    "UPPER.case",
    "tab\tand \"quote\" \\",
    "x-y_z",
    "emoji 🦀",
    "servicenow_a_tool_with_a_name_that_is_far_too_long_for_anybody_to_take_it_1",
    "servicenow_a_tool_with_a_name_that_is_far_too_long_for_anybody_to_take_it_2",
];

/// case-G01: names are legal, unique, the same after a restart, and every one can be called.
#[tokio::test]
async fn every_name_is_legal_unique_stable_and_callable() {
    let server = HttpServer::start().await;
    offers(&server, &STRANGE);
    echoes_names(&server);
    let mut before = Vec::new();
    for _ in 0..2 {
        let gateway = TestGateway::new().http("servicenow", server.url()).start().await;
        let client = session(&gateway).await;
        let all = tools(&client).await;
        assert_eq!(all.len(), STRANGE.len());
        for (name, own) in all.iter().zip(STRANGE) {
            let legal = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
            assert!(name.len() <= 48 && name.bytes().all(legal), "{name}");
            let answer = call(&client, 1, name, json!({})).await;
            assert_eq!(answer["result"]["content"][0]["text"], own, "{name}");
        }
        let unique: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(unique.len(), all.len());
        assert!(before.is_empty() || before == all, "the same after a restart");
        before = all;
    }
    assert_eq!(before[0], "mcp_servicenow_short");
}

/// case-G01: the same for prompts.
#[tokio::test]
async fn every_prompt_has_a_name_by_which_it_is_got() {
    let server = server_with(r#"{"prompts":{}}"#).await;
    let prompts: Vec<Value> = STRANGE.iter().map(|n| json!({ "name": n })).collect();
    server.on(rpc("prompts/list"), Answer::result(&json!({ "prompts": prompts }).to_string()));
    server.on_each(rpc("prompts/get"), |seen| {
        let name = seen.json()["params"]["name"].clone();
        Answer::result(&json!({"messages": [], "description": name}).to_string())
    });
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = session(&gateway).await;
    let listed = client.call(1, "prompts/list", json!({})).await;
    let listed = listed["result"]["prompts"].as_array().expect("prompts");
    assert_eq!(listed.len(), STRANGE.len());
    for (prompt, own) in listed.iter().zip(STRANGE) {
        let answer = client.call(2, "prompts/get", json!({"name": prompt["name"]})).await;
        assert_eq!(answer["result"]["description"], own);
    }
}

/// case-G03: a name does not depend on which other servers there are, nor on their order or state.
#[tokio::test]
async fn a_name_does_not_depend_on_other_servers() {
    let (u1, u2) = (HttpServer::start().await, HttpServer::start().await);
    offers(&u1, &["search", "a.b"]);
    offers(&u2, &["search", "a.b"]);
    let dead = "http://127.0.0.1:1/mcp".parse::<url::Url>().expect("a URL");
    let setups: Vec<Setup> = vec![
        TestGateway::new().http("one", u1.url()),
        TestGateway::new().http("one", u1.url()).http("two", u2.url()),
        TestGateway::new().http("two", u2.url()).http("one", u1.url()),
        TestGateway::new().http("two", dead).http("one", u1.url()),
    ];
    for setup in setups {
        let gateway = setup.start().await;
        let all = tools(&session(&gateway).await).await;
        let of_one: Vec<_> = all.iter().filter(|n| n.starts_with("mcp_one_")).collect();
        assert_eq!(of_one.len(), 2, "{all:?}");
        assert_eq!(*of_one[0], "mcp_one_search");
        assert!(of_one[1].starts_with("mcp_one_a_b_"), "{all:?}");
    }
}

/// case-G03: servers whose qualified names would meet stay apart: the first keeps the name, the other is left out.
#[tokio::test]
async fn names_that_meet_lead_to_the_first_server() {
    let (u1, u2) = (HttpServer::start().await, HttpServer::start().await);
    offers(&u1, &["b_c"]);
    offers(&u2, &["c", "d"]);
    echoes_names(&u1);
    echoes_names(&u2);
    let gateway = TestGateway::new().http("a", u1.url()).http("a_b", u2.url()).start().await;
    let client = session(&gateway).await;
    assert_eq!(tools(&client).await, ["mcp_a_b_c", "mcp_a_b_d"]);
    assert_eq!(call(&client, 1, "mcp_a_b_c", json!({})).await["result"]["content"][0]["text"], "b_c");
    assert_eq!(call(&client, 2, "mcp_a_b_d", json!({})).await["result"]["content"][0]["text"], "d");
}

/// case-G01: on the endpoint of one server names are its own, to the byte.
#[tokio::test]
async fn on_the_endpoint_of_one_server_names_are_its_own() {
    let server = HttpServer::start().await;
    offers(&server, &STRANGE);
    echoes_names(&server);
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = gateway.client("/servers/u1/mcp").initialize(REVISION).await;
    assert_eq!(tools(&client).await, STRANGE);
    for own in STRANGE {
        assert_eq!(call(&client, 1, own, json!({})).await["result"]["content"][0]["text"], own);
    }
}

/// case-G01: template and length come from the config.
#[tokio::test]
async fn the_form_of_names_is_configured() {
    let server = HttpServer::start().await;
    offers(&server, &["short", "a_name_that_is_too_long"]);
    echoes_names(&server);
    let gateway = TestGateway::new()
        .http("u1", server.url())
        .with(|s| {
            s.names.template = "{server}__{tool}".into();
            s.names.max_length = 20;
        })
        .start()
        .await;
    let client = session(&gateway).await;
    let all = tools(&client).await;
    assert_eq!(all[0], "u1__short");
    assert!(all[1].len() <= 20 && all[1].starts_with("u1__a_name"), "{all:?}");
    let answer = call(&client, 1, &all[1], json!({})).await;
    assert_eq!(answer["result"]["content"][0]["text"], "a_name_that_is_too_long");
}

/// case-G15: what cannot be offered is left out and counted; everything else stays.
#[tokio::test]
async fn malformed_items_are_left_out_and_counted() {
    let server = server_with(r#"{"tools":{},"prompts":{},"resources":{}}"#).await;
    server.on(
        rpc("tools/list"),
        Answer::result(
            r#"{"tools":[{"name":"ok","inputSchema":{}},{"name":5,"inputSchema":{}},{"name":"a"},
                "text",null,{"name":"","inputSchema":{}},{"name":"b","inputSchema":"x"},
                {"name":"c","name":"d","inputSchema":{}},{"name":"ok2","inputSchema":{}}]}"#,
        ),
    );
    server.on(rpc("prompts/list"), Answer::result(r#"{"prompts":[{"title":"x"},{"name":"p"}]}"#));
    server.on(
        rpc("resources/list"),
        Answer::result(r#"{"resources":[{"uri":7},{"uri":"x://a","name":"a"},{"name":"b"}]}"#),
    );
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = session(&gateway).await;
    assert_eq!(tools(&client).await, ["mcp_u1_ok", "mcp_u1_ok2"]);
    assert_eq!(gateway.sample(r#"mcpgate_tools_quarantined{server="u1"}"#), 7.0);
    assert_eq!(gateway.sample(r#"mcpgate_tools_listed{server="u1"}"#), 2.0);
    let prompts = client.call(1, "prompts/list", json!({})).await;
    assert_eq!(prompts["result"]["prompts"], json!([{"name": "mcp_u1_p"}]));
    let resources = client.call(1, "resources/list", json!({})).await;
    assert_eq!(resources["result"]["resources"], json!([{"uri": "x://a", "name": "a"}]));
}

/// What is hidden, by endpoint or by server, is neither listed nor called, and answers to the
/// byte like what never was.
#[tokio::test]
async fn a_hidden_tool_answers_like_an_unknown_one() {
    let server = HttpServer::start().await;
    offers(&server, &["read_file", "read_secret", "write_file", "other"]);
    echoes_names(&server);
    let gateway = TestGateway::new()
        .http("fs", server.url())
        .adjust(|s| s.exclude = vec!["*_secret".into()])
        .http("inc", server.url())
        .adjust(|s| s.include = vec!["read_*".into()])
        .with(|s| {
            s.endpoints.push(EndpointSettings {
                name: "readers".into(),
                servers: vec!["fs".into()],
                allow: vec!["mcp_fs_*".into()],
                deny: vec!["*_write_*".into(), "*_other".into()],
                ..EndpointSettings::default()
            });
        })
        .start()
        .await;
    let shown = [
        (
            "/mcp",
            vec![
                "mcp_fs_read_file",
                "mcp_fs_write_file",
                "mcp_fs_other",
                "mcp_inc_read_file",
                "mcp_inc_read_secret",
            ],
        ),
        ("/readers/mcp", vec!["mcp_fs_read_file"]),
        ("/servers/fs/mcp", vec!["read_file", "write_file", "other"]),
        ("/servers/inc/mcp", vec!["read_file", "read_secret"]),
    ];
    for (path, expected) in shown {
        let client = gateway.client(path).initialize(REVISION).await;
        assert_eq!(tools(&client).await, expected, "{path}");
        for name in &expected {
            assert!(call(&client, 1, name, json!({})).await["result"].is_object(), "{path} {name}");
        }
        let prefix = if path.starts_with("/servers/") { "" } else { "mcp_fs_" };
        for own in ["read_file", "read_secret", "write_file", "other"] {
            let name = format!("{prefix}{own}");
            if expected.contains(&name.as_str()) {
                continue;
            }
            let mut hidden = call(&client, 1, &name, json!({})).await;
            let mut unknown = call(&client, 1, "no_such_tool", json!({})).await;
            for answer in [&mut hidden, &mut unknown] {
                answer["error"]["data"]["mcpgate"]["requestId"].take();
            }
            assert_eq!(hidden["error"]["code"], -32602, "{path} {name}");
            assert_eq!(hidden.to_string().replace(&name, "no_such_tool"), unknown.to_string());
        }
    }
    let called = server.requests().into_iter().filter(|seen| seen.is("tools/call"));
    let called: Vec<String> = called.filter_map(|seen| seen.param("name")).collect();
    assert!(!called.is_empty() && !called.contains(&"\"no_such_tool\"".to_owned()), "{called:?}");
}

/// The endpoint's own order of servers counts there.
#[tokio::test]
async fn an_endpoint_shows_its_servers_in_its_order() {
    let servers = join_all((0..3).map(|_| HttpServer::start())).await;
    let gateway = TestGateway::new()
        .http("a", servers[0].url())
        .http("b", servers[1].url())
        .http("c", servers[2].url())
        .with(|s| {
            s.endpoints.push(EndpointSettings {
                name: "some".into(),
                servers: vec!["c".into(), "a".into()],
                allow: Vec::new(),
                deny: Vec::new(),
                ..EndpointSettings::default()
            });
        })
        .start()
        .await;
    let client = gateway.client("/some/mcp").initialize(REVISION).await;
    assert_eq!(tools(&client).await, ["mcp_c_echo", "mcp_a_echo"]);
    assert_eq!(call(&client, 1, "mcp_b_echo", json!({})).await["error"]["code"], -32602);
    assert_eq!(servers[1].requests().len(), 0);
    let all = gateway.client("/mcp").initialize(REVISION).await;
    let list = all.call(1, "tools/list", json!({})).await;
    assert_eq!(names(&list), ["mcp_a_echo", "mcp_b_echo", "mcp_c_echo"]);
}

/// Answers calls with the name that the server was called by.
fn echoes_names(server: &HttpServer) {
    server.on_each(rpc("tools/call"), |seen| {
        let name = seen.json()["params"]["name"].clone();
        Answer::result(&json!({"content": [{"type": "text", "text": name}]}).to_string())
    });
}
