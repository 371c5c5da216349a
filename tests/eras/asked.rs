//! Elicitation, sampling and roots in all four pairings, two callers at once: each is asked its own, and answers it
//! (case-H11).

use std::collections::BTreeSet;

use mcpgate::settings::auth::ApiKey;
use mcpgate::settings::servers::{Isolation, ServerSettings};
use serde_json::{Value, json};

use crate::client::{Client, request, tool};
use crate::gateway::TestGateway;
use crate::kit::{LEGACY, auto, modern};

/// What servers ask, with the marker of the caller where the question has a place for it; roots have none.
fn question(method: &str, marker: &str) -> Value {
    match method {
        "elicitation/create" => {
            json!({"message": marker, "requestedSchema": {"type": "object", "properties": {}}})
        }
        "sampling/createMessage" => json!({
            "maxTokens": 1,
            "messages": [{"role": "user", "content": {"type": "text", "text": marker}}],
        }),
        _ => json!({}),
    }
}

/// What the caller of this marker answers.
fn reply(method: &str, marker: &str) -> Value {
    match method {
        "elicitation/create" => json!({"action": "accept", "content": {"marker": marker}}),
        "sampling/createMessage" => {
            json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": marker}})
        }
        _ => json!({"roots": [{"uri": format!("file:///{marker}")}]}),
    }
}

/// A caller of either era.
enum Caller {
    Legacy(Client),
    Modern(crate::kit::ModernClient),
}

impl Caller {
    async fn new(gateway: &TestGateway, era: &str, key: &str) -> Self {
        let all = json!({"elicitation": {"form": {}}, "sampling": {}, "roots": {}});
        if era == "legacy" {
            let client = gateway.client("/mcp").header("x-api-key", key);
            return Self::Legacy(client.initialize_with(LEGACY, all).await);
        }
        let mut caller = modern(gateway, "/mcp").with(all);
        caller.client = caller.client.header("x-api-key", key);
        Self::Modern(caller)
    }

    /// Has the server ask, answers, and gives the question's params and the end of the call.
    async fn asked(&self, method: &str, marker: &str) -> (Value, Value) {
        let call =
            tool("mcp_s_ask", json!({"id": marker, "method": method, "params": question(method, marker)}));
        match self {
            Self::Legacy(client) => {
                let mut stream = client.post(&request(marker, "tools/call", call)).await.stream();
                let mut asked = stream.message().await.expect("a question");
                while asked["method"] != method {
                    asked = stream.message().await.unwrap_or_else(|| panic!("no question, but {asked}"));
                }
                let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": reply(method, marker)});
                client.post(&answer).await;
                (asked["params"].clone(), stream.message().await.expect("the result"))
            }
            Self::Modern(caller) => {
                let asked = caller.call(marker, "tools/call", call.clone()).await;
                let requests = asked["result"]["inputRequests"].as_object();
                let requests = requests.unwrap_or_else(|| panic!("questions: {asked}"));
                let (key, one) = requests.iter().next().unwrap();
                assert_eq!((requests.len(), &one["method"]), (1, &json!(method)), "{asked}");
                let mut retry = call;
                retry["inputResponses"] = json!({key: reply(method, marker)});
                if let Some(state) = asked["result"].get("requestState") {
                    retry["requestState"] = state.clone();
                }
                (one["params"].clone(), caller.call(format!("{marker} again"), "tools/call", retry).await)
            }
        }
    }
}

fn shared(server: &mut ServerSettings) {
    server.isolation = Isolation::Shared { size: 1 };
}

fn own(_: &mut ServerSettings) {}

/// An API key of a person.
fn key(name: &str) -> ApiKey {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, name.as_bytes());
    let sha256 = digest.as_ref().try_into().unwrap();
    ApiKey { id: name.to_owned(), sha256, tenant: None, scopes: BTreeSet::new(), expires: None }
}

/// Two people at once, and each with two programs, through every pairing; a shared child of the modern era as well, whose
/// questions travel in results.
async fn everybody_is_asked_their_own(callers: &str, servers: &str, isolation: fn(&mut ServerSettings)) {
    let gateway = TestGateway::new()
        .with(|settings| settings.auth.api_keys = vec![key("ann"), key("bob")])
        .stdio("s", &["--era", servers])
        .adjust(auto)
        .adjust(isolation)
        .start()
        .await;
    let caller = async |who: &str| Caller::new(&gateway, callers, who).await;
    let [ann, bob] = [caller("ann").await, caller("bob").await];
    let [ann_too, bob_too] = [caller("ann").await, caller("bob").await];
    for method in ["elicitation/create", "sampling/createMessage", "roots/list"] {
        let markers = ["ann-1", "bob-1", "ann-2", "bob-2"];
        let all = tokio::join!(
            ann.asked(method, markers[0]),
            bob.asked(method, markers[1]),
            ann_too.asked(method, markers[2]),
            bob_too.asked(method, markers[3]),
        );
        for (marker, (asked, done)) in markers.into_iter().zip([all.0, all.1, all.2, all.3]) {
            let shown = asked.to_string();
            assert!(method == "roots/list" || shown.contains(marker), "{method} {marker}: {shown}");
            let others = markers.into_iter().filter(|other| *other != marker);
            let heard = done["result"].to_string();
            assert!(heard.contains(marker), "{method} {marker}: {done}");
            for other in others {
                assert!(
                    !shown.contains(other) && !heard.contains(other),
                    "{method} {marker}: {shown} {heard}"
                );
            }
        }
    }
}

#[tokio::test]
async fn legacy_callers_of_a_legacy_server() {
    everybody_is_asked_their_own("legacy", "legacy", own).await;
}

#[tokio::test]
async fn legacy_callers_of_a_modern_server() {
    everybody_is_asked_their_own("legacy", "modern", own).await;
    everybody_is_asked_their_own("legacy", "modern", shared).await;
}

#[tokio::test]
async fn modern_callers_of_a_legacy_server() {
    everybody_is_asked_their_own("modern", "legacy", own).await;
}

#[tokio::test]
async fn modern_callers_of_a_modern_server() {
    everybody_is_asked_their_own("modern", "modern", own).await;
    everybody_is_asked_their_own("modern", "modern", shared).await;
}
