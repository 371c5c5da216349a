//! Servers that are child processes, of either era, behind callers of either era.

use std::time::Duration;

use mcpgate::protocol::revision::Revision;
use mcpgate::settings::servers::{Isolation, ProtocolSetting, ServerSettings};
use serde_json::{Value, json};
use tokio_util::task::TaskTracker;

use crate::client::{SOON, request, tool};
use crate::gateway::TestGateway;
use crate::kit::{LEGACY, auto, modern};

const STARTS: &str = r#"mcpgate_upstream_process_starts_total{server="s"}"#;
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

async fn gateway(args: &[&str], adjust: impl FnOnce(&mut ServerSettings)) -> TestGateway {
    TestGateway::new().stdio("s", args).adjust(auto).adjust(adjust).start().await
}

fn nothing(_: &mut ServerSettings) {}

fn shared(server: &mut ServerSettings) {
    server.isolation = Isolation::Shared { size: 1 };
}

/// What a tool of the scripted server answers with.
fn value(answer: &Value) -> &Value {
    answer.pointer("/result/structuredContent/value").unwrap_or_else(|| panic!("{answer}"))
}

fn count(methods: &Value, method: &str) -> usize {
    methods.as_array().unwrap().iter().filter(|m| **m == method).count()
}

/// T64, X30: each pairing works without a word of config, and a modern server is never initialized.
#[tokio::test]
async fn every_pairing_works() {
    for (era, initialized) in [("legacy", 1), ("modern", 0), ("dual", 0)] {
        let gateway = gateway(&["--era", era], nothing).await;
        let caller = modern(&gateway, "/mcp");
        let list = caller.call(1, "tools/list", json!({})).await;
        assert_eq!(list["result"]["tools"][0]["name"], "mcp_s_echo", "{list}");
        assert_eq!(list["result"]["resultType"], "complete");
        let echoed = caller.call("b", "tools/call", tool("mcp_s_echo", json!({"a": 1.0}))).await;
        assert_eq!((&echoed["id"], &echoed["result"]["resultType"]), (&json!("b"), &json!("complete")));
        assert_eq!(value(&echoed).to_string(), r#"{"a":1.0}"#);

        let caller = gateway.client("/mcp").initialize(LEGACY).await;
        let list = caller.call(1, "tools/list", json!({})).await;
        assert_eq!(list["result"]["tools"][0]["name"], "mcp_s_echo", "{list}");
        let echoed = caller.call(2, "tools/call", tool("mcp_s_echo", json!({"a": 1.0}))).await;
        assert_eq!(value(&echoed).to_string(), r#"{"a":1.0}"#);
        let methods = caller.call(3, "tools/call", tool("mcp_s_methods", json!({}))).await;
        assert_eq!(count(value(&methods), "initialize"), initialized, "{era}: {methods}");
    }
}

/// T66: a server that proved to be legacy is not asked again, and not made to end over the question again.
#[tokio::test]
async fn the_era_of_a_legacy_server_is_remembered() {
    for (discover, starts) in [("answer", 2.0), ("mute", 2.0), ("die", 3.0)] {
        let quick = |server: &mut ServerSettings| server.timeouts.start = Duration::from_secs(4);
        let gateway = gateway(&["--discover", discover], quick).await;
        let first = gateway.client("/mcp").initialize(LEGACY).await;
        let answer = first.call(1, "tools/call", tool("mcp_s_echo", json!({}))).await;
        assert!(answer.get("result").is_some(), "{answer}");
        let second = gateway.client("/mcp").initialize(LEGACY).await;
        let methods = second.call(1, "tools/call", tool("mcp_s_methods", json!({}))).await;
        assert_eq!(count(value(&methods), "server/discover"), 0, "{discover}");
        assert_eq!(gateway.sample(STARTS), starts, "{discover}");
    }
}

/// T66: what chokes on the question without ending is initialized at once the next time.
#[tokio::test]
async fn a_server_that_chokes_on_the_question_is_not_asked_again() {
    let script = r#"
        answer() { id=${1#*\"id\":}; echo '{"jsonrpc":"2.0","id":'${id%%,*}',"result":'$2'}'; }
        read first
        case $first in *server/discover*) sleep 60;; esac
        answer "$first" '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}'
        read confirmation
        while read -r call; do
            answer "$call" '{"content":[],"tools":[{"name":"t","inputSchema":{"type":"object"}}]}'
        done"#;
    let setup = TestGateway::new().command("s", "sh", &["-c", script]).adjust(auto);
    let gateway = setup.adjust(|s| s.timeouts.start = Duration::from_secs(1)).start().await;
    let caller = gateway.client("/servers/s/mcp").initialize(LEGACY).await;
    let late = caller.call(1, "tools/call", tool("t", json!({}))).await;
    assert!(late.get("error").is_some(), "{late}");
    let answer = caller.call(2, "tools/call", tool("t", json!({}))).await;
    assert_eq!(answer["result"]["content"], json!([]), "{answer}");
}

/// A server that is configured as modern and is not says so to its callers.
#[tokio::test]
async fn a_server_that_is_not_what_is_configured_is_named() {
    let pin = |server: &mut ServerSettings| server.protocol = ProtocolSetting::Pinned(Revision::LATEST);
    let gateway = gateway(&[], pin).await;
    let answer = modern(&gateway, "/servers/s/mcp").call(1, "tools/call", tool("echo", json!({}))).await;
    let told = &answer["error"]["data"]["mcpgate"];
    assert_eq!(
        (&told["reason"], &told["layer"], &told["server"]),
        (&json!("bad_discover"), &json!("handshake"), &json!("s")),
        "{answer}"
    );
}

/// T65: a modern child is told of a cancellation by a notification, with the id it knows.
#[tokio::test]
async fn a_modern_child_is_told_of_a_cancellation() {
    let gateway = gateway(&["--era", "modern"], nothing).await;
    let caller = gateway.client("/mcp").initialize(LEGACY).await;
    caller.call(0, "tools/call", tool("mcp_s_echo", json!({}))).await;
    let slow = request("slow", "tools/call", tool("mcp_s_sleep", json!({"ms": 60_000})));
    let slow = {
        let caller = caller.clone();
        TaskTracker::new().spawn(async move { caller.post(&slow).await })
    };
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "slow"}});
    let heard = async {
        loop {
            caller.post(&cancel).await;
            let answer = caller.call(1, "tools/call", tool("mcp_s_heard", json!({}))).await;
            let heard = value(&answer).as_array().unwrap().clone();
            if let Some(told) = heard.into_iter().find(|m| m["method"] == "notifications/cancelled") {
                return told;
            }
        }
    };
    let told = tokio::time::timeout(SOON, heard).await.unwrap();
    assert!(told["params"]["requestId"].is_u64(), "{told}");
    drop(slow);
}

/// A shared child hears of each caller with each call, and asks by its results: one child, many callers.
#[tokio::test]
async fn a_shared_modern_child_hears_each_caller() {
    let gateway = gateway(&["--era", "modern"], shared).await;
    let plain = modern(&gateway, "/mcp");
    let asked = modern(&gateway, "/mcp").with(json!({"elicitation": {"form": {}}}));
    for caller in [&plain, &asked] {
        let answer = caller.call(1, "tools/call", tool("mcp_s_meta", json!({}))).await;
        assert_eq!(value(&answer)[CAPABILITIES], caller.capabilities, "{answer}");
    }
    let question =
        json!({"mode": "form", "message": "?", "requestedSchema": {"type": "object", "properties": {}}});
    let mut params = tool("mcp_s_ask", json!({"method": "elicitation/create", "params": question}));
    let wants = asked.call(2, "tools/call", params.clone()).await;
    assert_eq!(wants["result"]["resultType"], "input_required", "{wants}");
    assert_eq!(wants["result"]["inputRequests"]["question"]["params"], question);
    params["requestState"] = wants["result"]["requestState"].clone();
    params["inputResponses"] = json!({"question": {"action": "decline"}});
    let answer = asked.call(3, "tools/call", params).await;
    assert_eq!(value(&answer)["result"], json!({"action": "decline"}));
    assert_eq!(gateway.sample(STARTS), 1.0);
}

/// A shared legacy child is initialized as before, for callers who can be asked nothing.
#[tokio::test]
async fn a_shared_legacy_child_serves_modern_callers() {
    let gateway = gateway(&[], shared).await;
    let caller = modern(&gateway, "/mcp").with(json!({"elicitation": {}}));
    let answer = caller.call(1, "tools/call", tool("mcp_s_heard", json!({}))).await;
    assert_eq!(value(&answer)[0]["capabilities"], json!({}));
}

/// T63: the end of a modern child fails what ran, and the next call finds a new child that was met anew.
#[tokio::test]
async fn a_modern_child_is_replaced() {
    let gateway = gateway(&["--era", "modern"], nothing).await;
    let caller = modern(&gateway, "/mcp");
    let lost = caller.call(1, "tools/call", tool("mcp_s_exit", json!({"code": 3}))).await;
    let told = &lost["error"]["data"]["mcpgate"];
    assert_eq!((&told["reason"], &told["layer"]), (&json!("child_exited"), &json!("process")), "{lost}");
    let methods = caller.call(2, "tools/call", tool("mcp_s_methods", json!({}))).await;
    assert_eq!(value(&methods)[0], "server/discover");
    assert_eq!(gateway.sample(STARTS), 2.0);
}

/// P1, X39: a log message of a modern child reaches the caller whose call is the only one that runs.
#[tokio::test]
async fn a_log_message_reaches_the_only_call() {
    let gateway = gateway(&["--era", "modern"], nothing).await;
    let caller = modern(&gateway, "/mcp");
    let say = json!({"method": "notifications/message", "params": {"level": "error", "data": "x"}});
    let mut params = tool("mcp_s_say", say);
    params["_meta"] = json!({"io.modelcontextprotocol/logLevel": "info"});
    let mut stream = caller.post(&caller.request(1, "tools/call", params)).await.stream();
    let first = stream.message().await.unwrap();
    assert_eq!((&first["method"], &first["params"]["data"]), (&json!("notifications/message"), &json!("x")));
    assert_eq!(stream.message().await.unwrap()["id"], 1);
}
