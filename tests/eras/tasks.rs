//! Tasks of the extension of 2026-07-28, between modern callers and modern servers.

use std::path::Path;

use http::StatusCode;
use mcpgate::settings::EndpointSettings;
use serde_json::{Value, json};

use crate::client::tool;
use crate::credentials::api_key;
use crate::gateway::{Setup, TestGateway};
use crate::http_server::{Answer, HttpServer, message, rpc};
use crate::kit::{LEGACY, ModernClient, auto, modern};

const TASKS: &str = "io.modelcontextprotocol/tasks";

/// The capabilities of a caller that knows tasks.
fn with_tasks() -> Value {
    json!({ "extensions": { TASKS: {} } })
}

fn task(status: &str) -> Value {
    json!({
        "taskId": "t/1 ä", "status": status, "createdAt": "2026-08-01T00:00:00Z",
        "lastUpdatedAt": "2026-08-01T00:00:00Z", "ttlMs": 60000, "pollIntervalMs": 10,
    })
}

fn typed(kind: &str, mut result: Value) -> String {
    result["resultType"] = json!(kind);
    result.to_string()
}

/// A server whose calls become the task `t/1 ä`, which is done.
async fn server() -> HttpServer {
    let server = HttpServer::modern().await;
    let capabilities = json!({ "tools": {}, "extensions": { TASKS: {} } });
    let discovered = json!({
        "supportedVersions": ["2026-07-28"], "capabilities": capabilities, "ttlMs": 0, "cacheScope": "private",
    });
    server.on(rpc("server/discover"), Answer::result(&typed("complete", discovered)));
    server.on(rpc("tools/call"), Answer::result(&typed("task", task("working"))));
    let mut done = task("completed");
    done["result"] = json!({ "content": [{ "type": "text", "text": "done" }], "isError": false });
    server.on(rpc("tasks/get"), Answer::result(&typed("complete", done)));
    for ack in ["tasks/update", "tasks/cancel"] {
        server.on(rpc(ack), Answer::result(r#"{"resultType":"complete"}"#));
    }
    server
}

fn setup(server: &HttpServer) -> Setup {
    TestGateway::new().http("u1", server.url()).adjust(auto)
}

/// Calls the tool and gives the id of the task that it becomes.
async fn begin(caller: &ModernClient, name: &str) -> String {
    let answer = caller.call(1, "tools/call", tool(name, json!({}))).await;
    assert_eq!(answer["result"]["resultType"], "task", "{answer}");
    assert_eq!(answer["result"]["ttlMs"], 60000);
    answer["result"]["taskId"].as_str().unwrap().to_owned()
}

/// An unknown task: -32602, and the server was not asked.
async fn knows_no_task(caller: &ModernClient, id: &str) {
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let answer = caller.call(1, method, json!({ "taskId": id })).await;
        assert_eq!(answer["error"]["code"], -32602, "{method} {answer}");
        assert_eq!(answer["error"]["data"]["mcpgate"]["reason"], "unknown_task");
    }
}

/// G25, J3, J4, J7: a task is reached by the id that its caller was given, and the server by its own.
#[tokio::test]
async fn a_task_is_led_by_its_sealed_id() {
    let server = server().await;
    let gateway = setup(&server).start().await;
    let caller = modern(&gateway, "/mcp").with(with_tasks());
    let id = begin(&caller, "mcp_u1_echo").await;
    assert!(!id.contains("t/1") && id.len() < 512, "{id}");
    assert!(id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b)), "fit for a header: {id}");

    let got = caller.call(2, "tasks/get", json!({ "taskId": id })).await;
    assert_eq!(got["result"]["taskId"], id.as_str(), "{got}");
    assert_eq!(got["result"]["result"]["content"][0]["text"], "done");
    let seen = server.await_request(rpc("tasks/get")).await;
    assert_eq!(seen.json()["params"]["taskId"], "t/1 ä");
    let named =
        mcpgate::protocol::mirror::decode(seen.header("mcp-name").unwrap().as_bytes()).unwrap().into_owned();
    assert_eq!(named, "t/1 ä");

    let answers = json!({ "k": { "action": "accept", "content": {} } });
    let update = json!({ "taskId": id, "inputResponses": answers });
    assert_eq!(caller.call(3, "tasks/update", update).await["result"]["resultType"], "complete");
    let seen = server.await_request(rpc("tasks/update")).await;
    assert_eq!(seen.json()["params"]["inputResponses"], answers);
    assert_eq!(
        caller.call(4, "tasks/cancel", json!({ "taskId": id })).await["result"]["resultType"],
        "complete"
    );
    assert_eq!(server.await_request(rpc("tasks/cancel")).await.json()["params"]["taskId"], "t/1 ä");
}

/// J1: a task for a caller that did not declare the extension on this request is the server's mistake.
#[tokio::test]
async fn nobody_gets_a_task_unasked() {
    let server = server().await;
    let gateway = setup(&server).start().await;
    let caller = modern(&gateway, "/mcp");
    let answer = caller.call(1, "tools/call", tool("mcp_u1_echo", json!({}))).await;
    let data = &answer["error"]["data"]["mcpgate"];
    assert_eq!((&data["reason"], &data["server"]), (&json!("unasked_task"), &json!("u1")), "{answer}");
    let legacy = gateway.client("/mcp").initialize(LEGACY).await;
    let answer = legacy.call(1, "tools/call", tool("mcp_u1_echo", json!({}))).await;
    assert_eq!(answer["error"]["data"]["mcpgate"]["reason"], "bad_result", "X20: {answer}");
}

/// J6: who does not declare the extension may say nothing about tasks.
#[tokio::test]
async fn requests_about_tasks_declare_the_extension() {
    let server = server().await;
    let gateway = setup(&server).start().await;
    let id = begin(&modern(&gateway, "/mcp").with(with_tasks()), "mcp_u1_echo").await;
    let bare = modern(&gateway, "/mcp");
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let answer = bare.post(&bare.request(1, method, json!({ "taskId": id }))).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST);
        let error = &answer.json().await["error"];
        assert_eq!(error["code"], -32021);
        assert_eq!(error["data"]["requiredCapabilities"], with_tasks());
    }
    assert_eq!(server.count(rpc("tasks/get")), 0);
}

/// J8, A19: an id opens for its principal at its endpoint alone, and no byte of it can be changed.
#[tokio::test]
async fn nobody_else_can_use_the_id() {
    let server = server().await;
    let keys = vec![api_key("ann", "ann-key"), api_key("ann", "ann-key-2"), api_key("bob", "bob-key")];
    let selection = EndpointSettings {
        name: "some".into(),
        servers: vec!["u1".into()],
        allow: Vec::new(),
        deny: Vec::new(),
        sessions: mcpgate::settings::endpoints::SessionPolicy::Required,
    };
    let gateway = setup(&server)
        .with(|s| {
            s.auth.api_keys = keys;
            s.endpoints = vec![selection];
        })
        .start()
        .await;
    let at = |path: &str, key: &str| {
        let mut caller = modern(&gateway, path).with(with_tasks());
        caller.client = caller.client.header("x-api-key", key);
        caller
    };
    let ann = at("/mcp", "ann-key");
    let id = begin(&ann, "mcp_u1_echo").await;
    let again = at("/mcp", "ann-key-2").call(1, "tasks/get", json!({ "taskId": id })).await;
    assert_eq!(again["result"]["taskId"], id.as_str(), "another key of the same principal: {again}");

    let before = server.requests().len();
    knows_no_task(&at("/mcp", "bob-key"), &id).await;
    knows_no_task(&at("/some/mcp", "ann-key"), &id).await;
    knows_no_task(&at("/servers/u1/mcp", "ann-key"), &id).await;
    knows_no_task(&ann, "t/1 ä").await;
    let last = if id.ends_with('A') { "B" } else { "A" };
    knows_no_task(&ann, &format!("{}{last}", &id[..id.len() - 1])).await;
    knows_no_task(&ann, &format!("{id}{id}")).await;
    let twice = ann.call(1, "tasks/get", json!({ "taskId": id, "taskid": "t/2" })).await;
    assert_eq!(twice["error"]["code"], -32602, "case-G07: {twice}");
    assert_eq!(server.requests().len(), before, "the server heard nothing of it");
}

/// The same on a single-server endpoint, where unknown methods pass: those of tasks do not.
#[tokio::test]
async fn one_server_alone_has_sealed_ids_too() {
    let server = server().await;
    let gateway = setup(&server).start().await;
    let caller = modern(&gateway, "/servers/u1/mcp").with(with_tasks());
    let id = begin(&caller, "echo").await;
    assert_eq!(caller.call(1, "tasks/get", json!({ "taskId": id })).await["result"]["taskId"], id.as_str());
    knows_no_task(&caller, "t/1 ä").await;
}

/// J5: what only 2025-11-25 has is unknown here.
#[tokio::test]
async fn there_is_no_list_of_tasks() {
    let server = server().await;
    let gateway = setup(&server).start().await;
    for path in ["/mcp", "/servers/u1/mcp"] {
        let caller = modern(&gateway, path).with(with_tasks());
        for method in ["tasks/list", "tasks/result"] {
            let answer = caller.post(&caller.request(1, method, json!({}))).await;
            assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path} {method}");
            assert_eq!(answer.json().await["error"]["code"], -32601);
        }
    }
}

/// R4: a task that waits for what its caller did not declare is the server's mistake; what it declared passes.
#[tokio::test]
async fn a_task_asks_only_what_was_declared() {
    let server = server().await;
    let gateway = setup(&server).start().await;
    let mut waiting = task("input_required");
    let params =
        json!({ "mode": "form", "message": "?", "requestedSchema": { "type": "object", "properties": {} } });
    waiting["inputRequests"] = json!({ "k": { "method": "elicitation/create", "params": params } });
    server.on(rpc("tasks/get"), Answer::result(&typed("complete", waiting.clone())));
    let bare = modern(&gateway, "/mcp").with(with_tasks());
    let id = begin(&bare, "mcp_u1_echo").await;
    let answer = bare.call(2, "tasks/get", json!({ "taskId": id })).await;
    let data = &answer["error"]["data"]["mcpgate"];
    assert_eq!(data["reason"], "undeclared_input_request", "{answer}");
    let able = bare.with(json!({ "extensions": { TASKS: {} }, "elicitation": {} }));
    let answer = able.call(2, "tasks/get", json!({ "taskId": id })).await;
    assert_eq!(answer["result"]["inputRequests"], waiting["inputRequests"], "{answer}");
}

/// design 2, promise 9: an id is good for as long as its task, whatever becomes of the process.
#[tokio::test]
async fn an_id_survives_a_restart() {
    let state = tempfile::tempdir().unwrap();
    let server = server().await;
    let keeping = |dir: &Path| {
        let dir = dir.to_owned();
        setup(&server).with(move |s| s.state_dir = Some(dir))
    };
    let first = keeping(state.path()).start().await;
    let id = begin(&modern(&first, "/mcp").with(with_tasks()), "mcp_u1_echo").await;
    first.stopped().await;
    let second = keeping(state.path()).start().await;
    let caller = modern(&second, "/mcp").with(with_tasks());
    let got = caller.call(1, "tasks/get", json!({ "taskId": id })).await;
    assert_eq!(got["result"]["taskId"], id.as_str(), "{got}");
    let other = tempfile::tempdir().unwrap();
    let stranger = keeping(other.path()).start().await;
    knows_no_task(&modern(&stranger, "/mcp").with(with_tasks()), &id).await;
}

/// A result without an id that can be carried is an error that names the server.
#[tokio::test]
async fn an_id_that_cannot_be_carried_is_an_error() {
    let server = server().await;
    let gateway = setup(&server).start().await;
    let caller = modern(&gateway, "/mcp").with(with_tasks());
    for id in [json!("x".repeat(300)), json!(7), json!("")] {
        let mut bad = task("working");
        bad["taskId"] = id;
        server.once(rpc("tools/call"), Answer::result(&typed("task", bad)));
        let answer = caller.call(1, "tools/call", tool("mcp_u1_echo", json!({}))).await;
        assert_eq!(answer["error"]["data"]["mcpgate"]["reason"], "bad_task", "{answer}");
    }
    let mut long = task("working");
    long["taskId"] = json!("y".repeat(256));
    server.once(rpc("tools/call"), Answer::result(&typed("task", long)));
    let id = begin(&caller, "mcp_u1_echo").await;
    assert!(id.len() < 512, "{}", id.len());
}

/// J5, M7: a listen tells of the tasks that were asked for, under the ids and the subscription that its caller knows.
#[tokio::test]
async fn a_listen_tells_of_tasks() {
    let server = server().await;
    let (feed, stream) = Answer::fed();
    server.on(rpc("subscriptions/listen"), stream);
    let gateway = setup(&server).start().await;
    let caller = modern(&gateway, "/mcp").with(with_tasks());
    let id = begin(&caller, "mcp_u1_echo").await;
    let asked = json!({ "notifications": { "taskIds": [id, "not-mine"] } });
    let note = |method: &str, params: Value| {
        json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string()
    };
    let granting = async {
        let seen = server.await_request(rpc("subscriptions/listen")).await.json();
        assert_eq!(seen["params"]["notifications"], json!({ "taskIds": ["t/1 ä"] }));
        let declared = &seen["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        assert_eq!(*declared, with_tasks());
        let of = json!({ "io.modelcontextprotocol/subscriptionId": seen["id"] });
        let ack = json!({ "_meta": of, "notifications": { "taskIds": ["t/1 ä"] } });
        feed.send(message(&note("notifications/subscriptions/acknowledged", ack))).await;
        of
    };
    let listen = caller.request("L", "subscriptions/listen", asked);
    let (answer, of) = futures_util::future::join(caller.post(&listen), granting).await;
    let mut stream = answer.stream();
    let ack = stream.message().await.unwrap();
    assert_eq!(ack["params"]["notifications"], json!({ "taskIds": [id] }), "{ack}");
    let mut foreign = task("working");
    foreign["taskId"] = json!("t/2");
    let mut done = task("completed");
    done["_meta"] = of;
    for params in [foreign, done] {
        feed.send(message(&note("notifications/tasks", params))).await;
    }
    let told = stream.message().await.unwrap();
    assert_eq!(told["method"], "notifications/tasks");
    assert_eq!(
        (&told["params"]["taskId"], &told["params"]["status"]),
        (&json!(id), &json!("completed")),
        "{told}"
    );
    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "L");
    // The server ends its listen: so does the caller's, with a result.
    drop(feed);
    let last = stream.message().await.unwrap();
    assert_eq!((&last["id"], &last["result"]["resultType"]), (&json!("L"), &json!("complete")), "{last}");
}

/// N9: who does not declare the extension listens to no task; ids that were not given to a caller grant nothing.
#[tokio::test]
async fn nobody_listens_to_tasks_of_others() {
    let server = server().await;
    let gateway = setup(&server).start().await;
    let bare = modern(&gateway, "/mcp");
    let listen = |ids: Value| json!({ "notifications": { "taskIds": ids } });
    let refused = bare.post(&bare.request(1, "subscriptions/listen", listen(json!(["x"])))).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    let error = &refused.json().await["error"];
    assert_eq!((&error["code"], &error["data"]["requiredCapabilities"]), (&json!(-32021), &with_tasks()));
    let able = bare.with(with_tasks());
    let mut stream =
        able.post(&able.request(2, "subscriptions/listen", listen(json!(["t/1 ä"])))).await.stream();
    assert_eq!(stream.message().await.unwrap()["params"]["notifications"], json!({}));
    assert_eq!(stream.message().await.unwrap()["result"]["resultType"], "complete", "nothing can come of it");
    let wrong = able.call(3, "subscriptions/listen", listen(json!([1]))).await;
    assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
    assert_eq!(server.count(rpc("subscriptions/listen")), 0);
}

/// Closing the listen ends the one at the server.
#[tokio::test]
async fn a_listen_that_is_closed_is_closed_at_the_server() {
    let server = server().await;
    let granted = json!({ "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
        "params": { "notifications": { "taskIds": ["t/1 ä"] } } });
    server.on(
        rpc("subscriptions/listen"),
        Answer::events([message(&granted.to_string()), crate::http_server::hold()]),
    );
    let gateway = setup(&server).start().await;
    let caller = modern(&gateway, "/mcp").with(with_tasks());
    let id = begin(&caller, "mcp_u1_echo").await;
    let asked = json!({ "notifications": { "taskIds": [id] } });
    let mut stream = caller.post(&caller.request(1, "subscriptions/listen", asked)).await.stream();
    assert_eq!(stream.message().await.unwrap()["params"]["notifications"]["taskIds"], json!([id]));
    drop(stream);
    server.await_hang_up(rpc("subscriptions/listen")).await;
}
