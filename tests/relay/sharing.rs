//! Links that all sessions of a tenant share.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::json;

use crate::client::{Client, request, tool};
use crate::gateway::{Setup, TestGateway};
use crate::http_server::{Answer, HttpServer, http, message, rpc};
use crate::kit::{call, failure, server_with, session, tools, until, value};
use mcpgate::settings::servers::Isolation;

fn shared(setup: Setup, size: usize) -> Setup {
    setup.adjust(|s| s.isolation = Isolation::Shared { size })
}

/// Shared isolation: all sessions use the same few links, over both transports, and the end of a session ends none.
#[tokio::test]
async fn all_sessions_use_the_same_links() {
    let server = HttpServer::start().await;
    let setup = shared(TestGateway::new().http("u1", server.url()), 2);
    let gateway = shared(setup.stdio("u2", &[]), 2).start().await;
    let clients = join_all((0..6).map(|_| session(&gateway))).await;
    for client in &clients {
        for tool in ["mcp_u1_echo", "mcp_u2_echo"] {
            for i in 0..3 {
                assert!(call(client, i, tool, json!({})).await["result"].is_object());
            }
        }
        assert_eq!(client.delete().await, 204);
    }
    assert_eq!(server.count(rpc("initialize")), 2);
    assert_eq!(server.count(http(http::Method::DELETE)), 0);
    assert_eq!(gateway.sample(r#"mcpgate_upstream_process_starts_total{server="u2"}"#), 2.0);
    let last = session(&gateway).await;
    assert!(call(&last, 1, "mcp_u1_echo", json!({})).await["result"].is_object());
    assert_eq!(server.count(rpc("initialize")), 2);
    gateway.stopped().await;
    server.await_requests(2, http(http::Method::DELETE)).await;
}

/// case-C03: the death of a shared child fails what runs there for all, with their own ids, and the next call of
/// anyone starts another.
#[tokio::test]
async fn the_death_of_a_shared_child_fails_what_runs_there() {
    let gateway = shared(TestGateway::new().stdio("u1", &[]), 1).start().await;
    let clients = join_all((0..3).map(|_| session(&gateway))).await;
    assert!(call(&clients[0], 0, "mcp_u1_echo", json!({})).await["result"].is_object());
    let sleeping = join_all(clients.iter().map(|c| call(c, "s", "mcp_u1_sleep", json!({"ms": 30_000}))));
    let dying = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        call(&clients[0], "x", "mcp_u1_exit", json!({"code": 1})).await
    };
    let begun = Instant::now();
    let (sleeping, dying) = futures_util::future::join(sleeping, dying).await;
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    assert_eq!(failure(&dying)["layer"], "process");
    for answer in sleeping {
        assert_eq!((&answer["id"], &failure(&answer)["server"]), (&json!("s"), &json!("u1")), "{answer}");
    }
    let again = join_all(clients.iter().map(|c| call(c, 1, "mcp_u1_echo", json!({})))).await;
    assert!(again.iter().all(|a| a["result"].is_object()), "{again:?}");
    assert_eq!(gateway.sample(r#"mcpgate_upstream_process_starts_total{server="u1"}"#), 2.0);
}

/// case-D01: a shared session that the server forgot is begun anew once for all, with what all of them asked for.
#[tokio::test]
async fn a_lost_shared_session_is_begun_anew_with_all_subscriptions() {
    let server = server_with(r#"{"tools":{},"resources":{"subscribe":true}}"#).await;
    server.on(
        rpc("resources/list"),
        Answer::result(r#"{"resources":[{"uri":"x://a","name":"a"},{"uri":"x://b","name":"b"}]}"#),
    );
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        server.on(move |seen| seen.is(method), Answer::result("{}"));
    }
    let gateway = shared(TestGateway::new().http("u1", server.url()), 1).start().await;
    let (a, b) = (session(&gateway).await, session(&gateway).await);
    for (client, uri) in [(&a, "x://a"), (&b, "x://b"), (&b, "x://a")] {
        let answer = client.call(1, "resources/subscribe", json!({ "uri": uri })).await;
        assert_eq!(answer["result"], json!({}), "{answer}");
    }
    server.forget_sessions();
    let answers = join_all([&a, &b, &a, &b].map(|c| call(c, 1, "mcp_u1_echo", json!({})))).await;
    assert!(answers.iter().all(|a| a["result"].is_object()), "{answers:?}");
    assert_eq!(server.count(rpc("initialize")), 2);
    let [current] = &server.sessions()[..] else { panic!("one session") };
    until("both resources are subscribed to again", async || {
        let again = server.requests().into_iter().filter(|seen| {
            seen.is("resources/subscribe") && seen.header("mcp-session-id") == Some(current.as_str())
        });
        let uris: std::collections::BTreeSet<_> = again.filter_map(|seen| seen.param("uri")).collect();
        uris.len() == 2
    })
    .await;
    // The server goes on telling while anyone listens.
    a.call(2, "resources/unsubscribe", json!({"uri": "x://a"})).await;
    assert_eq!(server.count(rpc("resources/unsubscribe")), 0);
    b.call(2, "resources/unsubscribe", json!({"uri": "x://a"})).await;
    assert_eq!(server.count(rpc("resources/unsubscribe")), 1);
}

/// Updates over a shared link reach the sessions that subscribed, and the subscriptions stay on one link.
#[tokio::test]
async fn updates_over_a_shared_link_reach_who_subscribed() {
    let server = server_with(r#"{"tools":{},"resources":{"subscribe":true}}"#).await;
    server.on(rpc("resources/list"), Answer::result(r#"{"resources":[{"uri":"x://a","name":"a"}]}"#));
    server.on(rpc("resources/subscribe"), Answer::result("{}"));
    let (feed, stream) = Answer::fed();
    server.once(http(http::Method::GET), stream);
    let gateway = shared(TestGateway::new().http("u1", server.url()), 3).start().await;
    let clients = join_all((0..3).map(|_| session(&gateway))).await;
    let mut gets = Vec::new();
    for client in &clients {
        gets.push(client.open_get().await);
    }
    for client in &clients[..2] {
        client.call(1, "resources/subscribe", json!({"uri": "x://a"})).await;
    }
    let ids: std::collections::BTreeSet<_> = server
        .requests()
        .into_iter()
        .filter(|seen| seen.is("resources/subscribe"))
        .map(|seen| seen.header("mcp-session-id").map(str::to_owned))
        .collect();
    assert_eq!(ids.len(), 1, "all on one link");
    feed.send(message(
        r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x://a"}}"#,
    ))
    .await;
    let (heard, deaf) = gets.split_at_mut(2);
    for get in heard {
        assert_eq!(get.message().await.expect("an update")["params"]["uri"], "x://a");
    }
    let nothing = tokio::time::timeout(Duration::from_millis(200), deaf[0].message()).await;
    assert!(nothing.is_err(), "{nothing:?}");
}

/// What a shared child says outside calls, but for changes, is nobody's: dropped and counted.
#[tokio::test]
async fn what_a_shared_child_says_to_nobody_is_dropped_and_counted() {
    let gateway = shared(TestGateway::new().stdio("u1", &[]), 1).start().await;
    let (a, b) = (session(&gateway).await, session(&gateway).await);
    let mut of_b = b.open_get().await;
    tools(&b).await;
    let saying =
        json!({"method": "notifications/message", "params": {"level": "info", "data": "secret of a"}});
    let messages = client_messages(&a, saying).await;
    assert_eq!(messages.len(), 1, "{messages:?}");
    let nothing = tokio::time::timeout(Duration::from_millis(200), of_b.message()).await;
    assert!(nothing.is_err(), "{nothing:?}");
    assert!(gateway.sample(r#"mcpgate_upstream_unattributed_total{server="u1"}"#) >= 1.0);
    let heard = call(&a, 2, "mcp_u1_heard", json!({})).await;
    assert_eq!(value(&heard)[0]["clientInfo"]["name"], "mcpgate", "no caller is named to it");
}

async fn client_messages(client: &Client, arguments: serde_json::Value) -> Vec<serde_json::Value> {
    let answer = client.post(&request(1, "tools/call", tool("mcp_u1_say", arguments))).await;
    if answer.is_stream() { answer.stream().rest().await } else { vec![answer.json().await] }
}

/// Roots of a caller are its own: their changes go to its own links, not to shared ones.
#[tokio::test]
async fn roots_changes_go_to_the_callers_own_links() {
    let (own, other) = (HttpServer::start().await, HttpServer::start().await);
    let setup = TestGateway::new().http("own", own.url()).http("other", other.url());
    let gateway = shared(setup, 1).start().await;
    let client =
        gateway.client("/mcp").initialize_with("2025-06-18", json!({"roots": {"listChanged": true}})).await;
    tools(&client).await;
    let note = json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed", "params": {"_meta": {"x": 1}}});
    assert_eq!(client.post(&note).await.status, 202);
    assert_eq!(own.await_request(rpc("notifications/roots/list_changed")).await.json(), note);
    assert_eq!(other.count(rpc("notifications/roots/list_changed")), 0);
}
