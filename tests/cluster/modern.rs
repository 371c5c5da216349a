//! Modern callers, whose requests come to any replica: what one replica alone has is found from all of them.

use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use futures_util::future::join_all;
use mcpgate::settings::auth::{Anonymous, ApiKey};
use serde_json::{Value, json};

use crate::client::tool;
use crate::gateway::{SCRIPTED, Setup, TestGateway};
use crate::http_server::{Answer, Feed, HttpServer, Seen, message, result, rpc};
use crate::kit::{ModernClient, modern};
use crate::replicas::{Cluster, Replica};

/// What all callers here can be asked.
fn everything() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "roots": {}})
}

fn elicitation(id: i32) -> String {
    let params = json!({"message": "?", "requestedSchema": {"type": "object"}});
    json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params}).to_string()
}

fn is_answer(seen: &Seen) -> bool {
    seen.method == http::Method::POST && seen.rpc.is_none() && seen.id.is_some()
}

fn accept() -> Value {
    json!({"elicitation-1": {"action": "accept", "content": {}}})
}

fn retry(asked: &Value, answers: Value) -> Value {
    let mut params = tool("echo", json!({"a": 1}));
    params["requestState"] = asked["result"]["requestState"].clone();
    params["inputResponses"] = answers;
    params
}

fn reason(refused: &Value) -> (i64, &str) {
    let error = &refused["error"];
    let code = error["code"].as_i64().unwrap_or_else(|| panic!("an error: {refused}"));
    (code, error["data"]["mcpgate"]["reason"].as_str().unwrap())
}

const DONE: &str = r#"{"content":[{"type":"text","text":"done"}]}"#;

fn is_done(response: &Value, id: &str) {
    assert_eq!((&response["id"], &response["result"]["content"][0]["text"]), (&json!(id), &json!("done")));
}

/// Three replicas before one legacy HTTP server, and the same caller at each.
struct Scene {
    server: HttpServer,
    replicas: [Replica; 3],
    callers: [ModernClient; 3],
    _cluster: Cluster,
}

impl Scene {
    async fn new(adjust: impl Fn(Setup) -> Setup) -> Self {
        let server = HttpServer::start().await;
        let cluster = Cluster::new();
        let replica = || cluster.replica(adjust(TestGateway::new().http("u1", server.url())));
        let replicas: [Replica; 3] = tokio::join!(replica(), replica(), replica()).into();
        let callers = replicas.each_ref().map(|r| modern(&r.gateway, "/servers/u1/mcp").with(everything()));
        Self { server, replicas, callers, _cluster: cluster }
    }

    /// A call at the first replica whose server asks one question and then waits for the test.
    async fn asked(&self) -> (Feed, Value) {
        let (feed, answer) = Answer::fed();
        self.server.once(rpc("tools/call"), answer);
        feed.send(message(&elicitation(1))).await;
        let asked = self.callers[0].call("first", "tools/call", tool("echo", json!({"a": 1}))).await;
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
        (feed, asked)
    }

    async fn goes_on(&self, at: usize, feed: &Feed, asked: &Value) {
        let (done, ()) =
            tokio::join!(self.callers[at].call("second", "tools/call", retry(asked, accept())), async {
                self.server.await_request(is_answer).await;
                feed.send(result(DONE)).await;
            });
        is_done(&done, "second");
    }
}

/// X34, case-A01: a question asked through one replica is answered through another, and the same call goes on; from a
/// third the state is one that was used.
#[tokio::test]
async fn a_retry_reaches_its_call_through_any_replica() {
    let scene = Scene::new(|setup| setup).await;
    let (feed, asked) = scene.asked().await;
    scene.goes_on(1, &feed, &asked).await;
    assert_eq!(scene.server.count(rpc("tools/call")), 1, "one call, once");
    for caller in &scene.callers {
        let again = caller.call("third", "tools/call", retry(&asked, accept())).await;
        assert_eq!(reason(&again), (-32603, "outcome_unknown"));
    }
    assert_eq!(scene.server.count(is_answer), 1, "an answer counts once");
}

/// T54: closing the stream of a retry cancels its call, also at another replica.
#[tokio::test]
async fn closing_a_forwarded_retry_cancels_its_call() {
    let scene = Scene::new(|setup| setup).await;
    let (_feed, asked) = scene.asked().await;
    tokio::select! {
        done = scene.callers[1].call("second", "tools/call", retry(&asked, accept())) => panic!("{done}"),
        _ = scene.server.await_request(is_answer) => {}
    }
    scene.server.await_request(rpc("notifications/cancelled")).await;
}

/// A call ends with its replica: its state says so everywhere.
#[tokio::test]
async fn a_call_whose_replica_is_gone_is_lost() {
    let scene = Scene::new(|setup| setup.with(|s| s.shutdown.drain = Duration::ZERO)).await;
    let (_feed, asked) = scene.asked().await;
    let Scene { server: _server, replicas: [first, ..], callers, .. } = scene;
    first.gateway.stopped().await;
    for caller in &callers[1..] {
        let lost = caller.call("second", "tools/call", retry(&asked, accept())).await;
        assert_eq!(reason(&lost), (-32603, "call_lost"));
    }
}

/// A draining replica lets its parked calls go on, for callers who come through others.
#[tokio::test]
async fn a_draining_replica_still_hears_retries() {
    let scene = Scene::new(|setup| setup.with(|s| s.shutdown.drain = Duration::from_secs(10))).await;
    let (feed, asked) = scene.asked().await;
    scene.replicas[0].gateway.begin_to_stop().await;
    scene.goes_on(2, &feed, &asked).await;
}

/// X44: a call that wants URLs visited is made again where it was made, once.
#[tokio::test]
async fn a_call_is_made_again_through_another_replica() {
    let scene = Scene::new(|setup| setup).await;
    let urls = json!({"elicitations": [{"mode": "url", "elicitationId": "i", "url": "https://x.test", "message": "?"}]});
    let error = json!({"code": -32042, "message": "visit", "data": urls});
    scene.server.once(rpc("tools/call"), Answer::members(&format!(r#""error":{error}"#)));
    let asked = scene.callers[0].call("first", "tools/call", tool("echo", json!({"a": 1}))).await;
    let visited = || json!({"elicitation-1": {"action": "accept"}});
    let done = scene.callers[1].call("second", "tools/call", retry(&asked, visited())).await;
    assert_eq!(done["result"]["resultType"], "complete", "{done}");
    let again = scene.callers[2].call("third", "tools/call", retry(&asked, visited())).await;
    assert_eq!(reason(&again), (-32603, "outcome_unknown"));
    assert_eq!(scene.server.count(rpc("tools/call")), 2);
    assert_eq!(scene.server.sessions().len(), 1, "in the same session of its server");
}

/// R5, case-I03: another principal's state is nothing, wherever it is brought.
#[tokio::test]
async fn a_foreign_state_is_refused_everywhere() {
    let key = |id: &str| ApiKey {
        id: id.to_owned(),
        sha256: digest(&SHA256, id.as_bytes()).as_ref().try_into().unwrap(),
        tenant: None,
        scopes: std::collections::BTreeSet::new(),
        expires: None,
    };
    let scene = Scene::new(|setup| {
        setup.with(|s| {
            (s.auth.api_keys, s.auth.anonymous) = (vec![key("ann"), key("bob")], Anonymous::Loopback);
        })
    })
    .await;
    let as_key = |caller: &ModernClient, key: &str| ModernClient {
        client: caller.client.clone().header("x-api-key", key),
        ..caller.clone()
    };
    let (feed, answer) = Answer::fed();
    scene.server.once(rpc("tools/call"), answer);
    feed.send(message(&elicitation(1))).await;
    let ann = as_key(&scene.callers[0], "ann");
    let asked = ann.call("first", "tools/call", tool("echo", json!({"a": 1}))).await;
    assert!(asked["result"]["requestState"].is_string(), "{asked}");
    for caller in &scene.callers {
        let bob = as_key(caller, "bob");
        let refused = bob.call("x", "tools/call", retry(&asked, accept())).await;
        assert_eq!(reason(&refused), (-32602, "invalid_state"));
    }
    assert_eq!(scene.server.count(is_answer), 0);
    let there = as_key(&scene.callers[2], "ann");
    let (done, ()) = tokio::join!(there.call("second", "tools/call", retry(&asked, accept())), async {
        scene.server.await_request(is_answer).await;
        feed.send(result(DONE)).await;
    });
    is_done(&done, "second");
}

/// A replica before a stdio server that every session has for itself.
async fn with_child(cluster: &Cluster) -> Replica {
    let setup = TestGateway::new().command("u1", SCRIPTED, &[]);
    cluster.replica(setup.with(|s| s.shutdown.drain = Duration::from_millis(500))).await
}

fn caller(replica: &Replica) -> ModernClient {
    modern(&replica.gateway, "/servers/u1/mcp")
}

/// The methods that the caller's child has heard.
async fn heard(caller: &ModernClient) -> Vec<String> {
    let answer = caller.call(1, "tools/call", tool("methods", json!({}))).await;
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
    serde_json::from_str(text).unwrap()
}

fn calls(heard: &[String]) -> usize {
    heard.iter().filter(|method| *method == "tools/call").count()
}

/// X31: two requests of one principal through two replicas come to the same child, whichever was first.
#[tokio::test]
async fn all_replicas_share_the_child_of_one_caller() {
    let cluster = Cluster::new();
    let (a, b) = tokio::join!(with_child(&cluster), with_child(&cluster));
    let both = [caller(&a), caller(&b)];
    let first = join_all((0..10).map(|n| heard(&both[n % 2]))).await;
    assert_eq!(first.len(), 10);
    for (caller, n) in [&both[0], &both[1], &both[1], &both[0]].into_iter().zip(11..) {
        let heard = heard(caller).await;
        assert_eq!((heard.iter().filter(|m| *m == "initialize").count(), calls(&heard)), (1, n));
    }
    // Of those who can be asked other things it has another, as on one replica.
    let other = caller(&b).with(json!({"roots": {}}));
    assert_eq!(calls(&heard(&other).await), 1);
}

/// case-C11: when the owner stops, the next request has a fresh child elsewhere.
#[tokio::test]
async fn a_stopped_owner_is_followed_by_another() {
    let cluster = Cluster::new();
    let (a, b, c) = tokio::join!(with_child(&cluster), with_child(&cluster), with_child(&cluster));
    let (there, elsewhere) = (caller(&b), caller(&c));
    assert_eq!(calls(&heard(&caller(&a)).await), 1);
    assert_eq!(calls(&heard(&there).await), 2);
    a.gateway.stopped().await;
    assert_eq!(calls(&heard(&there).await), 1, "a fresh one");
    assert_eq!(calls(&heard(&elsewhere).await), 2, "and the same for all");
    assert_eq!(b.gateway.sample("mcpgate_ownership_transfers_total{outcome=\"adopted\"}"), 1.0);
}

/// An owner that is cut off from the store is not the owner any more: it says so, and its child is nobody's.
#[tokio::test]
async fn an_owner_without_its_lease_serves_no_state() {
    let cluster = Cluster::new();
    let (a, b) = tokio::join!(with_child(&cluster), with_child(&cluster));
    assert_eq!(calls(&heard(&caller(&a)).await), 1);
    a.way.set_cut(true);
    a.gateway.until("mcpgate_lease_held", |held| held == 0.0).await;
    let request = caller(&a).request(1, "tools/call", tool("methods", json!({})));
    assert_eq!(caller(&a).post(&request).await.status, http::StatusCode::SERVICE_UNAVAILABLE);
    // Until its lease is over it may still be the owner, so that the request is held.
    assert_eq!(calls(&heard(&caller(&b)).await), 1, "a fresh one");
    a.way.set_cut(false);
    a.gateway.until("mcpgate_lease_held", |held| held == 1.0).await;
    assert_eq!(calls(&heard(&caller(&a)).await), 2, "served by the new owner");
}
