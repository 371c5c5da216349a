//! A changed config while sessions go on.

use std::time::{Duration, Instant};

use futures_util::future::join;
use serde_json::json;

use crate::client::{Client, Stream, request, tool};
use crate::gateway::{Setup, TestGateway};
use crate::http_server::{Answer, Gate, HttpServer, hold, hold_until, http, message, result, rpc};
use crate::kit::{REVISION, call, failure, offers, server_with, session, tools, until};
use mcpgate::settings::EndpointSettings;
use mcpgate::settings::servers::{Isolation, TransportSettings};

const TOLD: &str = "notifications/tools/list_changed";

async fn next_method(stream: &mut Stream) -> String {
    stream.message().await.expect("a message")["method"].as_str().expect("a method").to_owned()
}

async fn is_quiet(stream: &mut Stream) -> bool {
    tokio::time::timeout(Duration::from_millis(400), stream.message()).await.is_err()
}

/// Who uses servers that stay notices nothing: links, running calls and views go on.
#[tokio::test]
async fn who_uses_servers_that_stay_notices_nothing() {
    let (stays, goes) = (HttpServer::start().await, HttpServer::start().await);
    let gate = Gate::new();
    let long = Answer::events([hold_until(&gate), result(r#"{"content":[]}"#)]);
    let with = |setup: Setup| setup.http("stays", stays.url()).stdio("child", &[]);
    let gateway = with(TestGateway::new()).http("goes", goes.url()).start().await;
    let client = gateway.client("/servers/stays/mcp").initialize(REVISION).await;
    let child = gateway.client("/servers/child/mcp").initialize(REVISION).await;
    assert_eq!(tools(&client).await, ["echo"]);
    tools(&child).await;
    let mut get = client.open_get().await;
    stays.once(rpc("tools/call"), long);
    let running = call(&client, "long", "echo", json!({}));
    let sleeping = call(&child, "sleep", "sleep", json!({"ms": 600}));
    let reloading = async {
        stays.await_request(rpc("tools/call")).await;
        gateway.reload(with(TestGateway::new())).await;
        gateway.reload(with(TestGateway::new())).await;
        assert_eq!(tools(&client).await, ["echo"]);
        assert!(call(&client, 2, "echo", json!({})).await["result"].is_object());
        gate.open();
    };
    let ((running, sleeping), ()) = join(join(running, sleeping), reloading).await;
    assert!(running["result"].is_object() && sleeping["result"].is_object(), "{running} {sleeping}");
    assert!(is_quiet(&mut get).await, "nothing is told");
    assert_eq!(stays.count(rpc("initialize")), 1);
    assert_eq!(gateway.sample(r#"mcpgate_upstream_process_starts_total{server="child"}"#), 1.0);
}

/// A server that is gone is left everywhere, with DELETE; its calls end with an error, its tools are unknown, and
/// callers are told.
#[tokio::test]
async fn a_server_that_is_gone_is_left_everywhere() {
    let (stays, goes) = (HttpServer::start().await, HttpServer::start().await);
    goes.on(rpc("tools/call"), Answer::events([hold()]));
    let gateway = TestGateway::new()
        .http("stays", stays.url())
        .http("goes", goes.url())
        .stdio("child", &[])
        .start()
        .await;
    let clients = [session(&gateway).await, session(&gateway).await];
    let single = gateway.client("/servers/goes/mcp").initialize(REVISION).await;
    for client in &clients {
        assert!(tools(client).await.contains(&"mcp_goes_echo".to_owned()));
        assert!(call(client, 1, "mcp_child_echo", json!({})).await["result"].is_object());
    }
    let mut get = clients[0].open_get().await;
    let running = call(&clients[0], "r", "mcp_goes_echo", json!({}));
    let reloading = async {
        goes.await_request(rpc("tools/call")).await;
        gateway.reload(TestGateway::new().http("stays", stays.url())).await;
    };
    let begun = Instant::now();
    let (running, ()) = join(running, reloading).await;
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    assert_eq!((&running["id"], &failure(&running)["server"]), (&json!("r"), &json!("goes")), "{running}");
    assert_eq!(next_method(&mut get).await, TOLD);
    for client in &clients {
        assert_eq!(tools(client).await, ["mcp_stays_echo"]);
        assert_eq!(call(client, 2, "mcp_goes_echo", json!({})).await["error"]["code"], -32602);
        assert!(call(client, 3, "mcp_stays_echo", json!({})).await["result"].is_object());
    }
    goes.await_request(http(http::Method::DELETE)).await;
    until("its child is gone", async || {
        gateway.sample(r#"mcpgate_upstream_processes{server="child"}"#) == 0.0
    })
    .await;
    assert_eq!(single.post(&request(1, "ping", json!({}))).await.status, 404, "its endpoint is gone");
    assert_eq!(stays.count(rpc("initialize")), 2, "no link is made anew");
}

/// A new server is read at once, so that callers can be told of what they see now.
#[tokio::test]
async fn a_new_server_is_announced() {
    let (old, new) = (HttpServer::start().await, HttpServer::start().await);
    offers(&new, &["x", "y"]);
    let gateway = TestGateway::new().http("old", old.url()).start().await;
    let (client, idle) = (session(&gateway).await, session(&gateway).await);
    let (mut get, mut other) = (client.open_get().await, idle.open_get().await);
    assert_eq!(tools(&client).await, ["mcp_old_echo"]);
    let setup = || TestGateway::new().http("old", old.url()).http("new", new.url());
    gateway.reload(setup()).await;
    assert_eq!(next_method(&mut get).await, TOLD);
    assert_eq!(tools(&client).await, ["mcp_old_echo", "mcp_new_x", "mcp_new_y"]);
    assert!(call(&client, 1, "mcp_new_x", json!({})).await["result"].is_object());
    assert!(is_quiet(&mut other).await, "who was never shown a list has nothing to be told");
    let single = gateway.client("/servers/new/mcp").initialize(REVISION).await;
    assert_eq!(tools(&single).await, ["x", "y"]);
    assert_eq!(gateway.sample(r#"mcpgate_tools_listed{server="new"}"#), 2.0, "it has a label of its own");
}

/// A server that is reached in another way now is another server: what was known of it is forgotten.
#[tokio::test]
async fn a_server_at_another_address_is_another_server() {
    let (before, after) = (HttpServer::start().await, HttpServer::start().await);
    offers(&before, &["a"]);
    offers(&after, &["b"]);
    let gateway = TestGateway::new().http("u1", before.url()).start().await;
    let client = session(&gateway).await;
    let mut get = client.open_get().await;
    assert_eq!(tools(&client).await, ["mcp_u1_a"]);
    gateway.reload(TestGateway::new().http("u1", after.url())).await;
    assert_eq!(next_method(&mut get).await, TOLD);
    assert_eq!(tools(&client).await, ["mcp_u1_b"]);
    assert!(call(&client, 1, "mcp_u1_b", json!({})).await["result"].is_object());
    assert_eq!(call(&client, 2, "mcp_u1_a", json!({})).await["error"]["code"], -32602);
    before.await_request(http(http::Method::DELETE)).await;
    assert_eq!(before.count(rpc("tools/call")), 0);
}

/// Every setting of a server counts, its secrets included.
#[tokio::test]
async fn every_setting_of_a_server_counts() {
    let server = HttpServer::start().await;
    let setup = || TestGateway::new().http("u1", server.url());
    let gateway = setup().start().await;
    let client = session(&gateway).await;
    assert_eq!(tools(&client).await, ["mcp_u1_echo"]);
    let with_header = |value: &str| {
        let value = value.to_owned();
        setup().adjust(|s| {
            if let TransportSettings::Http(http) = &mut s.transport {
                http.headers.push((http::HeaderName::from_static("x-key"), value.into()));
            }
        })
    };
    let mut sessions = 1;
    let changed: Vec<(Setup, bool)> = vec![
        (setup(), false),
        (with_header("one"), true),
        (with_header("one"), false),
        (with_header("two"), true),
        (setup().adjust(|s| s.timeouts.idle = Duration::from_secs(77)), true),
        (setup().adjust(|s| s.timeouts.idle = Duration::from_secs(77)), false),
        (setup().adjust(|s| s.max_message = 1 << 20), true),
    ];
    for (n, (setup, differs)) in changed.into_iter().enumerate() {
        gateway.reload(setup).await;
        assert!(call(&client, 1, "mcp_u1_echo", json!({})).await["result"].is_object());
        sessions += usize::from(differs);
        assert_eq!(server.count(rpc("initialize")), sessions, "change {n}");
    }
    let keys: Vec<_> =
        server.requests().iter().filter_map(|s| s.header("x-key").map(str::to_owned)).collect();
    assert!(keys.contains(&"one".to_owned()) && keys.contains(&"two".to_owned()));
    assert_eq!(tools(&client).await, ["mcp_u1_echo"]);
}

/// A change of a server that changes nothing in what it lists is told to nobody.
#[tokio::test]
async fn a_change_that_changes_no_list_is_told_to_nobody() {
    let server = HttpServer::start().await;
    let setup = |idle: u64| {
        TestGateway::new().http("u1", server.url()).adjust(|s| s.timeouts.idle = Duration::from_secs(idle))
    };
    let gateway = setup(60).start().await;
    let client = session(&gateway).await;
    let mut get = client.open_get().await;
    assert_eq!(tools(&client).await, ["mcp_u1_echo"]);
    gateway.reload(setup(70)).await;
    assert!(is_quiet(&mut get).await);
    assert!(call(&client, 1, "mcp_u1_echo", json!({})).await["result"].is_object());
    assert_eq!(tools(&client).await, ["mcp_u1_echo"]);
    assert!(is_quiet(&mut get).await);
}

/// Filters, names and endpoints change what is seen, and callers are told; no link is touched by names and
/// endpoints.
#[tokio::test]
async fn filters_names_and_endpoints_change_what_is_seen() {
    let server = HttpServer::start().await;
    offers(&server, &["a", "b"]);
    let named = |name: &str, allow: &[&str]| EndpointSettings {
        name: name.into(),
        servers: vec!["u1".into()],
        allow: allow.iter().map(|a| (*a).to_owned()).collect(),
        deny: Vec::new(),
        ..EndpointSettings::default()
    };
    let setup = |endpoint: EndpointSettings| {
        TestGateway::new().http("u1", server.url()).with(|s| s.endpoints.push(endpoint))
    };
    let gateway = setup(named("some", &["*_a"])).start().await;
    let client = gateway.client("/some/mcp").initialize(REVISION).await;
    let mut get = client.open_get().await;
    assert_eq!(tools(&client).await, ["mcp_u1_a"]);
    gateway.reload(setup(named("some", &["*_b"]))).await;
    assert_eq!(next_method(&mut get).await, TOLD);
    assert_eq!(tools(&client).await, ["mcp_u1_b"]);
    assert_eq!(call(&client, 1, "mcp_u1_a", json!({})).await["error"]["code"], -32602);
    gateway.reload(setup(named("some", &[])).with(|s| s.names.template = "{server}-{tool}".into())).await;
    assert_eq!(next_method(&mut get).await, TOLD);
    assert_eq!(tools(&client).await, ["u1-a", "u1-b"]);
    assert!(call(&client, 2, "u1-a", json!({})).await["result"].is_object());
    assert_eq!(server.count(rpc("initialize")), 1);
    gateway.reload(setup(named("some", &[])).adjust(|s| s.exclude = vec!["a".into()])).await;
    assert_eq!(next_method(&mut get).await, TOLD);
    assert_eq!(tools(&client).await, ["mcp_u1_b"]);
    gateway.reload(setup(named("other", &[]))).await;
    assert_eq!(client.post(&request(1, "ping", json!({}))).await.status, 404);
    let other = gateway.client("/other/mcp").initialize(REVISION).await;
    assert_eq!(tools(&other).await, ["mcp_u1_a", "mcp_u1_b"]);
}

/// Subscriptions at a server that is configured anew are made again without a call.
#[tokio::test]
async fn subscriptions_survive_a_change_of_their_server() {
    let server = server_with(r#"{"tools":{},"resources":{"subscribe":true}}"#).await;
    server.on(rpc("resources/list"), Answer::result(r#"{"resources":[{"uri":"x://a","name":"a"}]}"#));
    server.on(rpc("resources/subscribe"), Answer::result("{}"));
    let (feed, stream) = Answer::fed();
    let setup = || TestGateway::new().http("u1", server.url());
    let gateway = setup().start().await;
    let client = session(&gateway).await;
    let mut get = client.open_get().await;
    client.call(1, "resources/subscribe", json!({"uri": "x://a"})).await;
    server.await_request(http(http::Method::GET)).await;
    server.on(http(http::Method::GET), stream);
    gateway.reload(setup().adjust(|s| s.timeouts.input = Duration::from_secs(5))).await;
    let again = server.await_requests(2, rpc("resources/subscribe")).await;
    assert_eq!(again[1].json()["params"]["uri"], "x://a");
    feed.send(message(
        r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x://a"}}"#,
    ))
    .await;
    assert_eq!(next_method(&mut get).await, "notifications/resources/updated");
}

/// Shared links follow the config as well.
#[tokio::test]
async fn shared_links_follow_the_config() {
    let server = HttpServer::start().await;
    let setup = |size: usize| {
        TestGateway::new().http("u1", server.url()).adjust(|s| s.isolation = Isolation::Shared { size })
    };
    let gateway = setup(1).start().await;
    let client: Client = session(&gateway).await;
    assert!(call(&client, 1, "mcp_u1_echo", json!({})).await["result"].is_object());
    gateway.reload(setup(1)).await;
    assert!(call(&client, 1, "mcp_u1_echo", json!({})).await["result"].is_object());
    assert_eq!(server.count(rpc("initialize")), 1);
    gateway.reload(setup(2)).await;
    server.await_request(http(http::Method::DELETE)).await;
    for i in 0..4 {
        assert!(call(&client, i, "mcp_u1_echo", json!({})).await["result"].is_object());
    }
    assert_eq!(server.count(rpc("initialize")), 3);
    gateway.reload(TestGateway::new()).await;
    server.await_requests(3, http(http::Method::DELETE)).await;
}

/// Calls that come at any moment of many changes are answered, each once, with a result or with an error that says
/// what happened.
#[tokio::test]
async fn calls_during_many_changes_are_all_answered() {
    let server = HttpServer::start().await;
    let setup = |n: u64| {
        let setup = TestGateway::new().http("u1", server.url()).stdio("u2", &[]);
        setup.adjust(|s| s.timeouts.idle = Duration::from_secs(60 + n))
    };
    let gateway = setup(0).start().await;
    let client = session(&gateway).await;
    tools(&client).await;
    let calling = async {
        for i in 0..150 {
            let name = if i % 2 == 0 { "mcp_u1_echo" } else { "mcp_u2_echo" };
            let answer = client.post(&request(i, "tools/call", tool(name, json!({})))).await.response().await;
            assert_eq!(answer["id"], i);
            if answer["result"].is_object() {
                continue;
            }
            assert_eq!(i % 2, 1, "the server that stays always answers: {answer}");
            assert!(answer["error"]["code"] == -32602 || failure(&answer)["server"] == "u2", "{answer}");
        }
    };
    let changing = async {
        for n in 1..20 {
            gateway.reload(setup(n % 3)).await;
            tokio::time::sleep(Duration::from_millis(15)).await;
        }
    };
    join(calling, changing).await;
    assert_eq!(server.count(rpc("initialize")), 1);
    until("the child of the end is the only one", async || {
        call(&client, "last", "mcp_u2_echo", json!({})).await["result"].is_object()
            && gateway.sample(r#"mcpgate_upstream_processes{server="u2"}"#) == 1.0
    })
    .await;
}
