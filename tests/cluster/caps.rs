//! Caps that hold over all replicas, as their leases last told what each holds.

use std::time::Duration;

use http::{Method, StatusCode};
use mcpgate::settings::servers::TransportSettings;
use serde_json::{Value, json};

use crate::client::{Answer, Client, SOON, init, tool};
use crate::credentials::api_key;
use crate::gateway::{Setup, TestGateway};
use crate::replicas::{Cluster, Replica};

const REVISION: &str = "2025-11-25";

/// A server of which so many children may run.
fn children(most: usize) -> Setup {
    TestGateway::new().stdio("u1", &[]).adjust(|server| {
        if let TransportSettings::Stdio(stdio) = &mut server.transport {
            stdio.max = most;
        }
    })
}

async fn session(replica: &Replica) -> Client {
    replica.gateway.client("/servers/u1/mcp").initialize(REVISION).await
}

/// A call that needs a child.
async fn call(client: &Client) -> Value {
    client.call(1, "tools/call", tool("echo", json!({}))).await
}

async fn is_served(client: &Client) {
    let answer = call(client).await;
    assert!(answer["result"].is_object(), "{answer}");
}

/// The call has no child, and its caller is told why.
async fn has_no_place(client: &Client) {
    let answer = call(client).await;
    let said = &answer["error"]["data"]["mcpgate"];
    assert_eq!((&said["reason"], &said["server"]), (&json!("no_capacity"), &json!("u1")), "{answer}");
    assert_eq!(said["retryable"], true);
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("`u1`") && message.contains("over all replicas"), "{message}");
}

/// The caller is refused in this way, and told when to come back.
pub(crate) async fn is_refused(answer: Answer, status: StatusCode, reason: &str) {
    assert_eq!(answer.status, status);
    assert!(answer.header("retry-after").is_some());
    let said = answer.json().await;
    assert_eq!(said["error"]["data"]["mcpgate"]["reason"], reason, "{said}");
}

/// case-C15: `pool.max` children of a server run over all replicas; one more call gets a clear error, and a place when a
/// child ended and its replica told so.
#[tokio::test]
async fn as_many_children_run_over_all_replicas_as_may() {
    let cluster = Cluster::steady();
    let first = cluster.replica(children(2)).await;
    let second = cluster.replica(children(2)).await;
    let (a, b) = (session(&first).await, session(&second).await);
    let (c, late) = (session(&second).await, session(&first).await);
    is_served(&a).await;
    is_served(&b).await;
    first.tells(&[&second]).await;
    second.tells(&[&first]).await;
    has_no_place(&c).await;
    has_no_place(&late).await;
    is_served(&b).await;
    assert_eq!(a.delete().await, StatusCode::NO_CONTENT);
    first.tells(&[&second]).await;
    is_served(&c).await;
}

/// A replica that meets a server after the others told of their children takes these into account at once.
#[tokio::test]
async fn a_server_that_is_met_later_has_the_places_that_others_left() {
    let cluster = Cluster::steady();
    let first = cluster.replica(children(1)).await;
    is_served(&session(&first).await).await;
    first.way.until_told().await;
    let second = cluster.replica(children(1)).await;
    second.way.until_heard().await;
    has_no_place(&session(&second).await).await;
}

/// What a replica held that is gone is not counted any more, once its lease has run out.
#[tokio::test]
async fn what_a_dead_replica_held_vanishes_with_its_lease() {
    let cluster = Cluster::steady();
    let setup = || children(1).with(|s| s.streams.max = 1);
    let first = cluster.replica(setup()).await;
    let second = cluster.replica(setup()).await;
    let (a, b) = (session(&first).await, session(&second).await);
    is_served(&a).await;
    let _stream = a.open_get().await;
    first.tells(&[&second]).await;
    has_no_place(&b).await;
    let refused = b.send(Method::GET, "").await;
    is_refused(refused, StatusCode::SERVICE_UNAVAILABLE, "too_many_streams").await;
    first.way.set_cut(true);
    let served = async {
        while call(&b).await["error"]["data"]["mcpgate"]["reason"] == "no_capacity" {}
        // Both are counted from the same leases.
        b.open_get().await
    };
    tokio::time::timeout(SOON, served).await.expect("its places are free");
}

/// What goes on elsewhere was let in before: it has its child, though others run as many as may.
#[tokio::test]
async fn a_session_that_is_handed_over_is_not_refused_for_what_others_hold() {
    let cluster = Cluster::new();
    let setup = || {
        children(1).with(|s| {
            s.sessions.max = 2;
            s.streams.max = 1;
            s.shutdown.drain = Duration::from_secs(5);
        })
    };
    let first = cluster.replica(setup()).await;
    let second = cluster.replica(setup()).await;
    let (a, b) = (session(&first).await, session(&first).await);
    is_served(&a).await;
    let _stream = a.open_get().await;
    let busy = async { a.call(2, "tools/call", tool("sleep", json!({ "ms": 3000 }))).await };
    let handed_over = async {
        first.tells(&[&second]).await;
        let (there, new) = (second.caller(&b), second.gateway.client("/servers/u1/mcp"));
        let refused = new.post(&init(REVISION, json!({}))).await;
        is_refused(refused, StatusCode::SERVICE_UNAVAILABLE, "no_capacity").await;
        first.gateway.begin_to_stop().await;
        is_served(&there).await;
        drop(there.open_get().await);
        assert_eq!(second.gateway.sessions(), 1.0, "it was handed over");
    };
    let (busy, ()) = tokio::join!(busy, handed_over);
    assert!(busy["result"].is_object(), "the other went on meanwhile: {busy}");
}

/// case-I05: a principal has as many sessions over all replicas as it may, and others are not touched.
#[tokio::test]
async fn a_principal_is_held_to_its_cap_over_all_replicas() {
    let cluster = Cluster::steady();
    let setup = || {
        let keys = ["ann", "bob"].map(|name| api_key(name, &format!("{name}-key")));
        TestGateway::new().with(|s| s.sessions.max_per_principal = 2).with(|s| s.auth.api_keys = keys.into())
    };
    let first = cluster.replica(setup()).await;
    let second = cluster.replica(setup()).await;
    let of = |replica: &Replica, name: &str| {
        replica.gateway.client("/mcp").header("x-api-key", &format!("{name}-key"))
    };
    let a = of(&first, "ann").initialize(REVISION).await;
    first.tells(&[&second]).await;
    of(&second, "ann").initialize(REVISION).await;
    second.tells(&[&first]).await;
    for replica in [&first, &second] {
        let refused = of(replica, "ann").post(&init(REVISION, json!({}))).await;
        is_refused(refused, StatusCode::TOO_MANY_REQUESTS, "too_many_sessions").await;
        of(replica, "bob").initialize(REVISION).await;
    }
    assert_eq!(a.delete().await, StatusCode::NO_CONTENT);
    first.tells(&[&second]).await;
    of(&second, "ann").initialize(REVISION).await;
}
