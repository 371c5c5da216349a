//! The demo server's answers.

mod modern;

use std::sync::mpsc::{Receiver, channel};

use super::*;
use crate::protocol::revision::Revision;

/// A client of a demo server in the same process.
struct Client {
    server: Server,
    messages: Receiver<Value>,
}

// === impl Client ===

impl Client {
    fn new() -> Self {
        let (sender, messages) = channel();
        let sender = Mutex::new(sender);
        let server = Server::new(move |message| {
            let message = serde_json::from_str(&message).expect("it writes JSON");
            let _ = lock(&sender).send(message);
        });
        Self { server, messages }
    }

    /// A client that has introduced itself.
    fn with(revision: &str, capabilities: &Value) -> Self {
        let client = Self::new();
        let params = json!({"protocolVersion": revision, "capabilities": capabilities});
        assert_eq!(client.request("initialize", &params)["result"]["protocolVersion"], revision);
        client
    }

    fn say(&self, message: &Value) {
        self.server.hear(&message.to_string().into());
    }

    fn next(&self) -> Value {
        self.messages.recv_timeout(Duration::from_secs(20)).expect("a message")
    }

    fn request(&self, method: &str, params: &Value) -> Value {
        self.say(&json!({"jsonrpc": "2.0", "id": "r", "method": method, "params": params}));
        let answer = self.next();
        assert_eq!(answer["id"], "r");
        answer
    }

    fn call(&self, tool: &str, arguments: &Value) -> Value {
        self.request("tools/call", &json!({"name": tool, "arguments": arguments}))
    }
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().expect("a text")
}

#[test]
fn counts_words_characters_and_lines() {
    let client = Client::new();
    let answer = client.call("count_words", &json!({"text": "hello mcp world"}));
    let expected = json!({"words": 3, "characters": 15, "lines": 1});
    assert_eq!(answer["result"]["structuredContent"], expected);
    assert_eq!(text(&answer), r#"{"words":3,"characters":15,"lines":1}"#);
    let answer = client.call("count_words", &json!({"text": "äö\nü "}));
    assert_eq!(answer["result"]["structuredContent"], json!({"words": 2, "characters": 5, "lines": 2}));
    assert_eq!(client.call("count_words", &json!({"text": 1}))["result"]["isError"], true);
}

/// L2: every legacy revision is spoken; an unknown one is answered with the latest.
#[test]
fn speaks_every_legacy_revision() {
    for revision in Revision::LEGACY {
        Client::with(revision.as_str(), &json!({}));
    }
    let answer = Client::new().request("initialize", &json!({"protocolVersion": "2031-01-01"}));
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
}

#[test]
fn errors_have_the_protocols_codes() {
    let client = Client::new();
    let code = |method: &str, params: Value| client.request(method, &params)["error"]["code"].clone();
    assert_eq!(code("no/such", json!({})), -32601);
    assert_eq!(code("tools/call", json!({"name": "none"})), -32602);
    assert_eq!(code("prompts/get", json!({"name": "none"})), -32602);
    assert_eq!(code("prompts/get", json!({"name": "summarize"})), -32602);
    assert_eq!(code("resources/read", json!({"uri": "demo://greeting/"})), -32002);
    assert_eq!(code("completion/complete", json!({"ref": {}, "argument": {}})), -32602);
    assert_eq!(code("logging/setLevel", json!({"level": "loud"})), -32602);
    client.server.hear(&"{".into());
    assert_eq!(client.next()["error"]["code"], -32700);
    client.server.hear(&"[]".into());
    assert_eq!(client.next()["error"]["code"], -32600);
    client
        .server
        .hear(&r#"{"jsonrpc":"2.0","id":12345678901234567890123,"method":"ping","params":[]}"#.into());
    assert_eq!(client.next()["error"]["code"], -32602);
}

/// T19: a batch is taken apart in the one revision that has them.
#[test]
fn takes_batches_of_2025_03_26() {
    let client = Client::with("2025-03-26", &json!({}));
    client.say(&json!([{"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "id": 2, "method": "ping"}]));
    assert_eq!((client.next()["id"].clone(), client.next()["id"].clone()), (json!(1), json!(2)));
}

#[test]
fn slow_reports_its_progress_if_asked_to() {
    let client = Client::new();
    let arguments = json!({"seconds": 0.01, "steps": 2});
    assert_eq!(text(&client.call("slow", &arguments)), "Took 0.01 seconds in 2 steps.");
    client.say(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params":
        {"name": "slow", "arguments": arguments, "_meta": {"progressToken": "t"}}}));
    for step in 1..=2 {
        let message = client.next();
        assert_eq!(message["params"]["progressToken"], "t");
        assert_eq!((&message["params"]["progress"], &message["params"]["total"]), (&json!(step), &json!(2)));
    }
    assert_eq!(client.next()["id"], 1);
    assert_eq!(client.call("slow", &json!({"steps": 0.5}))["result"]["isError"], true);
}

#[test]
fn a_cancelled_call_has_no_answer() {
    let client = Client::new();
    client.say(&json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params":
        {"name": "slow", "arguments": {"seconds": 600, "steps": 1}}}));
    client.say(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}));
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while !lock(&client.server.0.calls).is_empty() {
        assert!(std::time::Instant::now() < deadline, "the call goes on");
        thread::yield_now();
    }
    // Whatever it had to say would come before this.
    client.request("ping", &json!({}));
    assert!(client.messages.try_recv().is_err());
}

#[test]
fn asks_only_a_client_that_can_be_asked() {
    let client = Client::with("2025-06-18", &json!({}));
    assert_eq!(client.call("ask", &json!({"question": "Why?"}))["result"]["isError"], true);

    let client = Client::with("2025-06-18", &json!({"elicitation": {}}));
    for (answer, expected) in [
        (json!({"result": {"action": "accept", "content": {"answer": "42"}}}), "The answer is: 42"),
        (json!({"result": {"action": "decline"}}), "The user declined to answer."),
        (
            json!({"error": {"code": -1, "message": "no"}}),
            "The client answered with something else than a filled form.",
        ),
    ] {
        let params = json!({"name": "ask", "arguments": {"question": "Why?"}});
        client.say(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}));
        let question = client.next();
        assert_eq!(
            (&question["method"], &question["params"]["message"]),
            (&json!("elicitation/create"), &json!("Why?"))
        );
        let mut answer = answer;
        answer["jsonrpc"] = json!("2.0");
        answer["id"] = question["id"].clone();
        client.say(&answer);
        assert_eq!(text(&client.next()), expected);
    }
}

#[test]
fn serves_texts() {
    let client = Client::new();
    let read =
        |uri: &str| client.request("resources/read", &json!({"uri": uri}))["result"]["contents"][0].clone();
    assert!(read("demo://readme")["text"].as_str().expect("a text").contains("count_words"));
    assert_eq!(read("demo://greeting/Ada")["text"], "Hello, Ada!");
    let list = |method: &str| client.request(method, &json!({}))["result"].clone();
    assert_eq!(list("resources/list")["resources"][0]["uri"], "demo://readme");
    assert_eq!(
        list("resources/templates/list")["resourceTemplates"][0]["uriTemplate"],
        "demo://greeting/{name}"
    );
    assert_eq!(list("prompts/list")["prompts"][0]["name"], "summarize");
    let params = json!({"name": "summarize", "arguments": {"text": "abc"}});
    let prompt = client.request("prompts/get", &params)["result"]["messages"][0].clone();
    assert!(prompt["content"]["text"].as_str().expect("a text").ends_with("abc"));
    let reference = json!({"type": "ref/resource", "uri": "demo://greeting/{name}"});
    let params = json!({"ref": reference, "argument": {"name": "name", "value": "a"}});
    assert_eq!(
        client.request("completion/complete", &params)["result"]["completion"]["values"],
        json!(["Ada", "Alan"])
    );
    assert_eq!(client.request("logging/setLevel", &json!({"level": "info"}))["result"], json!({}));
}

#[test]
fn every_listed_tool_is_there() {
    let client = Client::new();
    let answer = client.request("tools/list", &json!({}));
    let tools = answer["result"]["tools"].as_array().expect("tools");
    assert_eq!(tools.len(), 3);
    assert!(tools.iter().all(|tool| tools::has(tool["name"].as_str().expect("a name"))));
    assert!(tools[0]["outputSchema"].is_object());
}

/// Calls that wait have a bound, and what does not wait is answered also at that bound.
#[test]
fn quick_calls_are_answered_while_as_many_wait_as_may() {
    let client = Client::new();
    let slow = |n: usize| {
        let params = json!({"name": "slow", "arguments": {"seconds": 60}});
        json!({"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": params})
    };
    (0..MOST_CALLS).for_each(|n| client.say(&slow(n)));
    client.say(&slow(MOST_CALLS));
    let refused = client.next();
    assert_eq!(
        (&refused["id"], &refused["error"]["code"]),
        (&json!(MOST_CALLS), &json!(-32603)),
        "{refused}"
    );
    let counted = client.call("count_words", &json!({"text": "one two"}));
    assert_eq!(counted["result"]["structuredContent"]["words"], 2, "{counted}");
    for n in 0..MOST_CALLS {
        let params = json!({"requestId": n});
        client.say(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
    }
}
