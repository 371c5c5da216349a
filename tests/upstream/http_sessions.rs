//! Servers that forget their sessions.

use std::time::Duration;

use http::Method;
use mcpgate::upstream::Delivery;

use crate::http_server::{Answer, Gate, HttpServer, hold, http, rpc};
use crate::http_support::{Ear, Heard, Rig, soon};

fn renewals(rig: &Rig) -> usize {
    rig.ear.all(|heard| matches!(heard, Heard::Renewed).then_some(())).len()
}

/// case-D01: a forgotten session is begun anew and the rejected call sent once more.
#[tokio::test]
async fn begins_a_forgotten_session_anew() {
    let server = HttpServer::start().await;
    let rig = Rig::open(server.url()).await;
    server.forget_sessions();
    rig.call("tools/call").await.unwrap();
    rig.call("tools/call").await.unwrap();
    assert_eq!(server.count(rpc("initialize")), 2);
    assert_eq!(server.count(rpc("tools/call")), 3);
    let id = server.sessions().remove(0);
    assert_eq!(server.count(|seen| seen.is("tools/call") && seen.header("mcp-session-id") == Some(&id)), 2);
    assert_eq!(server.requests().iter().filter(|seen| seen.is("notifications/initialized")).count(), 2);
    assert_eq!(renewals(&rig), 1);
}

/// case-D01: ten calls that meet the loss together begin one session.
#[tokio::test]
async fn begins_one_session_for_all_who_wait() {
    let server = HttpServer::start().await;
    let rig = Rig::open(server.url()).await;
    server.forget_sessions();
    let calls = (0..10).map(|_| rig.call("tools/call"));
    for answer in soon(futures_util::future::join_all(calls)).await {
        answer.unwrap();
    }
    assert_eq!(server.count(rpc("initialize")), 2);
    assert_eq!(renewals(&rig), 1);
}

/// case-D01: a second 404 in a row is an error, not a loop.
#[tokio::test]
async fn gives_up_on_a_server_that_forgets_at_once() {
    let server = HttpServer::start().await;
    server.on(rpc("tools/call"), Answer::status(404));
    let rig = Rig::open(server.url()).await;
    let failure = rig.call("tools/call").await.unwrap_err();
    assert_eq!((failure.reason, failure.delivery), ("session_lost", Delivery::NotDelivered));
    assert_eq!(server.count(rpc("initialize")), 2);
    assert_eq!(server.count(rpc("tools/call")), 2);
    assert!(!rig.link.is_down());
}

/// T31: the error that servers put into their 404 is about the session, whichever id it has.
#[tokio::test]
async fn knows_a_lost_session_by_its_status() {
    let unknown = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}"#;
    for answer in
        [Answer::json(unknown).with_status(404), Answer::error(-32600, "unknown session").with_status(404)]
    {
        let server = HttpServer::start().await;
        server.once(rpc("tools/call"), answer);
        let rig = Rig::open(server.url()).await;
        rig.call("tools/call").await.unwrap();
        assert_eq!(server.count(rpc("initialize")), 2);
    }
}

/// T11: a method that a server does not know is no lost session, even with 404.
#[tokio::test]
async fn does_not_take_an_unknown_method_for_a_lost_session() {
    let server = HttpServer::start().await;
    server.on(rpc("tools/call"), Answer::error(-32601, "Method not found").with_status(404));
    let rig = Rig::open(server.url()).await;
    assert!(rig.call("tools/call").await.unwrap().error().is_some());
    assert_eq!(server.count(rpc("initialize")), 1);
}

/// A server without sessions cannot lose one.
#[tokio::test]
async fn has_no_session_to_lose_where_none_was_given() {
    let server = HttpServer::sessionless().await;
    server.on(rpc("tools/call"), Answer::status(404));
    let rig = Rig::open(server.url()).await;
    assert_eq!(rig.call("tools/call").await.unwrap_err().reason, "http_status");
    assert_eq!(server.count(rpc("initialize")), 1);
}

#[tokio::test]
async fn sends_a_notification_again_over_the_new_session() {
    let server = HttpServer::start().await;
    let rig = Rig::open(server.url()).await;
    server.forget_sessions();
    rig.link.notify(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#.into()).await.unwrap();
    assert_eq!(server.count(rpc("notifications/x")), 2);
    assert_eq!(renewals(&rig), 1);
    server.on(rpc("notifications/y"), Answer::status(400));
    let refused = rig.link.notify(r#"{"jsonrpc":"2.0","method":"notifications/y"}"#.into()).await;
    assert_eq!(refused.unwrap_err().reason, "http_status");
}

/// A link whose session cannot be begun anew is of no more use, and says so at once.
#[tokio::test]
async fn is_down_when_no_new_session_can_be_begun() {
    let server = HttpServer::start().await;
    let rig = Rig::open(server.url()).await;
    server.forget_sessions();
    server.on(rpc("initialize"), Answer::status(503));
    assert_eq!(rig.call("tools/call").await.unwrap_err().reason, "http_status");
    assert!(rig.link.is_down());
    let asked = server.requests().len();
    let failure = rig.call("tools/call").await.unwrap_err();
    assert_eq!((failure.reason, failure.delivery), ("http_status", Delivery::NotDelivered));
    assert_eq!(server.requests().len(), asked);
    assert_eq!(renewals(&rig), 0);
}

/// The renewal is not lost with the call that began it.
#[tokio::test]
async fn renews_for_the_others_when_the_first_goes_away() {
    let server = HttpServer::start().await;
    let rig = Rig::open(server.url()).await;
    server.forget_sessions();
    let gate = Gate::new();
    server.once(rpc("notifications/initialized"), Answer::status(202).after(&gate));
    let ear = Ear::default().into();
    let first = rig.calling("tools/call", &ear);
    server.await_requests(2, rpc("initialize")).await;
    let second = rig.calling("tools/call", &ear);
    server.await_requests(2, rpc("tools/call")).await;
    first.drop_it();
    gate.open();
    second.answer().await.unwrap();
    assert_eq!(server.count(rpc("initialize")), 2);
}

/// The standalone stream belongs to a session: the new one gets its own, the old one's ends.
#[tokio::test]
async fn listens_to_the_new_session() {
    let server = HttpServer::start().await;
    server.on(http(Method::GET), Answer::events([hold()]));
    let rig = Rig::open(server.url()).await;
    server.await_request(http(Method::GET)).await;
    server.forget_sessions();
    rig.call("tools/call").await.unwrap();
    let gets = server.await_requests(2, http(Method::GET)).await;
    assert_ne!(gets[0].header("mcp-session-id"), gets[1].header("mcp-session-id"));
    server.await_hang_up(http(Method::GET)).await;
}

/// A closed link does not wait for its renewal.
#[tokio::test]
async fn closes_while_it_renews() {
    let server = HttpServer::start().await;
    let rig = Rig::open(server.url()).await;
    server.forget_sessions();
    server.on(rpc("initialize"), Answer::result("{}").after(&Gate::new()));
    let ear = Ear::default().into();
    let call = rig.calling("tools/call", &ear);
    server.await_requests(2, rpc("initialize")).await;
    tokio::time::timeout(Duration::from_secs(3), rig.link.close(mcpgate::upstream::Farewell::End))
        .await
        .unwrap();
    assert_eq!(call.answer().await.unwrap_err().reason, "link_closed");
}
