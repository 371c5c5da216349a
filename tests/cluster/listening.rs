//! Listens of modern callers at replicas that do not own their implicit session: what its links are told reaches them,
//! from one session of the server, whoever owns it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use http::{Method, StatusCode};
use mcpgate::settings::Settings;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::binary::Binary;
use crate::caps::is_refused;
use crate::client::{SOON, Stream, request, tool};
use crate::gateway::TestGateway;
use crate::http_server::{Answer, Feed, HttpServer, discovered, http, message, rpc};
use crate::kit::{LEGACY, ModernClient, auto, modern};
use crate::processes::fleet_before;
use crate::replicas::{Cluster, Replica};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
const UPDATED: &str = "notifications/resources/updated";

/// A legacy server that keeps state, and tells each of its sessions what the test says.
struct Keeper {
    server: HttpServer,
    feeds: Arc<Mutex<Vec<Feed>>>,
}

// === impl Keeper ===

impl Keeper {
    async fn start() -> Self {
        let server = HttpServer::start().await;
        let said = json!({
            "protocolVersion": LEGACY,
            "capabilities": { "tools": { "listChanged": true }, "resources": { "subscribe": true } },
            "serverInfo": { "name": "u1", "version": "1" },
        });
        server.on(rpc("initialize"), Answer::result(&said.to_string()));
        server.on(rpc("resources/subscribe"), Answer::result("{}"));
        server.on(rpc("resources/unsubscribe"), Answer::result("{}"));
        server.on(rpc("resources/list"), Answer::result(r#"{"resources":[{"uri":"x:1","name":"x"}]}"#));
        server.on(rpc("resources/templates/list"), Answer::result(r#"{"resourceTemplates":[]}"#));
        let feeds: Arc<Mutex<Vec<Feed>>> = Arc::default();
        let all = feeds.clone();
        server.on_each(http(Method::GET), move |_| {
            let (feed, answer) = Answer::fed();
            all.lock().unwrap().push(feed);
            answer
        });
        Self { server, feeds }
    }

    /// Tells the session that began last, once it listens, and no other.
    async fn tell(&self, method: &str, params: Value) {
        let begun = self.server.count(rpc("initialize"));
        self.server.await_requests(begun, http(Method::GET)).await;
        let feed = self.feeds.lock().unwrap().pop().unwrap();
        let note = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        feed.send(message(&note.to_string())).await;
        self.feeds.lock().unwrap().push(feed);
    }

    /// Tells all sessions that have begun.
    async fn tell_all(&self, method: &str) {
        self.server.await_requests(self.server.count(rpc("initialize")), http(Method::GET)).await;
        let feeds: Vec<Feed> = std::mem::take(&mut *self.feeds.lock().unwrap());
        for feed in &feeds {
            let note = json!({ "jsonrpc": "2.0", "method": method });
            feed.send(message(&note.to_string())).await;
        }
        self.feeds.lock().unwrap().extend(feeds);
    }

    fn has_tool(&self, name: &str) {
        let tools = json!({ "tools": [{ "name": name, "inputSchema": { "type": "object" } }] });
        self.server.on(rpc("tools/list"), Answer::result(&tools.to_string()));
    }

    async fn tell_updated(&self, uri: &str) {
        self.tell(UPDATED, json!({ "uri": uri })).await;
    }

    async fn tell_tools(&self, name: &str) {
        self.has_tool(name);
        self.tell(TOOLS_CHANGED, json!({})).await;
    }

    /// Replicas before it.
    async fn replicas<const N: usize>(&self, cluster: &Cluster) -> [Replica; N] {
        self.replicas_with(cluster, |_| ()).await
    }

    async fn replicas_with<const N: usize>(
        &self,
        cluster: &Cluster,
        change: fn(&mut Settings),
    ) -> [Replica; N] {
        let replica = || {
            let setup = TestGateway::new().http("u1", self.server.url()).with(change);
            cluster.replica(setup.with(|s| s.shutdown.drain = Duration::from_millis(500)))
        };
        let all = join_all((0..N).map(|_| replica())).await;
        all.try_into().unwrap_or_else(|_| panic!("as many as were asked for"))
    }
}

/// The caller at a replica.
fn at(replica: &Replica) -> ModernClient {
    modern(&replica.gateway, "/servers/u1/mcp")
}

/// A call at a replica: it owns the caller's implicit session from then on, if nobody did.
async fn call(replica: &Replica) {
    served(&at(replica)).await;
}

/// A call that is served. A replica that does not know at the moment whether it holds its lease, or what the store has,
/// asks to be tried again: a busy machine makes the short lease of these tests run out.
async fn served(caller: &ModernClient) {
    let call = async {
        loop {
            let answer = caller.call("call", "tools/call", tool("echo", json!({ "a": 1 }))).await;
            if answer["result"]["resultType"] == "complete" {
                return;
            }
            assert_eq!(answer["error"]["data"]["mcpgate"]["retryable"], true, "{answer}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(SOON, call).await.expect("it is served");
}

/// An open listen, and its id.
struct Listen {
    stream: Stream,
    id: Value,
}

impl Listen {
    async fn open(caller: ModernClient, id: Value, wanted: Value) -> Self {
        let request = caller.request(id.clone(), "subscriptions/listen", json!({ "notifications": wanted }));
        let mut stream = caller.post(&request).await.stream();
        let first = stream.message().await.unwrap();
        let granted = json!({ "_meta": { SUBSCRIPTION: id }, "notifications": wanted });
        assert_eq!(first["params"], granted, "{first}");
        Self { stream, id }
    }

    /// The next message, which is of this listen.
    async fn next(&mut self) -> Value {
        let note = tokio::time::timeout(SOON, self.stream.message()).await.expect("a message in time");
        let note = note.expect("the listen goes on");
        assert_eq!(note["params"]["_meta"][SUBSCRIPTION], self.id, "{note}");
        note
    }

    async fn is_updated(&mut self, uri: &str) {
        let note = self.next().await;
        assert_eq!((&note["method"], &note["params"]["uri"]), (&json!(UPDATED), &json!(uri)), "{note}");
    }

    async fn is_of_tools(&mut self) {
        let note = self.next().await;
        assert_eq!(note["method"], TOOLS_CHANGED, "{note}");
    }

    /// What may have been missed comes, in any order, and then nothing else before `uri`, of which it is told by the
    /// server.
    async fn goes_on(&mut self, keeper: &Keeper, uri: &str) {
        let missed = [self.next().await, self.next().await];
        let tools = missed.iter().filter(|note| note["method"] == TOOLS_CHANGED).count();
        let updated = missed.iter().filter(|note| note["params"]["uri"] == "x:1").count();
        assert_eq!((tools, updated), (1, 1), "{missed:?}");
        keeper.tell_updated(uri).await;
        self.is_updated(uri).await;
    }
}

fn all() -> Value {
    json!({ "toolsListChanged": true, "resourceSubscriptions": ["x:1"] })
}

/// X31, X41, N7: a listen at one replica hears the session that another owns, each thing once, and the server has one
/// session for both.
#[tokio::test]
async fn a_listen_hears_the_session_that_another_replica_owns() {
    let (keeper, cluster) = (Keeper::start().await, Cluster::steady());
    let [a, b] = keeper.replicas(&cluster).await;
    call(&a).await;
    let mut listen = Listen::open(at(&b), json!(7), all()).await;
    keeper.tell_updated("x:1").await;
    listen.is_updated("x:1").await;
    keeper.tell_tools("other").await;
    listen.is_of_tools().await;
    keeper.tell_updated("x:2").await;
    keeper.tell_updated("x:1/a").await;
    listen.is_updated("x:1/a").await;
    assert_eq!(keeper.server.count(rpc("resources/subscribe")), 1);
    assert_eq!(keeper.server.count(rpc("initialize")), 1, "one session for both replicas");
}

/// A list that is known where the listen is, too, is the new one by the time that its change is told, once.
#[tokio::test]
async fn whoever_is_told_of_a_list_is_shown_the_new_one() {
    let (keeper, cluster) = (Keeper::start().await, Cluster::steady());
    let [a, b] = keeper.replicas(&cluster).await;
    let listed = || async {
        let listed = at(&b).call("list", "tools/list", json!({})).await;
        listed["result"]["tools"][0]["name"].as_str().unwrap().to_owned()
    };
    call(&a).await;
    keeper.has_tool("old");
    assert_eq!(listed().await, "old");
    let mut listen = Listen::open(at(&b), json!(1), json!({ "toolsListChanged": true })).await;
    keeper.has_tool("new");
    keeper.tell_all(TOOLS_CHANGED).await;
    listen.is_of_tools().await;
    assert_eq!(listed().await, "new");
    keeper.has_tool("newer");
    keeper.tell_all(TOOLS_CHANGED).await;
    listen.is_of_tools().await;
    assert_eq!(listed().await, "newer");
    assert!(listen.stream.is_silent_for(Duration::from_millis(300)).await, "each is told once");
}

/// case-K05: a caller that closes its listen at one replica is not subscribed any more at the owner's server.
#[tokio::test]
async fn closing_a_listen_ends_what_the_owner_has_of_it() {
    let (keeper, cluster) = (Keeper::start().await, Cluster::steady());
    let [a, b] = keeper.replicas(&cluster).await;
    call(&a).await;
    let (one, mut two) = tokio::join!(
        Listen::open(at(&b), json!("one"), json!({ "resourceSubscriptions": ["x:1"] })),
        Listen::open(at(&b), json!("two"), json!({ "resourceSubscriptions": ["x:2"] })),
    );
    drop(one);
    let ended = keeper.server.await_request(rpc("resources/unsubscribe")).await;
    assert_eq!(ended.json()["params"]["uri"], "x:1");
    keeper.tell_updated("x:2").await;
    two.is_updated("x:2").await;
    assert_eq!(keeper.server.count(rpc("resources/unsubscribe")), 1);
    assert_eq!(keeper.server.count(rpc("initialize")), 1, "at the owner's server");
}

/// A listen counts where it is, for its principal over all replicas: what the owner has of those elsewhere takes no place.
#[tokio::test]
async fn a_listen_counts_once_for_its_principal() {
    let (keeper, cluster) = (Keeper::start().await, Cluster::steady());
    let [a, b, c] = keeper.replicas_with(&cluster, |s| s.limits.listens_per_principal = 3).await;
    call(&a).await;
    let mut all_three = Vec::new();
    for (replica, n) in [&b, &c, &a].into_iter().zip(1..) {
        all_three.push(Listen::open(at(replica), json!(n), all()).await);
    }
    a.tells(&[&b, &c]).await;
    b.tells(&[&a, &c]).await;
    c.tells(&[&a, &b]).await;
    for replica in [&a, &b, &c] {
        let more = at(replica).request(9, "subscriptions/listen", json!({ "notifications": all() }));
        let refused = at(replica).post(&more).await;
        assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(refused.json().await["error"]["data"]["mcpgate"]["reason"], "too_many_listens");
    }
    keeper.tell_updated("x:1").await;
    for listen in &mut all_three {
        listen.is_updated("x:1").await;
    }
    assert_eq!(keeper.server.count(rpc("resources/subscribe")), 1);
    assert_eq!(keeper.server.count(rpc("initialize")), 1);
    // One that is closed makes room everywhere.
    drop(all_three.remove(0));
    b.gateway.until(r#"mcpgate_sse_streams_active{kind="listen"}"#, |open| open == 0.0).await;
    b.tells(&[&a, &c]).await;
    Listen::open(at(&c), json!(4), all()).await;
}

/// Long-lived streams of both eras count together, over all replicas: a GET where its session is owned, a listen where
/// its caller opened it, and not what its owner has of it. What a POST became is none of them.
#[tokio::test]
async fn long_lived_streams_are_held_to_their_cap_over_all_replicas() {
    let (keeper, cluster) = (Keeper::start().await, Cluster::steady());
    let [a, b] = keeper.replicas_with(&cluster, |s| s.streams.max = 2).await;
    call(&a).await;
    let legacy = a.gateway.client("/servers/u1/mcp").initialize(LEGACY).await;
    let other = a.gateway.client("/servers/u1/mcp").initialize(LEGACY).await;
    let get = b.caller(&legacy).open_get().await;
    a.tells(&[&b]).await;
    let _listen = Listen::open(at(&b), json!(1), all()).await;
    b.tells(&[&a]).await;
    for replica in [&a, &b] {
        let refused = replica.caller(&other).send(Method::GET, "").await;
        is_refused(refused, StatusCode::SERVICE_UNAVAILABLE, "too_many_streams").await;
        let more = at(replica).request(9, "subscriptions/listen", json!({ "notifications": all() }));
        let refused = at(replica).post(&more).await;
        is_refused(refused, StatusCode::SERVICE_UNAVAILABLE, "too_many_streams").await;
    }
    let calling = request(3, "tools/call", tool("echo", json!({})));
    let streamed = other.clone().header("accept", "text/event-stream").post(&calling).await;
    assert!(streamed.is_stream(), "a POST is not refused");
    assert!(streamed.response().await["result"].is_object());
    drop(get);
    a.gateway.until(r#"mcpgate_sse_streams_active{kind="get"}"#, |open| open == 0.0).await;
    other.open_get().await;
}

/// A listen makes its replica the owner of a session that is nobody's: calls come to the same one.
#[tokio::test]
async fn a_listen_takes_a_session_that_nobody_owns() {
    let (keeper, cluster) = (Keeper::start().await, Cluster::steady());
    let [a, b] = keeper.replicas(&cluster).await;
    let mut listen = Listen::open(at(&b), json!(1), all()).await;
    call(&a).await;
    keeper.tell_updated("x:1").await;
    listen.is_updated("x:1").await;
    assert_eq!(keeper.server.count(rpc("initialize")), 1);
}

/// N8, case-A01: the owner stops, and listens at the others go on: with one new session between them, and told what they
/// may have missed.
#[tokio::test]
async fn listens_outlive_a_stopped_owner() {
    let (keeper, cluster) = (Keeper::start().await, Cluster::steady());
    let [a, b, c] = keeper.replicas(&cluster).await;
    call(&a).await;
    let (mut first, mut second) =
        tokio::join!(Listen::open(at(&b), json!(1), all()), Listen::open(at(&c), json!(2), all()),);
    assert_eq!(keeper.server.count(rpc("initialize")), 1);
    a.gateway.stopped().await;
    let missed = [first.next().await, first.next().await, second.next().await, second.next().await];
    for id in [1, 2] {
        let its = || missed.iter().filter(|note| note["params"]["_meta"][SUBSCRIPTION] == id);
        assert_eq!(its().filter(|note| note["method"] == TOOLS_CHANGED).count(), 1, "{missed:?}");
        assert_eq!(its().filter(|note| note["params"]["uri"] == "x:1").count(), 1, "{missed:?}");
    }
    assert_eq!(keeper.server.count(rpc("initialize")), 2, "one new session for both");
    keeper.tell_updated("x:1").await;
    first.is_updated("x:1").await;
    second.is_updated("x:1").await;
    keeper.tell_tools("other").await;
    first.is_of_tools().await;
    second.is_of_tools().await;
    keeper.tell_updated("x:1/a").await;
    first.is_updated("x:1/a").await;
    second.is_updated("x:1/a").await;
}

/// N8: an owner that is cut off from the store contributes nothing any more, and the listen goes on.
#[tokio::test]
async fn a_listen_outlives_an_owner_without_its_lease() {
    let (keeper, cluster) = (Keeper::start().await, Cluster::new());
    let [a, b] = keeper.replicas(&cluster).await;
    call(&a).await;
    let mut listen = Listen::open(at(&b), json!("x"), all()).await;
    a.way.set_cut(true);
    listen.goes_on(&keeper, "x:1/a").await;
    assert_eq!(keeper.server.count(rpc("initialize")), 2);
    // Calls at both replicas come to the session that is listened to.
    a.way.set_cut(false);
    a.gateway.until("mcpgate_lease_held", |held| held == 1.0).await;
    call(&a).await;
    call(&b).await;
    assert_eq!(keeper.server.count(rpc("initialize")), 2);
    keeper.tell_updated("x:1").await;
    listen.is_updated("x:1").await;
}

/// N8: the same when the owner's process is killed, and when it stands still behind a connection that lives.
#[tokio::test]
async fn a_listen_outlives_an_owner_that_is_killed_or_paused() {
    for signal in [Signal::KILL, Signal::STOP] {
        let keeper = Keeper::start().await;
        let fleet = fleet_before(&keeper.server).await;
        let (a, b) = tokio::join!(fleet.replica(), fleet.replica());
        let caller =
            |at: &Binary| ModernClient { client: at.client("/servers/u1/mcp"), capabilities: json!({}) };
        served(&caller(&a)).await;
        let mut listen = Listen::open(caller(&b), json!(1), all()).await;
        assert_eq!(keeper.server.count(rpc("initialize")), 1);
        a.process.signal(signal);
        listen.goes_on(&keeper, "x:1/a").await;
        assert_eq!(keeper.server.count(rpc("initialize")), 2);
    }
}

/// Before several servers only those that keep state are heard at the owner, and nothing is told twice.
#[tokio::test]
async fn what_keeps_no_state_is_heard_where_the_listen_is() {
    let (keeper, cluster) = (Keeper::start().await, Cluster::steady());
    let other = HttpServer::modern().await;
    let can = discovered(&json!({ "tools": { "listChanged": true } }));
    other.on(rpc("server/discover"), Answer::result(&can.to_string()));
    let feeds: Arc<Mutex<Vec<Feed>>> = Arc::default();
    let all_feeds = feeds.clone();
    other.on_each(rpc("subscriptions/listen"), move |seen| {
        let asked = seen.json();
        let granted = asked["params"]["notifications"].clone();
        let params = json!({ "_meta": { SUBSCRIPTION: asked["id"] }, "notifications": granted });
        let note = json!({ "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params });
        let (feed, answer) = Answer::fed_after([message(&note.to_string())]);
        all_feeds.lock().unwrap().push(feed);
        answer
    });
    let replica = || {
        let setup = TestGateway::new().http("u1", keeper.server.url()).http("m1", other.url()).adjust(auto);
        cluster.replica(setup)
    };
    let (a, b) = tokio::join!(replica(), replica());
    let everywhere = |replica: &Replica| modern(&replica.gateway, "/mcp");
    let done = everywhere(&a).call(1, "tools/call", tool("mcp_u1_echo", json!({ "a": 1 }))).await;
    assert_eq!(done["result"]["resultType"], "complete", "{done}");
    let mut listen = Listen::open(everywhere(&b), json!(7), all()).await;
    other.await_request(rpc("subscriptions/listen")).await;
    let tools = json!([{ "name": "new", "inputSchema": { "type": "object" } }]);
    let tools = json!({ "resultType": "complete", "tools": tools, "ttlMs": 60_000, "cacheScope": "private" });
    other.on(rpc("tools/list"), Answer::result(&tools.to_string()));
    let told: Vec<Feed> = std::mem::take(&mut *feeds.lock().unwrap());
    for feed in &told {
        let note = json!({ "jsonrpc": "2.0", "method": TOOLS_CHANGED, "params": {} });
        assert!(feed.try_send(message(&note.to_string())).await);
    }
    listen.is_of_tools().await;
    keeper.tell_updated("x:1").await;
    listen.is_updated("x:1").await;
    keeper.tell_tools("other").await;
    listen.is_of_tools().await;
    keeper.tell_updated("x:1/a").await;
    listen.is_updated("x:1/a").await;
    assert_eq!(keeper.server.count(rpc("initialize")), 1, "one session for both replicas");
}
