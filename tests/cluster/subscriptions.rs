//! Subscriptions of sessions that go on at another replica.

use std::time::Duration;

use serde_json::{Value, json};

use crate::gateway::TestGateway;
use crate::http_server::{Answer, Gate, HttpServer, Seen, discovered, hold, hold_until, message, rpc};
use crate::kit::{LEGACY, auto};
use crate::replicas::Cluster;

fn listens_for(uri: &str) -> impl Fn(&Seen) -> bool + Copy {
    move |seen| {
        seen.is("subscriptions/listen")
            && seen.json()["params"]["notifications"]["resourceSubscriptions"] == json!([uri])
    }
}

/// A server of 2026-07-28 that tells of each resource it is listened to for, once the gate is open.
async fn modern_server(gate: &Gate) -> HttpServer {
    let server = HttpServer::modern().await;
    let can = discovered(&json!({"resources": {"subscribe": true}}));
    server.on(rpc("server/discover"), Answer::result(&can.to_string()));
    let gate = gate.clone();
    server.on_each(rpc("subscriptions/listen"), move |seen| {
        let asked = seen.json();
        let uris = asked["params"]["notifications"]["resourceSubscriptions"].clone();
        let note = |method: &str, mut params: Value| {
            params["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": asked["id"]});
            message(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string())
        };
        let accepted = json!({"notifications": {"resourceSubscriptions": uris}});
        let updates = uris.as_array().cloned().unwrap_or_default().into_iter();
        let updates = updates.map(|uri| note("notifications/resources/updated", json!({"uri": uri})));
        let first = [note("notifications/subscriptions/acknowledged", accepted), hold_until(&gate)];
        Answer::events(first.into_iter().chain(updates).chain([hold()]))
    });
    server
}

/// case-K13, X9: a legacy session's subscription at a modern server is a listen of the gateway's, which its adopter
/// makes again, without a word of the caller.
#[tokio::test]
async fn a_subscription_at_a_modern_server_is_listened_to_by_the_adopter() {
    let gate = Gate::new();
    let server = modern_server(&gate).await;
    let cluster = Cluster::new();
    let at = || {
        let setup = TestGateway::new().http("u1", server.url()).adjust(auto);
        setup.with(|s| s.shutdown.drain = Duration::from_millis(500))
    };
    let first = cluster.replica(at()).await;
    let second = cluster.replica(at()).await;
    let client = first.gateway.client("/servers/u1/mcp").initialize(LEGACY).await;
    let subscribed = client.call(1, "resources/subscribe", json!({"uri": "x:1"})).await;
    assert_eq!(subscribed["result"], json!({}), "{subscribed}");
    server.await_request(listens_for("x:1")).await;
    first.gateway.stopped().await;
    server.await_hang_up(listens_for("x:1")).await;

    let there = client.via(second.gateway.address);
    let mut get = there.open_get().await;
    server.await_requests(2, listens_for("x:1")).await;
    gate.open();
    let told = get.message().await.unwrap();
    assert_eq!(
        (&told["method"], &told["params"]["uri"]),
        (&json!("notifications/resources/updated"), &json!("x:1"))
    );
    // It can be taken back, and nobody listens then.
    let taken = there.call(2, "resources/unsubscribe", json!({"uri": "x:1"})).await;
    assert_eq!(taken["result"], json!({}), "{taken}");
    let hung_up = async {
        while server.count(|seen| seen.hung_up && listens_for("x:1")(seen)) < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), hung_up).await.expect("nobody listens");
}
