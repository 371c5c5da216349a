//! `subscriptions/listen`: callers of the modern era that wait for changes, at servers of both eras.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use crate::client::{Stream, tool};
use crate::gateway::{Setup, TestGateway};
use crate::http_server::{Answer, Feed, Gate, HttpServer, Seen, discovered, hold, http, message, rpc};
use crate::kit::{LEGACY, ModernClient, auto, modern};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
const UPDATED: &str = "notifications/resources/updated";

/// A modern server that acknowledges what it is asked to tell of, but for some URIs, and tells what the test says.
struct Teller {
    server: HttpServer,
    feeds: Arc<Mutex<Vec<Feed>>>,
}

// === impl Teller ===

impl Teller {
    async fn start() -> Self {
        Self::refusing(&[]).await
    }

    async fn refusing(uris: &'static [&'static str]) -> Self {
        let server = HttpServer::modern().await;
        let capabilities = json!({
            "tools": { "listChanged": true },
            "resources": { "listChanged": true, "subscribe": true },
        });
        server.on(rpc("server/discover"), Answer::result(&discovered(&capabilities).to_string()));
        let none = json!({ "resultType": "complete", "resources": [], "ttlMs": 0, "cacheScope": "private" });
        server.on(rpc("resources/list"), Answer::result(&none.to_string()));
        let templates = json!([{ "uriTemplate": "x:{rest}", "name": "x" }]);
        let templates = json!({
            "resultType": "complete", "resourceTemplates": templates, "ttlMs": 60_000, "cacheScope": "private",
        });
        server.on(rpc("resources/templates/list"), Answer::result(&templates.to_string()));
        let feeds: Arc<Mutex<Vec<Feed>>> = Arc::default();
        let all = feeds.clone();
        server.on_each(rpc("subscriptions/listen"), move |seen| {
            let mut granted = seen.json()["params"]["notifications"].clone();
            if let Some(asked) = granted["resourceSubscriptions"].as_array_mut() {
                asked.retain(|uri| !uris.contains(&uri.as_str().unwrap()));
            }
            let note = marked(ACKNOWLEDGED, seen, json!({ "notifications": granted }));
            let (feed, answer) = Answer::fed_after([message(&note.to_string())]);
            all.lock().unwrap().push(feed);
            answer
        });
        Self { server, feeds }
    }

    /// Tells something on every listen that is open.
    async fn tell(&self, method: &str, params: Value) {
        let feeds: Vec<Feed> = std::mem::take(&mut *self.feeds.lock().unwrap());
        for feed in &feeds {
            let note = json!({ "jsonrpc": "2.0", "method": method, "params": params });
            let _ = feed.try_send(message(&note.to_string())).await;
        }
        self.feeds.lock().unwrap().extend(feeds);
    }

    fn tools(&self, name: &str) {
        let tools = json!([{ "name": name, "inputSchema": { "type": "object" } }]);
        let list =
            json!({ "resultType": "complete", "tools": tools, "ttlMs": 60_000, "cacheScope": "private" });
        self.server.on(rpc("tools/list"), Answer::result(&list.to_string()));
    }

    fn before(&self) -> Setup {
        TestGateway::new().http("u1", self.server.url()).adjust(auto)
    }

    /// Ends all listens, as a restart does.
    fn hang_up(&self) {
        self.feeds.lock().unwrap().clear();
    }
}

fn marked(method: &str, listen: &Seen, mut params: Value) -> Value {
    params["_meta"] = json!({ SUBSCRIPTION: listen.json()["id"] });
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

/// Opens a listen; gives what was granted, and the stream behind it.
async fn listen(caller: &ModernClient, id: Value, wanted: Value) -> (Value, Stream) {
    let request = caller.request(id.clone(), "subscriptions/listen", json!({ "notifications": wanted }));
    let answer = caller.post(&request).await;
    assert_eq!(answer.status, 200);
    let mut stream = answer.stream();
    let first = stream.message().await.unwrap();
    assert_eq!(first["method"], ACKNOWLEDGED, "first of all: {first}");
    assert_eq!(first["params"]["_meta"][SUBSCRIPTION], id);
    (first["params"]["notifications"].clone(), stream)
}

/// The listen's own result, and nothing behind it.
async fn closes(mut stream: Stream, id: Value) {
    let last = stream.message().await.unwrap();
    let result = json!({ "resultType": "complete", "_meta": { SUBSCRIPTION: id } });
    assert_eq!(last, json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    assert!(stream.message().await.is_none());
}

fn lists() -> Value {
    json!({ "toolsListChanged": true, "promptsListChanged": true })
}

/// case-K05, N2, N3, M7: at a modern server, by a number and by a string.
#[tokio::test]
async fn tells_what_was_asked_for_and_nothing_else() {
    let teller = Teller::start().await;
    let gateway = teller.before().start().await;
    let caller = modern(&gateway, "/mcp");
    let (granted, mut number) = listen(&caller, json!(7), lists()).await;
    assert_eq!(granted, json!({ "toolsListChanged": true }), "it has no prompts");
    let uris = json!({ "resourceSubscriptions": ["x:1", "nowhere"] });
    let (granted, mut text) = listen(&caller, json!("7"), uris).await;
    assert_eq!(granted["resourceSubscriptions"].as_array().unwrap().len(), 2, "one server may know it");
    teller.tools("other");
    teller.tell(TOOLS_CHANGED, json!({})).await;
    let note = number.message().await.unwrap();
    assert_eq!(
        (&note["method"], &note["params"]),
        (&json!(TOOLS_CHANGED), &json!({ "_meta": { SUBSCRIPTION: 7 } }))
    );
    // N7: a resource below the one that was asked for, and one that is not.
    teller.tell(UPDATED, json!({ "uri": "x:12" })).await;
    teller.tell(UPDATED, json!({ "uri": "x:1/a" })).await;
    let note = text.message().await.unwrap();
    assert_eq!(note["params"], json!({ "_meta": { SUBSCRIPTION: "7" }, "uri": "x:1/a" }));
    assert!(number.is_silent_for(Duration::from_millis(100)).await);
}

/// N2: resources that the server refuses are left out.
#[tokio::test]
async fn acknowledges_only_what_the_server_does() {
    let teller = Teller::refusing(&["x:2"]).await;
    let gateway = teller.before().start().await;
    let caller = modern(&gateway, "/servers/u1/mcp");
    let uris = json!({ "resourceSubscriptions": ["x:1", "x:2"] });
    let (granted, _stream) = listen(&caller, json!(1), uris).await;
    assert_eq!(granted, json!({ "resourceSubscriptions": ["x:1"] }));
}

/// X51: many listens share one at the server, which is changed by opening the new one before the old is closed, and
/// closed with the last of them.
#[tokio::test]
async fn many_share_one_listen_at_the_server() {
    let teller = Teller::start().await;
    let gateway = teller.before().start().await;
    let caller = modern(&gateway, "/servers/u1/mcp");
    let mut streams = Vec::new();
    for n in 0..8 {
        streams.push(listen(&caller, json!(n), lists()).await.1);
    }
    assert_eq!(teller.server.count(rpc("subscriptions/listen")), 1);
    teller.tools("other");
    teller.tell(TOOLS_CHANGED, json!({})).await;
    for stream in &mut streams {
        assert_eq!(stream.message().await.unwrap()["method"], TOOLS_CHANGED);
    }
    let (_, stream) = listen(&caller, json!(8), json!({ "resourceSubscriptions": ["x:1"] })).await;
    let seen = teller.server.await_requests(2, rpc("subscriptions/listen")).await;
    let both = json!({ "toolsListChanged": true, "resourceSubscriptions": ["x:1"] });
    assert_eq!(seen[1].json()["params"]["notifications"], both);
    teller.server.await_hang_up(rpc("subscriptions/listen")).await;
    drop((streams, stream));
    let closed = async {
        while teller.server.count(|seen| seen.is("subscriptions/listen") && !seen.hung_up) > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), closed).await.expect("nobody listens any more");
}

/// N8, T63: when the server's stream breaks it is opened anew, and what may have been missed is told.
#[tokio::test]
async fn tells_what_may_have_been_missed_when_a_listen_broke() {
    let teller = Teller::start().await;
    let gateway = teller.before().start().await;
    let caller = modern(&gateway, "/servers/u1/mcp");
    let (_, mut tools) = listen(&caller, json!(1), lists()).await;
    let (_, mut resource) = listen(&caller, json!(2), json!({ "resourceSubscriptions": ["x:1"] })).await;
    let before = teller.server.count(rpc("subscriptions/listen"));
    teller.tools("other");
    teller.hang_up();
    teller.server.await_requests(before + 1, rpc("subscriptions/listen")).await;
    assert_eq!(tools.message().await.unwrap()["method"], TOOLS_CHANGED);
    assert_eq!(resource.message().await.unwrap()["params"]["uri"], "x:1");
}

/// X10: a session of the legacy era that was shown a list hears of its changes from a modern server.
#[tokio::test]
async fn legacy_sessions_hear_of_lists_of_modern_servers() {
    let teller = Teller::start().await;
    let gateway = teller.before().start().await;
    let caller = gateway.client("/mcp").initialize(LEGACY).await;
    let mut stream = caller.open_get().await;
    caller.call(1, "tools/list", json!({})).await;
    teller.server.await_request(rpc("subscriptions/listen")).await;
    teller.tools("other");
    teller.tell(TOOLS_CHANGED, json!({})).await;
    assert_eq!(stream.message().await.unwrap()["method"], TOOLS_CHANGED);
    caller.delete().await;
    teller.server.await_hang_up(rpc("subscriptions/listen")).await;
}

/// X41: a legacy HTTP server tells on its GET; resources are subscribed to once for all listens of a caller, and
/// taken back with the last.
#[tokio::test]
async fn hears_legacy_http_servers() {
    let server = HttpServer::start().await;
    let said = json!({
        "protocolVersion": LEGACY,
        "capabilities": { "tools": { "listChanged": true }, "resources": { "subscribe": true } },
        "serverInfo": { "name": "u1", "version": "1" },
    });
    server.on(rpc("initialize"), Answer::result(&said.to_string()));
    server.on(rpc("resources/subscribe"), Answer::result("{}"));
    server.on(rpc("resources/unsubscribe"), Answer::result("{}"));
    let (feed, answer) = Answer::fed();
    server.on(http(Method::GET), answer);
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let caller = modern(&gateway, "/servers/u1/mcp");
    let wanted =
        json!({ "toolsListChanged": true, "resourcesListChanged": true, "resourceSubscriptions": ["x:1"] });
    let (granted, mut one) = listen(&caller, json!(1), wanted.clone()).await;
    assert_eq!(granted, json!({ "toolsListChanged": true, "resourceSubscriptions": ["x:1"] }));
    let (_, two) = listen(&caller, json!(2), wanted).await;
    assert_eq!(server.count(rpc("resources/subscribe")), 1);
    feed.send(message(
        r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x:1"}}"#,
    ))
    .await;
    let note = one.message().await.unwrap();
    assert_eq!(note["params"], json!({ "_meta": { SUBSCRIPTION: 1 }, "uri": "x:1" }));
    let other = r#"{"tools":[{"name":"other","inputSchema":{"type":"object"}}]}"#;
    server.on(rpc("tools/list"), Answer::result(other));
    feed.send(message(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#)).await;
    assert_eq!(one.message().await.unwrap()["method"], TOOLS_CHANGED);
    drop(one);
    drop(two);
    server.await_request(rpc("resources/unsubscribe")).await;
    assert_eq!(server.count(rpc("resources/unsubscribe")), 1);
}

/// case-K07: where nothing can ever come the listen is acknowledged with nothing, and ends as it should.
#[tokio::test]
async fn ends_at_once_where_nothing_can_come() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let (granted, stream) = listen(&modern(&gateway, "/mcp"), json!("a"), lists()).await;
    assert_eq!(granted, json!({}));
    closes(stream, json!("a")).await;
    // Nothing was asked for.
    let (granted, stream) = listen(&modern(&gateway, "/mcp"), json!(1), json!({})).await;
    assert_eq!(granted, json!({}));
    closes(stream, json!(1)).await;
}

/// case-K05, N4: several at once, up to a bound.
#[tokio::test]
async fn holds_a_principal_to_its_bound() {
    let gateway = TestGateway::new()
        .stdio("u1", &[])
        .with(|settings| settings.limits.listens_per_principal = 4)
        .start()
        .await;
    let caller = modern(&gateway, "/mcp");
    let mut streams = Vec::new();
    for n in 0..4 {
        streams.push(listen(&caller, json!(n), lists()).await.1);
    }
    let fifth = caller.request(4, "subscriptions/listen", json!({ "notifications": lists() }));
    let refused = caller.post(&fifth).await;
    assert_eq!(refused.status, 429);
    assert!(refused.header("retry-after").is_some());
    assert_eq!(refused.json().await["error"]["data"]["mcpgate"]["reason"], "too_many_listens");
    // The place of one that was closed is free again.
    streams.pop();
    let taken = async {
        while caller.post(&fifth).await.status == 429 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), taken).await.unwrap();
}

/// What is no filter, or too large a one, is refused at once.
#[tokio::test]
async fn refuses_what_is_no_filter() {
    let gateway = TestGateway::new().stdio("u1", &[]).start().await;
    let caller = modern(&gateway, "/mcp");
    let many: Vec<String> = (0..10_000).map(|n| format!("x:{n}")).collect();
    for params in [
        json!({}),
        json!({ "notifications": [] }),
        json!({ "notifications": { "toolsListChanged": "yes" } }),
        json!({ "notifications": { "resourceSubscriptions": many } }),
        json!({ "notifications": { "resourceSubscriptions": ["x".repeat(8193)] } }),
    ] {
        let answer = caller.post(&caller.request(1, "subscriptions/listen", params)).await;
        assert_eq!(answer.json().await["error"]["code"], -32602);
    }
    // N9
    let tasks = json!({ "notifications": { "taskIds": ["t"] } });
    let answer = caller.post(&caller.request(1, "subscriptions/listen", tasks)).await;
    assert_eq!(answer.status, 400);
    assert_eq!(answer.json().await["error"]["code"], -32021);
}

/// N5, case-K05: at a shutdown every listen ends with its result.
#[tokio::test]
async fn a_drain_ends_listens_with_their_results() {
    let teller = Teller::start().await;
    let gateway = teller.before().start().await;
    let (_, stream) = listen(&modern(&gateway, "/mcp"), json!("z"), lists()).await;
    gateway.stop();
    closes(stream, json!("z")).await;
}

/// A reload that takes the endpoint away ends the listen with its result; one that adds a server does not.
#[tokio::test]
async fn a_reload_keeps_what_it_can() {
    let (teller, more) = (Teller::start().await, Teller::start().await);
    let named = |setup: Setup| {
        setup.with(|settings| {
            settings.endpoints.push(mcpgate::settings::EndpointSettings {
                name: "some".into(),
                servers: Vec::new(),
                allow: Vec::new(),
                deny: Vec::new(),
                sessions: mcpgate::settings::endpoints::SessionPolicy::Required,
            });
        })
    };
    let gateway = named(teller.before()).start().await;
    let (_, going) = listen(&modern(&gateway, "/some/mcp"), json!(1), lists()).await;
    let (_, mut staying) = listen(&modern(&gateway, "/mcp"), json!(2), lists()).await;
    gateway.reload(teller.before().http("u2", more.server.url()).adjust(auto)).await;
    closes(going, json!(1)).await;
    assert_eq!(staying.message().await.unwrap()["method"], TOOLS_CHANGED, "there are more tools now");
    more.server.await_request(rpc("subscriptions/listen")).await;
    more.tools("other");
    more.tell(TOOLS_CHANGED, json!({})).await;
    assert_eq!(staying.message().await.unwrap()["method"], TOOLS_CHANGED);
}

/// stdio of both eras: a listen starts the child, hears it, and survives its end (T63).
#[tokio::test]
async fn hears_children_of_both_eras_and_their_restart() {
    for era in ["legacy", "modern"] {
        let gateway = TestGateway::new().stdio("u1", &["--era", era]).adjust(auto).start().await;
        let caller = modern(&gateway, "/servers/u1/mcp");
        let (granted, mut stream) = listen(&caller, json!(1), lists()).await;
        assert_eq!(granted, json!({ "toolsListChanged": true }), "{era}");
        caller.call(2, "tools/call", tool("grow", json!({ "name": "new" }))).await;
        assert_eq!(stream.message().await.unwrap()["method"], TOOLS_CHANGED, "{era}");
        // It comes back without what it had grown: that is told, though nobody called it meanwhile.
        caller.call(3, "tools/call", tool("exit", json!({ "code": 1 }))).await;
        let note = tokio::time::timeout(Duration::from_secs(15), stream.message()).await;
        assert_eq!(note.unwrap().unwrap()["method"], TOOLS_CHANGED, "{era}");
    }
}

/// A server that cannot be reached holds nobody up beyond `timeouts.list`, and tells once it is there.
#[tokio::test]
async fn a_dead_server_keeps_nothing_from_the_others() {
    let teller = Teller::start().await;
    let dead = HttpServer::modern().await;
    let gate = Gate::new();
    let slow = Answer::result(&discovered(&json!({ "tools": { "listChanged": true } })).to_string());
    dead.on(rpc("server/discover"), slow.after(&gate));
    let gateway = teller
        .before()
        .http("dead", dead.url())
        .adjust(auto)
        .adjust(|server| server.timeouts.list = Duration::from_millis(100))
        .start()
        .await;
    let (granted, mut stream) = listen(&modern(&gateway, "/mcp"), json!(1), lists()).await;
    assert_eq!(granted, json!({ "toolsListChanged": true }));
    gate.open();
    assert_eq!(stream.message().await.unwrap()["method"], TOOLS_CHANGED, "its tools came");
}

/// A listen ends with its result when the credential that opened it does, and when ways in are taken away.
#[tokio::test]
async fn ends_with_its_credential() {
    let teller = Teller::start().await;
    let key = mcpgate::settings::auth::ApiKey {
        id: "ann".into(),
        sha256: aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, b"short-key")
            .as_ref()
            .try_into()
            .unwrap(),
        tenant: None,
        scopes: std::collections::BTreeSet::new(),
        expires: Some(std::time::SystemTime::now() + Duration::from_millis(1500)),
    };
    let gateway = teller.before().with(|settings| settings.auth.api_keys = vec![key]).start().await;
    let mut caller = modern(&gateway, "/mcp");
    caller.client = caller.client.header("x-api-key", "short-key");
    let (_, stream) = listen(&caller, json!(1), lists()).await;
    closes(stream, json!(1)).await;
}

/// A server that answers a listen for one of these resources with an error.
async fn choosy(refused: &'static [&'static str]) -> Teller {
    let teller = Teller::start().await;
    let refuses = move |seen: &Seen| {
        let asked = seen.json()["params"]["notifications"]["resourceSubscriptions"].clone();
        seen.is("subscriptions/listen")
            && asked
                .as_array()
                .is_some_and(|all| all.iter().any(|uri| refused.contains(&uri.as_str().unwrap())))
    };
    teller.server.on(refuses, Answer::error(-32602, "no such resource"));
    teller
}

/// A resource for which a server refuses the whole listen is a matter of who asked for it: the others go on hearing,
/// and whoever comes later is heard too.
#[tokio::test]
async fn one_refused_resource_silences_nobody() {
    let teller = choosy(&["x:bad"]).await;
    let gateway = teller.before().start().await;
    let caller = modern(&gateway, "/servers/u1/mcp");
    let resource = |uri: &str| json!({ "resourceSubscriptions": [uri] });
    let (_, mut before) = listen(&caller, json!(1), resource("x:1")).await;
    let (granted, bad) = listen(&caller, json!(2), resource("x:bad")).await;
    assert_eq!(granted, json!({}));
    closes(bad, json!(2)).await;
    let (granted, mut mixed) =
        listen(&caller, json!(3), json!({ "resourceSubscriptions": ["x:2", "x:bad", "x:3"] })).await;
    assert_eq!(granted, json!({ "resourceSubscriptions": ["x:2", "x:3"] }));
    let (granted, mut after) = listen(&caller, json!(4), resource("x:4")).await;
    assert_eq!(granted, resource("x:4"));
    for (stream, uri) in [(&mut before, "x:1"), (&mut mixed, "x:3"), (&mut after, "x:4")] {
        teller.tell(UPDATED, json!({ "uri": uri })).await;
        assert_eq!(stream.message().await.unwrap()["params"]["uri"], uri);
    }
    // What was asked for together with it from the very first is heard as well, and after a break.
    teller.hang_up();
    for (stream, uri) in [(&mut before, "x:1"), (&mut after, "x:4")] {
        assert_eq!(stream.message().await.unwrap()["params"]["uri"], uri, "it may have been missed");
    }
}

/// While a server does not take a new listen, the one that stands is read.
#[tokio::test]
async fn a_listen_that_stands_is_read_while_the_next_one_fails() {
    let (teller, other) = (Teller::start().await, Teller::start().await);
    let gateway = teller.before().http("u2", other.server.url()).adjust(auto).start().await;
    let caller = modern(&gateway, "/mcp");
    let (_, mut tools) = listen(&caller, json!(1), lists()).await;
    teller.server.on(rpc("subscriptions/listen"), Answer::error(-32603, "not now").with_status(500));
    let (_, _both) = listen(&caller, json!(2), json!({ "resourcesListChanged": true })).await;
    teller.tools("other");
    teller.tell(TOOLS_CHANGED, json!({})).await;
    let note = tokio::time::timeout(Duration::from_millis(500), tools.message()).await;
    assert_eq!(note.expect("at once").unwrap()["method"], TOOLS_CHANGED);
}

/// N7: a legacy subscriber is not told of a resource whose URI only begins like the one it subscribed to.
#[tokio::test]
async fn a_legacy_subscriber_hears_of_no_neighbours() {
    let teller = Teller::start().await;
    let gateway = teller.before().start().await;
    let caller = gateway.client("/servers/u1/mcp").initialize(LEGACY).await;
    let mut stream = caller.open_get().await;
    caller.call(1, "resources/subscribe", json!({ "uri": "x:1" })).await;
    teller.tell(UPDATED, json!({ "uri": "x:12" })).await;
    teller.tell(UPDATED, json!({ "uri": "x:1/a" })).await;
    assert_eq!(stream.message().await.unwrap()["params"]["uri"], "x:1/a");
}

/// The bounds of what one caller may ask for are not those of what a server acknowledges to all of them together.
#[tokio::test]
async fn callers_may_want_more_together_than_each() {
    let teller = Teller::start().await;
    let gateway = teller.before().start().await;
    let caller = modern(&gateway, "/servers/u1/mcp");
    let mut streams = Vec::new();
    for part in 0..3 {
        let uris: Vec<String> = (0..900).map(|n| format!("x:{part}/{n:03}")).collect();
        let (granted, stream) = listen(&caller, json!(part), json!({ "resourceSubscriptions": uris })).await;
        assert_eq!(granted["resourceSubscriptions"], json!(uris));
        streams.push(stream);
    }
    teller.tell(UPDATED, json!({ "uri": "x:2/899" })).await;
    assert_eq!(streams[2].message().await.unwrap()["params"]["uri"], "x:2/899");
}

/// A modern server that is down for a moment is treated as a legacy one: its lists are granted, and told of once it
/// is there.
#[tokio::test]
async fn a_modern_server_that_is_down_for_a_moment_tells_later() {
    let teller = Teller::start().await;
    let gateway = teller.before().start().await;
    let caller = modern(&gateway, "/servers/u1/mcp");
    caller.call(1, "tools/list", json!({})).await;
    let down = Arc::new(AtomicBool::new(true));
    let is_down = down.clone();
    let refuses = move |seen: &Seen| seen.is("subscriptions/listen") && is_down.load(Relaxed);
    teller.server.on(refuses, Answer::error(-32603, "not now").with_status(503));
    let (granted, mut stream) = listen(&caller, json!(2), lists()).await;
    assert_eq!(granted, json!({ "toolsListChanged": true }));
    teller.tools("other");
    down.store(false, Relaxed);
    let note = tokio::time::timeout(Duration::from_secs(10), stream.message()).await;
    assert_eq!(note.unwrap().unwrap()["method"], TOOLS_CHANGED);
}

/// One server's `timeouts.list` is waited for once, however many steps there are on the way to it.
#[tokio::test]
async fn a_slow_server_is_waited_for_once() {
    let slow = HttpServer::start().await;
    let said = json!({
        "protocolVersion": LEGACY,
        "capabilities": { "tools": { "listChanged": true }, "resources": { "subscribe": true } },
        "serverInfo": { "name": "u1", "version": "1" },
    });
    slow.on(rpc("initialize"), Answer::result(&said.to_string()));
    slow.on(http(Method::GET), Answer::status(405).after(&Gate::new()));
    slow.on(rpc("resources/subscribe"), Answer::events([hold()]));
    let limit = Duration::from_millis(800);
    let gateway = TestGateway::new()
        .http("u1", slow.url())
        .adjust(move |server| server.timeouts.list = limit)
        .start()
        .await;
    let caller = modern(&gateway, "/servers/u1/mcp");
    let begun = std::time::Instant::now();
    let (granted, stream) = listen(&caller, json!(1), json!({ "resourceSubscriptions": ["x:1"] })).await;
    assert_eq!(granted, json!({}));
    closes(stream, json!(1)).await;
    assert!(begun.elapsed() < limit * 3 / 2, "{:?}", begun.elapsed());
}

/// T66, N8: a modern server that comes back as a legacy one goes on telling those who listen.
#[tokio::test]
async fn a_server_that_turns_legacy_goes_on_telling() {
    let teller = Teller::start().await;
    teller.tools("before");
    let gateway = teller.before().start().await;
    let caller = modern(&gateway, "/mcp");
    caller.call(0, "tools/list", json!({})).await;
    let (_, mut stream) = listen(&caller, json!(1), json!({ "toolsListChanged": true })).await;
    // A legacy server knows neither of these.
    for method in ["server/discover", "subscriptions/listen"] {
        teller.server.on(rpc(method), Answer::error(-32000, "no session").with_status(400));
    }
    let (standalone, answer) = Answer::fed();
    teller.server.on(http(Method::GET), answer);
    teller.server.turn_legacy();
    teller.tools("after");
    teller.hang_up();
    assert_eq!(stream.message().await.expect("what may have been missed")["method"], TOOLS_CHANGED);
    let list = caller.call(2, "tools/list", json!({})).await;
    assert_eq!(list["result"]["tools"][0]["name"], "mcp_u1_after", "{list}");
    teller.server.await_request(http(Method::GET)).await;
    teller.tools("later");
    standalone.send(message(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#)).await;
    assert_eq!(stream.message().await.expect("what it tells now")["method"], TOOLS_CHANGED);
}
