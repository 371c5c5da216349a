//! Tasks of 2025-11-25, between legacy callers and legacy servers.

use http::Method;
use mcpgate::settings::servers::Isolation;
use serde_json::{Value, json};

use crate::client::{Client, tool};
use crate::credentials::api_key;
use crate::gateway::{Setup, TestGateway};
use crate::http_server::{Answer, HttpServer, http, message, rpc};
use crate::kit::{LEGACY, modern};

const RELATED: &str = "io.modelcontextprotocol/related-task";

fn declared() -> Value {
    json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } })
}

fn task(id: &str, status: &str) -> Value {
    json!({
        "taskId": id, "status": status, "createdAt": "2025-12-01T00:00:00Z",
        "lastUpdatedAt": "2025-12-01T00:00:00Z", "ttl": 60000, "pollInterval": 10,
    })
}

/// A server whose calls with `task` become the task `t1`, which is done.
async fn server() -> HttpServer {
    let server = HttpServer::start().await;
    let introduction = json!({
        "protocolVersion": LEGACY, "capabilities": { "tools": {}, "tasks": declared() },
        "serverInfo": { "name": "scripted", "version": "1" },
    });
    server.on(rpc("initialize"), Answer::result(&introduction.to_string()));
    server.on_each(rpc("tools/call"), |seen| match seen.param("task") {
        Some(_) => Answer::result(&json!({ "task": task("t1", "working") }).to_string()),
        None => Answer::result(r#"{"content":[{"type":"text","text":"at once"}]}"#),
    });
    server.on(rpc("tasks/get"), Answer::result(&task("t1", "completed").to_string()));
    server.on(rpc("tasks/cancel"), Answer::result(&task("t1", "cancelled").to_string()));
    let result = json!({
        "content": [{ "type": "text", "text": "done" }], "_meta": { RELATED: { "taskId": "t1" } },
    });
    server.on(rpc("tasks/result"), Answer::result(&result.to_string()));
    let tasks = json!({ "tasks": [task("t1", "completed"), task("anothers", "working")] });
    server.on(rpc("tasks/list"), Answer::result(&tasks.to_string()));
    server
}

fn setup(server: &HttpServer) -> Setup {
    TestGateway::new().http("u1", server.url())
}

/// A session at a gateway that has met its servers.
async fn session(gateway: &TestGateway, path: &str) -> Client {
    let client = gateway.client(path).initialize(LEGACY).await;
    client.call(1, "tools/list", json!({})).await;
    client
}

fn call_as_task(name: &str) -> Value {
    let mut params = tool(name, json!({}));
    params["task"] = json!({ "ttl": 60000 });
    params
}

async fn begin(client: &Client, name: &str) -> String {
    let answer = client.call("c", "tools/call", call_as_task(name)).await;
    let id = answer["result"]["task"]["taskId"].as_str();
    id.unwrap_or_else(|| panic!("a task, not {answer}")).to_owned()
}

async fn knows_no_task(client: &Client, id: &str) {
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let answer = client.call(1, method, json!({ "taskId": id })).await;
        assert_eq!(answer["error"]["code"], -32602, "{method} {answer}");
    }
}

/// G25, M9: get, result and cancel find the server by the sealed id; the caller sees no other.
#[tokio::test]
async fn a_task_is_led_by_its_sealed_id() {
    let server = server().await;
    let gateway = setup(&server).start().await;
    let client = session(&gateway, "/mcp").await;
    let id = begin(&client, "mcp_u1_echo").await;
    assert_ne!(id, "t1");
    assert_eq!(server.await_request(rpc("tools/call")).await.param("task").unwrap(), r#"{"ttl":60000}"#);

    let got = client.call(2, "tasks/get", json!({ "taskId": id })).await;
    assert_eq!(got["result"]["taskId"], id.as_str(), "{got}");
    assert_eq!(got["result"]["status"], "completed");
    let result = client.call(3, "tasks/result", json!({ "taskId": id })).await;
    assert_eq!(result["result"]["content"][0]["text"], "done", "{result}");
    assert_eq!(result["result"]["_meta"][RELATED]["taskId"], id.as_str());
    let cancelled = client.call(4, "tasks/cancel", json!({ "taskId": id })).await;
    assert_eq!(
        (&cancelled["result"]["taskId"], &cancelled["result"]["status"]),
        (&json!(id), &json!("cancelled"))
    );
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        assert_eq!(server.await_request(rpc(method)).await.json()["params"]["taskId"], "t1");
    }
    let update = client.call(5, "tasks/update", json!({ "taskId": id })).await;
    assert_eq!(update["error"]["code"], -32601, "a method of the other era: {update}");
}

/// A list has the tasks of this session, of all its servers: servers take all callers of a gateway for one.
#[tokio::test]
async fn a_list_has_ones_own_tasks() {
    let (one, two) = (server().await, server().await);
    let gateway = setup(&one).http("u2", two.url()).start().await;
    let client = session(&gateway, "/mcp").await;
    let empty = client.call(1, "tasks/list", json!({})).await;
    assert_eq!(empty["result"], json!({ "tasks": [] }), "{empty}");
    let ids = [begin(&client, "mcp_u1_echo").await, begin(&client, "mcp_u2_echo").await];
    let list = client.call(2, "tasks/list", json!({})).await;
    let listed: Vec<&Value> =
        list["result"]["tasks"].as_array().unwrap().iter().map(|t| &t["taskId"]).collect();
    assert_eq!(listed, [&json!(ids[0]), &json!(ids[1])], "{list}");
    let cursor = client.call(3, "tasks/list", json!({ "cursor": "x" })).await;
    assert_eq!(cursor["error"]["code"], -32602);
}

/// J8: another principal gets what an unknown id gets; another session of the same one is led to the server.
#[tokio::test]
async fn nobody_else_can_use_the_id() {
    let server = server().await;
    let keys = vec![api_key("ann", "ann-key"), api_key("bob", "bob-key")];
    let gateway = setup(&server).with(|s| s.auth.api_keys = keys).start().await;
    let of = async |key: &str| {
        let client = gateway.client("/mcp").header("x-api-key", key).initialize(LEGACY).await;
        client.call(1, "tools/list", json!({})).await;
        client
    };
    let (ann, bob) = (of("ann-key").await, of("bob-key").await);
    let id = begin(&ann, "mcp_u1_echo").await;
    knows_no_task(&bob, &id).await;
    knows_no_task(&ann, "t1").await;
    assert_eq!(bob.call(1, "tasks/list", json!({})).await["result"]["tasks"], json!([]));
    assert_eq!(server.count(rpc("tasks/get")), 0);
    let other = of("ann-key").await;
    assert_eq!(other.call(1, "tasks/get", json!({ "taskId": id })).await["result"]["taskId"], id.as_str());
    let mut modern =
        modern(&gateway, "/mcp").with(json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } }));
    modern.client = modern.client.header("x-api-key", "ann-key");
    let answer = modern.call(1, "tasks/get", json!({ "taskId": id })).await;
    assert_eq!(answer["error"]["code"], -32602, "ids are of one era: {answer}");
}

/// L14, G1: tasks are declared where a server has them, and to a server if its caller does.
#[tokio::test]
async fn tasks_are_declared_where_they_can_be_had() {
    let server = server().await;
    let gateway = setup(&server).start().await;
    session(&gateway, "/mcp").await;
    let declares = async |revision: &str| {
        let answer = gateway
            .client("/mcp")
            .post(&crate::client::init(
                revision,
                json!({ "tasks": {
            "requests": { "elicitation": { "create": {} } } }, "roots": {} }),
            ))
            .await;
        let session = answer.header("mcp-session-id").unwrap().to_owned();
        let answer = answer.json().await;
        let client = gateway.client("/mcp").header("mcp-session-id", &session);
        client.call(1, "tools/call", tool("mcp_u1_echo", json!({}))).await;
        answer["result"]["capabilities"]["tasks"].clone()
    };
    assert_eq!(declares(LEGACY).await, declared());
    let seen = server.await_requests(2, rpc("initialize")).await.pop().unwrap();
    assert_eq!(seen.json()["params"]["capabilities"], json!({ "tasks": {}, "roots": {} }));
    assert_eq!(declares("2025-06-18").await, Value::Null);
    let seen = server.await_requests(3, rpc("initialize")).await.pop().unwrap();
    assert_eq!(seen.json()["params"]["capabilities"], json!({ "roots": {} }), "X53");
}

/// Where nobody has tasks their methods are unknown, on single-server endpoints too.
#[tokio::test]
async fn without_tasks_their_methods_are_unknown() {
    let server = HttpServer::start().await;
    let gateway = setup(&server).start().await;
    for path in ["/mcp", "/servers/u1/mcp"] {
        let client = session(&gateway, path).await;
        for method in ["tasks/get", "tasks/result", "tasks/cancel", "tasks/list"] {
            let answer = client.call(1, method, json!({ "taskId": "t1" })).await;
            assert_eq!(answer["error"]["code"], -32601, "{path} {method} {answer}");
        }
    }
    assert_eq!(server.count(rpc("tasks/get")), 0);
}

/// A shared child's tasks could not be attributed: a call that asks for one is answered as any other.
#[tokio::test]
async fn over_a_shared_child_a_call_becomes_no_task() {
    let gateway = TestGateway::new()
        .stdio("u1", &[])
        .adjust(|s| s.isolation = Isolation::Shared { size: 1 })
        .start()
        .await;
    let client = session(&gateway, "/mcp").await;
    let mut params = call_as_task("mcp_u1_raw");
    params["arguments"] =
        json!({ "text": r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}"#.to_owned() + "\n" });
    let answer = client.call(1, "tools/call", params).await;
    assert_eq!(answer["result"], json!({ "content": [] }), "{answer}");
}

/// X20: a modern caller's call never becomes a task of the other era.
#[tokio::test]
async fn a_modern_call_becomes_no_task_of_the_other_era() {
    let server = server().await;
    let gateway = setup(&server).start().await;
    let caller =
        modern(&gateway, "/mcp").with(json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } }));
    let answer = caller.call(1, "tools/call", call_as_task("mcp_u1_echo")).await;
    assert_eq!(answer["result"]["content"][0]["text"], "at once", "{answer}");
    assert_eq!(server.await_request(rpc("tools/call")).await.param("task"), None);
    assert_eq!(server.await_request(rpc("initialize")).await.json()["params"]["capabilities"], json!({}));
}

/// M9, P3: what a server tells of a task reaches the session that began it, under the id and token that it knows.
#[tokio::test]
async fn a_task_is_told_of_on_the_standalone_stream() {
    let server = server().await;
    let (feed, stream) = Answer::fed();
    server.once(http(Method::GET), stream);
    let gateway = setup(&server).start().await;
    let client = session(&gateway, "/mcp").await;
    let mut get = client.open_get().await;
    let mut params = call_as_task("mcp_u1_echo");
    params["_meta"] = json!({ "progressToken": "mine" });
    let begun = client.call(1, "tools/call", params).await;
    let id = begun["result"]["task"]["taskId"].clone();
    let seen = server.await_request(rpc("tools/call")).await.json();
    let token = seen["params"]["_meta"]["progressToken"].clone();
    assert_ne!(token, "mine");

    let note = |method: &str, params: Value| {
        json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string()
    };
    feed.send(message(&note("notifications/tasks/status", task("anothers", "working")))).await;
    feed.send(message(&note("notifications/tasks/status", task("t1", "working")))).await;
    let status = get.message().await.unwrap();
    assert_eq!(
        (&status["params"]["taskId"], &status["params"]["status"]),
        (&id, &json!("working")),
        "{status}"
    );
    let progress = json!({ "progressToken": token, "progress": 1, "_meta": { RELATED: { "taskId": "t1" } } });
    feed.send(message(&note("notifications/progress", progress))).await;
    let progress = get.message().await.unwrap();
    assert_eq!(progress["params"]["progressToken"], "mine", "{progress}");
    assert_eq!(progress["params"]["_meta"][RELATED]["taskId"], id);
    let log = json!({ "level": "info", "data": 1, "_meta": { RELATED: { "taskId": "t1" } } });
    feed.send(message(&note("notifications/message", log))).await;
    assert_eq!(get.message().await.unwrap()["params"]["_meta"][RELATED]["taskId"], id);
}

/// M9: a question of a task names it as the caller knows it, and the answer as the server does.
#[tokio::test]
async fn a_task_asks_while_its_result_is_waited_for() {
    let server = server().await;
    let (feed, stream) = Answer::fed();
    server.on(rpc("tasks/result"), stream);
    let gateway = setup(&server).start().await;
    session(&gateway, "/mcp").await;
    let client = gateway.client("/mcp").initialize_with(LEGACY, json!({ "elicitation": {} })).await;
    let id = begin(&client, "mcp_u1_echo").await;
    let waiting = crate::client::request(7, "tasks/result", json!({ "taskId": id }));
    let question = json!({ "jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {
        "message": "?", "requestedSchema": { "type": "object", "properties": {} },
        "_meta": { RELATED: { "taskId": "t1" } } } });
    let asking = async {
        feed.send(message(&question.to_string())).await;
    };
    let (answer, ()) = futures_util::future::join(client.post(&waiting), asking).await;
    let mut stream = answer.stream();
    let asked = stream.message().await.unwrap();
    assert_eq!(asked["params"]["_meta"][RELATED]["taskId"], id.as_str(), "{asked}");
    let reply = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": {
        "action": "accept", "content": {}, "_meta": { RELATED: { "taskId": id } } } });
    client.post(&reply).await;
    let heard =
        server.await_request(|seen| seen.rpc.is_none() && seen.text().contains("accept")).await.json();
    assert_eq!(heard["id"], "q");
    assert_eq!(heard["result"]["_meta"][RELATED]["taskId"], "t1");
    let seen = server.await_request(rpc("tasks/result")).await;
    let result = json!({ "jsonrpc": "2.0", "id": serde_json::from_str::<Value>(&seen.id.unwrap()).unwrap(),
        "result": { "content": [] } });
    feed.send(message(&result.to_string())).await;
    assert_eq!(stream.message().await.unwrap()["result"], json!({ "content": [] }));
}

/// Each session has a child of its own: a task of one is unknown at another's, as the server says itself.
#[tokio::test]
async fn a_task_of_a_child_ends_with_its_session() {
    let gateway = TestGateway::new().stdio("u1", &[]).start().await;
    let begin = async |client: &Client| {
        let mut params = call_as_task("mcp_u1_raw");
        let result = json!({ "task": task("t1", "working") });
        params["arguments"] =
            json!({ "text": format!(r#"{{"jsonrpc":"2.0","id":$ID,"result":{result}}}"#) + "\n" });
        let answer = client.call(1, "tools/call", params).await;
        answer["result"]["task"]["taskId"].as_str().unwrap().to_owned()
    };
    let one = session(&gateway, "/mcp").await;
    let id = begin(&one).await;
    let say = |method: &str, params: Value| tool("mcp_u1_say", json!({ "method": method, "params": params }));
    let answer = one
        .post(&crate::client::request(
            2,
            "tools/call",
            say("notifications/tasks/status", task("t1", "completed")),
        ))
        .await;
    let told = answer.stream().message().await.unwrap();
    assert_eq!(told["params"]["taskId"], id.as_str(), "{told}");
    let other = session(&gateway, "/mcp").await;
    let answer = other.call(1, "tasks/get", json!({ "taskId": id })).await;
    assert_eq!(answer["error"]["code"], -32601, "this child knows no tasks, and says so: {answer}");
}
