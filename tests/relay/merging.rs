//! Lists of several servers, some of which fail, change, or differ by session.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::json;

use crate::client::{Client, Stream};
use crate::gateway::TestGateway;
use crate::http_server::{Answer, Gate, HttpServer, http, message, rpc};
use crate::kit::{REVISION, call, failure, names, offers, server_with, session, tools, until};
use mcpgate::settings::servers::Isolation;

const CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;

/// Whether nothing comes for a while.
async fn is_quiet(stream: &mut Stream) -> bool {
    tokio::time::timeout(Duration::from_millis(400), stream.message()).await.is_err()
}

async fn next_method(stream: &mut Stream) -> String {
    stream.message().await.expect("a message")["method"].as_str().expect("a method").to_owned()
}

/// Promise 7: dead servers of every kind change nothing for the others, and are counted.
#[tokio::test]
async fn dead_servers_change_nothing_for_the_others() {
    let good = HttpServer::start().await;
    let bad = HttpServer::start().await;
    bad.on(rpc("tools/list"), Answer::error(-32000, "no list today"));
    let worse = HttpServer::start().await;
    worse.on(rpc("tools/list"), Answer::result(r#"{"tools":"none"}"#));
    let mute = HttpServer::start().await;
    mute.on(rpc("initialize"), Answer::events([crate::http_server::hold()]));
    let gateway = TestGateway::new()
        .http("refused", "http://127.0.0.1:1/mcp".parse().expect("a URL"))
        .command("missing", "/no/such/program", &[])
        .stdio("exits", &["--exit", "1"])
        .http("bad", bad.url())
        .http("worse", worse.url())
        .http("mute", mute.url())
        .adjust(|s| s.timeouts.list = Duration::from_millis(300))
        .http("good", good.url())
        .start()
        .await;
    let client = session(&gateway).await;
    let begun = Instant::now();
    assert_eq!(tools(&client).await, ["mcp_good_echo"]);
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    assert!(call(&client, 1, "mcp_good_echo", json!({})).await["result"].is_object());
    for server in ["refused", "missing", "exits", "bad", "worse", "mute"] {
        let failures = gateway.sample(&format!("mcpgate_list_failures_total{{server=\"{server}\"}}"));
        assert!(failures >= 1.0, "{server}");
    }
    assert_eq!(gateway.sample(r#"mcpgate_list_failures_total{server="good"}"#), 0.0);
    let begun = Instant::now();
    assert_eq!(tools(&client).await, ["mcp_good_echo"], "the second time nobody is waited for");
    assert!(begun.elapsed() < Duration::from_millis(200), "{:?}", begun.elapsed());
}

/// A server that was known and fails is shown by its last good list; a call there says what is
/// wrong.
#[tokio::test]
async fn a_server_that_fails_later_is_shown_by_its_last_good_list() {
    let good = HttpServer::start().await;
    let frail = HttpServer::start().await;
    offers(&frail, &["a", "b"]);
    let gateway = TestGateway::new().http("frail", frail.url()).http("good", good.url()).start().await;
    let client = session(&gateway).await;
    let all = ["mcp_frail_a", "mcp_frail_b", "mcp_good_echo"];
    assert_eq!(tools(&client).await, all);
    drop(frail);
    for client in [client, session(&gateway).await] {
        assert_eq!(tools(&client).await, all);
        let answer = call(&client, 1, "mcp_frail_a", json!({})).await;
        assert_eq!(failure(&answer)["server"], "frail", "{answer}");
        let answer = call(&client, 2, "mcp_frail_unknown", json!({})).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert_eq!(tools(&client).await, all);
        assert!(call(&client, 3, "mcp_good_echo", json!({})).await["result"].is_object());
    }
}

/// Promise 9: a server that comes back is listed without a person, and callers are told.
#[tokio::test]
async fn a_server_that_comes_back_is_announced() {
    let server = HttpServer::start().await;
    let gate = Gate::new();
    for _ in 0..2 {
        server.once(rpc("initialize"), Answer::status(503));
    }
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = session(&gateway).await;
    let mut get = client.open_get().await;
    assert_eq!(tools(&client).await, Vec::<String>::new());
    gate.open();
    assert_eq!(next_method(&mut get).await, "notifications/tools/list_changed");
    assert_eq!(tools(&client).await, ["mcp_u1_echo"]);
    assert!(server.count(rpc("initialize")) >= 3);
}

/// What one session's own server says has changed is read for that session; others keep what
/// they see.
#[tokio::test]
async fn a_change_of_one_sessions_server_is_that_sessions() {
    let gateway = TestGateway::new().stdio("u1", &[]).start().await;
    let (a, b) = (session(&gateway).await, session(&gateway).await);
    let (mut of_a, mut of_b) = (a.open_get().await, b.open_get().await);
    let before = tools(&a).await;
    assert_eq!(tools(&b).await, before);
    assert!(call(&b, 0, "mcp_u1_echo", json!({})).await["result"].is_object());
    call(&a, 1, "mcp_u1_grow", json!({"name": "only_a"})).await;
    assert_eq!(next_method(&mut of_a).await, "notifications/tools/list_changed");
    let mut grown = before.clone();
    grown.push("mcp_u1_only_a".into());
    for _ in 0..3 {
        assert_eq!(tools(&a).await, grown);
        assert_eq!(tools(&b).await, before);
    }
    // Not even a look for an unknown name shows what is another's.
    for client in [&a, &b, &a, &b] {
        assert_eq!(call(client, 1, "mcp_u1_unknown", json!({})).await["error"]["code"], -32602);
    }
    assert_eq!((tools(&a).await, tools(&b).await), (grown.clone(), before.clone()));
    assert_eq!(call(&b, 2, "mcp_u1_only_a", json!({})).await["error"]["code"], -32602);
    assert_eq!(call(&a, 2, "mcp_u1_only_a", json!({})).await["error"]["message"], "unknown tool only_a");
    assert!(is_quiet(&mut of_b).await, "nothing changed for the other");
    assert!(is_quiet(&mut of_a).await, "a change is told once");
    // A fresh child has forgotten it.
    call(&a, 3, "mcp_u1_exit", json!({"code": 0})).await;
    assert!(call(&a, 4, "mcp_u1_echo", json!({})).await["result"].is_object());
    until("the session sees what its new child has", async || tools(&a).await == before).await;
}

/// case-D03: `list_changed` is told only when the caller would see something else, and once for many.
#[tokio::test]
async fn list_changed_is_told_when_something_changed_and_once() {
    let server = server_with(r#"{"tools":{"listChanged":true},"prompts":{"listChanged":true}}"#).await;
    server.on(rpc("prompts/list"), Answer::result(r#"{"prompts":[]}"#));
    let (feed, stream) = Answer::fed();
    server.on(http(http::Method::GET), stream);
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = session(&gateway).await;
    let mut get = client.open_get().await;
    assert_eq!(tools(&client).await, ["mcp_u1_echo"]);
    server.await_request(http(http::Method::GET)).await;
    for _ in 0..20 {
        feed.send(message(CHANGED)).await;
        feed.send(message(r#"{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}"#)).await;
    }
    assert!(is_quiet(&mut get).await, "the list is the same, and prompts were never shown");
    let asked = server.count(rpc("tools/list"));
    assert!(asked <= 8, "one reading serves many notices, not {asked}");
    offers(&server, &["echo", "new"]);
    for _ in 0..20 {
        feed.send(message(CHANGED)).await;
    }
    assert_eq!(next_method(&mut get).await, "notifications/tools/list_changed");
    assert_eq!(tools(&client).await, ["mcp_u1_echo", "mcp_u1_new"]);
    assert!(is_quiet(&mut get).await, "told once");
}

/// A change while the caller has no GET open is told when it opens one.
#[tokio::test]
async fn a_change_is_kept_for_a_caller_without_a_get() {
    let gateway = TestGateway::new().stdio("u1", &[]).start().await;
    let client = session(&gateway).await;
    let before = tools(&client).await.len();
    call(&client, 1, "mcp_u1_grow", json!({"name": "x"})).await;
    call(&client, 2, "mcp_u1_grow", json!({"name": "y"})).await;
    until("it shows", async || tools(&client).await.len() == before + 2).await;
    let mut get = client.open_get().await;
    assert_eq!(next_method(&mut get).await, "notifications/tools/list_changed");
    assert!(is_quiet(&mut get).await);
}

/// Many sessions of one class read a list once, whoever comes first.
#[tokio::test]
async fn sessions_of_one_class_read_a_list_once() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let clients = join_all((0..10).map(|_| session(&gateway))).await;
    let lists = join_all(clients.iter().flat_map(|c| [tools(c), tools(c)])).await;
    assert!(lists.iter().all(|l| l == &["mcp_u1_echo"]), "{lists:?}");
    assert_eq!(server.count(rpc("tools/list")), 1);
    // Another class is told by itself: what a server offers may depend on what its caller can do.
    let other = gateway.client("/mcp").initialize_with(REVISION, json!({"sampling": {}})).await;
    assert_eq!(tools(&other).await, ["mcp_u1_echo"]);
    assert_eq!(server.count(rpc("tools/list")), 2);
}

/// What a server offers to some callers only is shown to those only.
#[tokio::test]
async fn what_depends_on_the_callers_capabilities_is_kept_apart() {
    let server = HttpServer::start().await;
    server.on_each(rpc("tools/list"), {
        let asked = std::sync::Mutex::new(std::collections::HashMap::<String, bool>::new());
        move |seen| {
            let id = seen.header("mcp-session-id").expect("a session").to_owned();
            let _ = asked.lock().map(|mut asked| asked.insert(id, true));
            Answer::result(r#"{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}"#)
        }
    });
    let samplers = HttpServer::start().await;
    samplers.on_each(rpc("initialize"), |seen| {
        let version = seen.param("protocolVersion").expect("a version");
        let name = if seen.text().contains("sampling") { "can" } else { "cannot" };
        Answer::result(&format!(
            r#"{{"protocolVersion":{version},"capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"x","version":"1"}},"instructions":"{name}"}}"#
        ))
        .header("x-can", name)
    });
    let gateway = TestGateway::new().http("u1", server.url()).http("u2", samplers.url()).start().await;
    let plain = session(&gateway).await;
    let able = gateway.client("/mcp").initialize_with(REVISION, json!({"sampling": {}})).await;
    offers(&samplers, &["plain"]);
    assert_eq!(tools(&plain).await, ["mcp_u1_echo", "mcp_u2_plain"]);
    offers(&samplers, &["plain", "able"]);
    assert_eq!(tools(&able).await, ["mcp_u1_echo", "mcp_u2_plain", "mcp_u2_able"]);
    assert_eq!(call(&plain, 1, "mcp_u2_plain", json!({})).await["id"], 1);
}

/// Shared isolation: one list for all, re-read when the one server says so, told to all.
#[tokio::test]
async fn a_change_of_a_shared_server_is_everybodys() {
    let gateway = TestGateway::new()
        .stdio("u1", &[])
        .adjust(|s| s.isolation = Isolation::Shared { size: 1 })
        .start()
        .await;
    let (a, b) = (session(&gateway).await, session(&gateway).await);
    let (mut of_a, mut of_b) = (a.open_get().await, b.open_get().await);
    let before = tools(&a).await;
    assert_eq!(tools(&b).await, before);
    call(&a, 1, "mcp_u1_grow", json!({"name": "all"})).await;
    for get in [&mut of_a, &mut of_b] {
        assert_eq!(next_method(get).await, "notifications/tools/list_changed");
    }
    for client in [&a, &b] {
        assert!(tools(client).await.contains(&"mcp_u1_all".to_owned()));
    }
    assert_eq!(gateway.sample(r#"mcpgate_upstream_process_starts_total{server="u1"}"#), 1.0);
}

/// Lists that change while they are read are read again: the last word of the server counts.
#[tokio::test]
async fn a_change_while_the_list_is_read_is_not_lost() {
    let server = HttpServer::start().await;
    let gate = Gate::new();
    let old = r#"{"tools":[{"name":"old","inputSchema":{"type":"object"}}]}"#;
    server.once(rpc("tools/list"), Answer::result(old).after(&gate));
    offers(&server, &["new"]);
    let (feed, stream) = Answer::fed();
    server.on(http(http::Method::GET), stream);
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let client = session(&gateway).await;
    let listing = tools(&client);
    let changing = async {
        server.await_request(rpc("tools/list")).await;
        server.await_request(http(http::Method::GET)).await;
        feed.send(message(CHANGED)).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        gate.open();
    };
    futures_util::future::join(listing, changing).await;
    until("the new list shows", async || tools(&client).await == ["mcp_u1_new"]).await;
}

/// The list of an endpoint without servers is empty, and so are all others.
#[tokio::test]
async fn without_servers_lists_are_empty() {
    let gateway = TestGateway::new().start().await;
    let client: Client = session(&gateway).await;
    for (method, member) in [
        ("tools/list", "tools"),
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ] {
        assert_eq!(client.call(1, method, json!({})).await["result"], json!({ member: [] }));
    }
    let list = client.call(1, "tools/list", json!({})).await;
    assert_eq!(names(&list), Vec::<String>::new());
}
