//! Subscriptions of legacy callers at modern servers, which are listened to instead (X9, X10).

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::Client;
use crate::gateway::{Setup, TestGateway};
use crate::http_server::{Answer, Gate, HttpServer, Seen, hold, hold_until, message, rpc};
use crate::kit::{LEGACY, auto};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// Matches a listen for exactly these resources.
fn listen_for(uris: &'static [&'static str]) -> impl Fn(&Seen) -> bool + Copy {
    move |seen| {
        seen.is("subscriptions/listen")
            && seen.json()["params"]["notifications"]["resourceSubscriptions"] == json!(uris)
    }
}

/// A server that tells of all resources but `x:none`, once the gate is open.
async fn server(gate: &Gate) -> HttpServer {
    let server = HttpServer::modern().await;
    let discovered = json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28"],
        "capabilities": {"resources": {"subscribe": true}}, "ttlMs": 0, "cacheScope": "private",
    });
    server.on(rpc("server/discover"), Answer::result(&discovered.to_string()));
    let gate = gate.clone();
    server.on_each(rpc("subscriptions/listen"), move |seen| {
        let asked = seen.json();
        let meta = json!({SUBSCRIPTION: asked["id"]});
        let uris =
            asked["params"]["notifications"]["resourceSubscriptions"].as_array().cloned().unwrap_or_default();
        let told: Vec<&Value> = uris.iter().filter(|uri| **uri != "x:none").collect();
        let note = |method: &str, mut params: Value| {
            params["_meta"] = meta.clone();
            message(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string())
        };
        let accepted = json!({"notifications": {"resourceSubscriptions": told}});
        let acknowledged = note("notifications/subscriptions/acknowledged", accepted);
        let updates = told.iter().map(|uri| note("notifications/resources/updated", json!({"uri": uri})));
        let steps = [acknowledged, hold_until(&gate)].into_iter().chain(updates).chain([hold()]);
        Answer::events(steps)
    });
    server
}

fn setup(server: &HttpServer) -> Setup {
    TestGateway::new().http("u1", server.url()).adjust(auto)
}

async fn caller(gateway: &TestGateway) -> Client {
    gateway.client("/servers/u1/mcp").initialize(LEGACY).await
}

async fn subscribe(client: &Client, uri: &str) -> Value {
    client.call(1, "resources/subscribe", json!({"uri": uri})).await
}

async fn unsubscribe(client: &Client, uri: &str) {
    let answer = client.call(1, "resources/unsubscribe", json!({"uri": uri})).await;
    assert_eq!(answer["result"], json!({}), "{answer}");
}

/// case-K13, X9, X10: a subscription is a listen of the gateway's; what the server tells reaches the caller on its
/// GET, without the words of that listen.
#[tokio::test]
async fn a_subscription_is_listened_to() {
    let gate = Gate::new();
    let server = server(&gate).await;
    let gateway = setup(&server).start().await;
    let client = caller(&gateway).await;
    let mut get = client.open_get().await;
    assert_eq!(subscribe(&client, "x:1").await["result"], json!({}));
    let listen = server.await_request(listen_for(&["x:1"])).await;
    assert_eq!(listen.header("mcp-method"), Some("subscriptions/listen"));
    gate.open();
    let told = get.message().await.unwrap();
    assert_eq!(told["method"], "notifications/resources/updated");
    assert_eq!(told["params"], json!({"uri": "x:1"}));
    assert_eq!(server.count(rpc("resources/subscribe")), 0);
}

/// X9: what the server does not acknowledge is an error, and nothing stays of it.
#[tokio::test]
async fn what_is_not_acknowledged_is_an_error() {
    let gate = Gate::new();
    let server = server(&gate).await;
    let gateway = setup(&server).start().await;
    let client = caller(&gateway).await;
    let error = subscribe(&client, "x:none").await["error"].clone();
    assert_eq!(error["data"]["mcpgate"]["server"], "u1", "{error}");
    assert_eq!(subscribe(&client, "x:1").await["result"], json!({}));
    server.await_request(listen_for(&["x:1"])).await;
}

/// X9: one listen serves all, for as long as one of them wants something.
#[tokio::test]
async fn a_listen_lasts_as_long_as_somebody_wants_it() {
    let gate = Gate::new();
    let server = server(&gate).await;
    let gateway = setup(&server).start().await;
    let (a, b) = (caller(&gateway).await, caller(&gateway).await);
    subscribe(&a, "x:1").await;
    subscribe(&b, "x:1").await;
    subscribe(&b, "x:2").await;
    server.await_request(listen_for(&["x:1", "x:2"])).await;
    // Make before break: the old one goes once the new one is there.
    server.await_hang_up(listen_for(&["x:1"])).await;
    unsubscribe(&b, "x:1").await;
    assert_eq!(subscribe(&b, "x:2").await["result"], json!({}), "again, and nothing changes");
    unsubscribe(&a, "x:1").await;
    server.await_request(listen_for(&["x:2"])).await;
    let before = server.count(rpc("subscriptions/listen"));
    let mut get = b.open_get().await;
    gate.open();
    assert_eq!(get.message().await.unwrap()["params"]["uri"], "x:2");
    assert_eq!(b.delete().await, 204);
    server.await_hang_up(listen_for(&["x:2"])).await;
    assert_eq!(server.count(rpc("subscriptions/listen")), before, "nobody wants anything");
    assert_eq!(server.count(rpc("resources/unsubscribe")), 0);
}

/// A server that is configured anew is listened to anew for what is subscribed there.
#[tokio::test]
async fn subscriptions_outlive_a_new_configuration() {
    let gate = Gate::new();
    let server = server(&gate).await;
    let gateway = setup(&server).start().await;
    let client = caller(&gateway).await;
    subscribe(&client, "x:1").await;
    gateway.reload(setup(&server).adjust(|server| server.timeouts.total = Duration::from_mins(7))).await;
    server.await_requests(2, listen_for(&["x:1"])).await;
    let mut get = client.open_get().await;
    gate.open();
    assert_eq!(get.message().await.unwrap()["params"]["uri"], "x:1");
}
