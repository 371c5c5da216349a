//! How long callers may keep lists, and for whom (K1 to K6).

use std::time::Duration;

use serde_json::{Value, json};

use crate::gateway::{Setup, TestGateway};
use crate::http_server::{Answer, HttpServer, rpc};
use crate::kit::{LEGACY, ModernClient, auto, modern};

/// A modern server that lists one tool, to be kept for so long and by them.
async fn keeping(ttl: i64, scope: &str) -> HttpServer {
    let server = HttpServer::modern().await;
    server.on(rpc("tools/list"), list("echo", ttl, scope));
    server
}

fn list(name: &str, ttl: i64, scope: &str) -> Answer {
    let tools = json!([{ "name": name, "inputSchema": { "type": "object" } }]);
    let result = json!({ "resultType": "complete", "tools": tools, "ttlMs": ttl, "cacheScope": scope });
    Answer::result(&result.to_string())
}

fn before(server: &HttpServer) -> Setup {
    TestGateway::new().http("u1", server.url()).adjust(auto)
}

async fn tools(caller: &ModernClient) -> Value {
    caller.call(1, "tools/list", json!({})).await["result"].clone()
}

fn name(list: &Value) -> &str {
    list["tools"][0]["name"].as_str().unwrap()
}

/// case-K09, K6: only what one server shows to all, as it is, is for anyone; what is merged or filtered is private.
#[tokio::test]
async fn is_public_only_where_nothing_is_changed() {
    let server = keeping(60_000, "public").await;
    let gateway = before(&server).start().await;
    let bare = tools(&modern(&gateway, "/servers/u1/mcp")).await;
    assert_eq!((&bare["cacheScope"], &bare["resultType"]), (&json!("public"), &json!("complete")));
    let ttl = bare["ttlMs"].as_u64().unwrap();
    assert!((50_000..=60_000).contains(&ttl), "less its age here: {ttl}");
    assert_eq!(bare["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "mcpgate");
    let merged = tools(&modern(&gateway, "/mcp")).await;
    assert_eq!(merged["cacheScope"], "private");
    assert!(merged["ttlMs"].as_u64().unwrap() > 50_000, "{merged}");

    let filtered = before(&server).adjust(|server| server.exclude = vec!["x".into()]).start().await;
    assert_eq!(tools(&modern(&filtered, "/servers/u1/mcp")).await["cacheScope"], "private");
}

/// K6: of several servers the shortest time counts, and a legacy one knows none.
#[tokio::test]
async fn takes_the_shortest_time_of_all_servers() {
    let (long, short) = (keeping(60_000, "public").await, keeping(5_000, "public").await);
    let gateway = before(&long).http("u2", short.url()).adjust(auto).start().await;
    let ttl = tools(&modern(&gateway, "/mcp")).await["ttlMs"].as_u64().unwrap();
    assert!((1..=5_000).contains(&ttl), "{ttl}");
    let gateway = before(&long).stdio("u2", &[]).start().await;
    let merged = tools(&modern(&gateway, "/mcp")).await;
    assert_eq!((&merged["ttlMs"], &merged["cacheScope"]), (&json!(0), &json!("private")));
    let legacy = tools(&modern(&gateway, "/servers/u2/mcp")).await;
    assert_eq!((&legacy["ttlMs"], &legacy["cacheScope"]), (&json!(0), &json!("private")));
}

/// K3: over several pages the shortest time counts, and one private page makes all of them private.
#[tokio::test]
async fn takes_the_most_careful_of_all_pages() {
    let server = HttpServer::modern().await;
    let page = |name: &str, rest: Value| {
        let mut page = json!({
            "resultType": "complete",
            "tools": [{ "name": name, "inputSchema": { "type": "object" } }],
        });
        page.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        Answer::result(&page.to_string())
    };
    server.once(
        rpc("tools/list"),
        page("a", json!({ "ttlMs": 60_000, "cacheScope": "public", "nextCursor": "2" })),
    );
    server.once(rpc("tools/list"), page("b", json!({ "ttlMs": 20_000, "cacheScope": "private" })));
    let gateway = before(&server).start().await;
    let list = tools(&modern(&gateway, "/servers/u1/mcp")).await;
    assert_eq!(list["tools"].as_array().unwrap().len(), 2);
    assert_eq!(list["cacheScope"], "private");
    assert!((1..=20_000).contains(&list["ttlMs"].as_u64().unwrap()), "{list}");
    assert!(list.get("nextCursor").is_none(), "one page");
}

/// K4: a list past its time is shown while it is read again, and what is negative is past it at once.
#[tokio::test]
async fn reads_again_what_is_past_its_time() {
    let server = keeping(-1, "public").await;
    let gateway = before(&server).start().await;
    let caller = modern(&gateway, "/servers/u1/mcp");
    let first = tools(&caller).await;
    assert_eq!((name(&first), &first["ttlMs"]), ("echo", &json!(0)));
    server.on(rpc("tools/list"), list("other", 0, "private"));
    // Asked for again and again it is read again about once a second, behind the callers' backs.
    let changed = async {
        while name(&tools(&caller).await) != "other" {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), changed).await.unwrap();
    let reads = server.count(rpc("tools/list"));
    assert!(reads <= 6, "not for every request: {reads}");
}

/// K2: what is for anyone is read once for callers of every kind.
#[tokio::test]
async fn reads_a_public_list_once_for_all() {
    let server = keeping(60_000, "public").await;
    let gateway = before(&server).start().await;
    tools(&modern(&gateway, "/mcp")).await;
    tools(&modern(&gateway, "/mcp").with(json!({ "sampling": {} }))).await;
    assert_eq!(server.count(rpc("tools/list")), 1);

    let server = keeping(60_000, "private").await;
    let gateway = before(&server).start().await;
    tools(&modern(&gateway, "/mcp")).await;
    tools(&modern(&gateway, "/mcp").with(json!({ "sampling": {} }))).await;
    assert_eq!(server.count(rpc("tools/list")), 2, "a private one may differ by what the caller can do");
}

/// X48, case-G11: lists come in one page and the servers' order; a cursor that nobody gave out is refused at 200.
#[tokio::test]
async fn knows_no_cursors() {
    let gateway = TestGateway::new().stdio("u1", &[]).start().await;
    let caller = modern(&gateway, "/mcp");
    let answer = caller.post(&caller.request(1, "tools/list", json!({ "cursor": "x" }))).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json().await["error"]["code"], -32602);
    let (one, other) = (tools(&caller).await, tools(&caller).await);
    assert_eq!(one["tools"], other["tools"]);
}

/// Legacy callers are told nothing of it.
#[tokio::test]
async fn legacy_callers_get_no_hints() {
    let server = keeping(60_000, "public").await;
    let gateway = before(&server).start().await;
    let caller = gateway.client("/servers/u1/mcp").initialize(LEGACY).await;
    let list = caller.call(1, "tools/list", json!({})).await["result"].clone();
    assert_eq!(list.as_object().unwrap().keys().collect::<Vec<_>>(), ["tools"], "{list}");
}

/// K5, K9: what was read is a server's own to give to anyone only where it is alone.
#[tokio::test]
async fn a_resource_is_private_behind_a_merged_endpoint() {
    let server = HttpServer::modern().await;
    let capabilities = json!({ "resources": {} });
    let said = crate::http_server::discovered(&capabilities);
    server.on(rpc("server/discover"), Answer::result(&said.to_string()));
    let resources = json!([{ "uri": "x:1", "name": "one" }]);
    let all = json!({ "resultType": "complete", "resources": resources, "ttlMs": 0, "cacheScope": "public" });
    server.on(rpc("resources/list"), Answer::result(&all.to_string()));
    let read = json!({
        "resultType": "complete", "contents": [{ "uri": "x:1", "text": "1" }], "ttlMs": 7, "cacheScope": "public",
    });
    server.on(rpc("resources/read"), Answer::result(&read.to_string()));
    let gateway = before(&server).start().await;
    for (path, scope) in [("/servers/u1/mcp", "public"), ("/mcp", "private")] {
        let answer = modern(&gateway, path).call(1, "resources/read", json!({ "uri": "x:1" })).await;
        assert_eq!(answer["result"]["cacheScope"], scope, "{path}: {answer}");
        assert_eq!(answer["result"]["ttlMs"], 7);
    }
}
