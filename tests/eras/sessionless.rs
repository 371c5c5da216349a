//! Legacy callers without a session id, where an endpoint takes them; and endpoints that take modern callers only.

use std::time::Duration;

use http::{Method, StatusCode};
use mcpgate::settings::EndpointSettings;
use mcpgate::settings::auth::Anonymous;
use mcpgate::settings::endpoints::SessionPolicy;
use serde_json::{Value, json};

use crate::client::{init, request, tool};
use crate::gateway::{Setup, TestGateway};
use crate::http_server::{Answer, Gate, HttpServer, hold_until, message, result, rpc};
use crate::kit::{LEGACY, MODERN, modern};

const DONE: &str = r#"{"content":[{"type":"text","text":"done"}]}"#;

/// A gateway with an endpoint `/own/mcp` of this policy.
fn with_policy(server: &HttpServer, policy: SessionPolicy) -> Setup {
    let own = EndpointSettings { name: "own".into(), sessions: policy, ..EndpointSettings::default() };
    TestGateway::new().http("u1", server.url()).with(|s| s.endpoints.push(own))
}

fn echo(id: i32) -> Value {
    request(id, "tools/call", tool("mcp_u1_echo", json!({})))
}

/// X31, T34: a caller that never initializes, or never returns its id, is served over one session at the server; what
/// it writes in is what its header says, or 2025-03-26.
#[tokio::test]
async fn a_caller_without_a_session_is_served_where_none_is_needed() {
    let server = HttpServer::start().await;
    let gateway = with_policy(&server, SessionPolicy::Optional).start().await;
    let never = gateway.client("/own/mcp");
    let opened = never.post(&init(LEGACY, json!({"sampling": {}}))).await;
    assert!(opened.header("mcp-session-id").is_some(), "it is given one all the same");
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(never.post(&note).await.status, StatusCode::ACCEPTED);
    assert_eq!(never.call(1, "ping", json!({})).await["result"], json!({}));
    let list = never.call(2, "tools/list", json!({})).await;
    assert_eq!(list["result"]["tools"][0]["name"], "mcp_u1_echo");
    assert_eq!(list["result"]["resultType"], Value::Null, "it is a legacy caller");
    for id in 3..6 {
        let answer = never.post(&echo(id)).await;
        assert_eq!((answer.status, answer.header("mcp-session-id")), (StatusCode::OK, None));
        assert_eq!(answer.response().await["result"]["content"][0]["text"], "ok");
    }
    assert_eq!(server.count(rpc("initialize")), 1, "one session at the server serves them all");
    let hello = server.await_request(rpc("initialize")).await.json();
    assert_eq!(hello["params"]["protocolVersion"], "2025-03-26");
    assert_eq!(hello["params"]["capabilities"], json!({}), "nothing is known that it could be asked");
    let newer = never.clone().header("mcp-protocol-version", "2025-06-18");
    assert_eq!(newer.call(7, "tools/call", tool("mcp_u1_echo", json!({}))).await["id"], 7);
    let hellos = server.await_requests(2, rpc("initialize")).await;
    assert_eq!(hellos[1].json()["params"]["protocolVersion"], "2025-06-18");
}

/// T19, T34: without a header it writes in 2025-03-26, which has arrays; a header that is none is refused as ever.
#[tokio::test]
async fn the_header_says_what_a_caller_without_a_session_may_write() {
    let server = HttpServer::start().await;
    let gateway = with_policy(&server, SessionPolicy::Optional).start().await;
    let client = gateway.client("/own/mcp");
    let batch =
        json!([echo(1), {"jsonrpc": "2.0", "method": "notifications/x"}, request(2, "ping", json!({}))]);
    let answer = client.post(&batch).await.json().await;
    assert_eq!((&answer[0]["id"], &answer[1]["id"]), (&json!(1), &json!(2)));
    for version in ["2025-06-18", "tomorrow"] {
        let answer = client.clone().header("mcp-protocol-version", version).post(&batch).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{version}");
    }
    let known = gateway.client("/own/mcp").initialize(LEGACY).await;
    assert_eq!(known.call(3, "tools/call", tool("mcp_u1_echo", json!({}))).await["id"], 3);
    let unknown = client.clone().header("mcp-session-id", "never-was").post(&echo(4)).await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND, "an id that is sent is an id");
    assert_eq!(
        gateway.client("/mcp").post(&echo(5)).await.status,
        StatusCode::BAD_REQUEST,
        "elsewhere it is needed"
    );
}

/// What needs a session says so: nothing can come back to a caller that cannot be found again.
#[tokio::test]
async fn what_needs_a_session_is_refused_without_one() {
    let server = HttpServer::start().await;
    let gateway = with_policy(&server, SessionPolicy::Optional).start().await;
    let client = gateway.client("/own/mcp");
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        let answer = client.post(&request(6, method, json!({"uri": "x:1"}))).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST);
        let answer = answer.json().await;
        assert_eq!(
            (&answer["id"], &answer["error"]["data"]["mcpgate"]["reason"]),
            (&json!(6), &json!("missing_session_id"))
        );
    }
    for method in [Method::GET, Method::DELETE] {
        assert_eq!(client.send(method, "").await.status, StatusCode::BAD_REQUEST);
    }
}

/// A question of the server is refused at once, since nobody could be asked; the call goes on.
#[tokio::test]
async fn a_caller_without_a_session_is_never_asked() {
    let (server, gate) = (HttpServer::start().await, Gate::new());
    let question = r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}"#;
    server.on(rpc("tools/call"), Answer::events([message(question), hold_until(&gate), result(DONE)]));
    let gateway = with_policy(&server, SessionPolicy::Optional).start().await;
    let client = gateway.client("/own/mcp");
    let refused = async {
        let answer = server.await_request(|seen| seen.rpc.is_none() && seen.text().contains("error")).await;
        assert_eq!((&answer.json()["id"], &answer.json()["error"]["code"]), (&json!("q"), &json!(-32601)));
        gate.open();
    };
    let call = echo(1);
    let (answer, ()) = tokio::join!(client.post(&call), refused);
    assert_eq!(answer.response().await["result"]["content"][0]["text"], "done");
}

/// T24: a legacy caller that leaves has not cancelled; its stream has no ids, since nobody can come back to it; and
/// nobody can take back what another one asked.
#[tokio::test]
async fn leaving_is_not_cancelling_and_nothing_can_be_resumed() {
    let (server, gate) = (HttpServer::start().await, Gate::new());
    let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#;
    server.on(rpc("tools/call"), Answer::events([message(log), hold_until(&gate), result(DONE)]));
    let gateway = with_policy(&server, SessionPolicy::Optional).start().await;
    let client = gateway.client("/own/mcp").header("mcp-protocol-version", LEGACY);
    let mut left = client.post(&echo(1)).await.stream();
    let event = left.event().await.unwrap();
    assert!(event.id.is_none() && !event.data.is_empty(), "{event:?}");
    drop(left);
    let mut stays = client.post(&echo(2)).await.stream();
    assert_eq!(stays.message().await.unwrap()["method"], "notifications/message");
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}});
    assert_eq!(client.post(&cancel).await.status, StatusCode::ACCEPTED);
    gate.open();
    let rest = stays.rest().await;
    assert_eq!(rest.last().unwrap()["result"]["content"][0]["text"], "done");
    gateway.until("mcpgate_calls_total{outcome=\"ok\",server=\"u1\"}", |ok| ok == 2.0).await;
    assert_eq!(server.count(rpc("notifications/cancelled")), 0);
}

/// L12, F10: an endpoint without sessions says which versions it serves, and takes POST only; modern callers are
/// served there, and legacy ones everywhere else.
#[tokio::test]
async fn an_endpoint_without_sessions_serves_modern_callers_only() {
    let server = HttpServer::start().await;
    let gateway = with_policy(&server, SessionPolicy::Off).start().await;
    let client = gateway.client("/own/mcp");
    let session = gateway.client("/mcp").initialize(LEGACY).await.at("/own/mcp");
    for (client, body, requested, id) in [
        (&client, init(LEGACY, json!({})), LEGACY, json!(0)),
        (&client, init("2024-11-05", json!({})), "2024-11-05", json!(0)),
        (&client, echo(3), "2025-03-26", json!(3)),
        (&session, echo(3), LEGACY, json!(3)),
        (
            &client,
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            "2025-03-26",
            Value::Null,
        ),
        (&client, json!([echo(3)]), "2025-03-26", Value::Null),
    ] {
        let answer = client.post(&body).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{body}");
        let answer = answer.json().await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(-32022)), "{answer}");
        assert_eq!(answer["error"]["data"]["supported"], json!([MODERN]));
        assert_eq!(answer["error"]["data"]["requested"], requested);
    }
    for method in [Method::GET, Method::DELETE, Method::PUT] {
        let answer = session.send(method.clone(), "").await;
        assert_eq!(
            (answer.status, answer.header("allow")),
            (StatusCode::METHOD_NOT_ALLOWED, Some("POST")),
            "{method}"
        );
    }
    let caller = modern(&gateway, "/own/mcp");
    let answer = caller.call(1, "tools/call", tool("mcp_u1_echo", json!({}))).await;
    assert_eq!(answer["result"]["content"][0]["text"], "ok");
}

/// case-I01: an anonymous caller that may be anybody shares its session with nobody, and it ends with the call.
#[tokio::test]
async fn who_may_be_anybody_has_a_session_for_each_call() {
    let server = HttpServer::start().await;
    let gateway = with_policy(&server, SessionPolicy::Optional)
        .with(|s| s.auth.anonymous = Anonymous::AcceptedFromAnywhere)
        .off_loopback()
        .start()
        .await;
    let caller = modern(&gateway, "/own/mcp");
    for n in 1..4 {
        let answer = caller.call(n, "tools/call", tool("mcp_u1_echo", json!({}))).await;
        assert_eq!(answer["result"]["content"][0]["text"], "ok", "{answer}");
    }
    let legacy = gateway.client("/own/mcp");
    assert_eq!(legacy.call(4, "tools/call", tool("mcp_u1_echo", json!({}))).await["id"], 4);
    let calls = server.await_requests(4, rpc("tools/call")).await;
    let mut sessions: Vec<_> =
        calls.iter().map(|seen| seen.header("mcp-session-id").unwrap().to_owned()).collect();
    sessions.dedup();
    assert_eq!(sessions.len(), 4, "each has its own: {sessions:?}");
    server.await_requests(4, |seen| seen.method == Method::DELETE).await;
    gateway.until("mcpgate_implicit_sessions_active", |active| active == 0.0).await;
}

/// The same caller on loopback is one person's: all its calls share what the gateway keeps for it.
#[tokio::test]
async fn who_is_known_shares_a_session_over_its_calls() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let caller = modern(&gateway, "/mcp");
    for n in 1..4 {
        caller.call(n, "tools/call", tool("mcp_u1_echo", json!({}))).await;
    }
    assert_eq!(server.count(rpc("initialize")), 1);
    let asked = caller.with(json!({"roots": {}}));
    asked.call(4, "tools/call", tool("mcp_u1_echo", json!({}))).await;
    assert_eq!(server.count(rpc("initialize")), 2, "another capability class is another session");
    assert_eq!(gateway.sample("mcpgate_implicit_sessions_active"), 2.0);
}

/// case-I05: at the cap the idlest implicit session gives way; if something runs in all of them, 503 and when to come
/// back. They do not count against the sessions that have a name.
#[tokio::test]
async fn implicit_sessions_are_held_to_the_caps() {
    let (server, gate) = (HttpServer::start().await, Gate::new());
    let gateway = with_policy(&server, SessionPolicy::Optional).with(|s| s.sessions.max = 1).start().await;
    gateway.client("/own/mcp").initialize(LEGACY).await;
    let caller = modern(&gateway, "/own/mcp");
    let others = caller.clone().with(json!({"roots": {}}));
    let call = || tool("mcp_u1_echo", json!({}));
    assert_eq!(caller.call(1, "tools/call", call()).await["id"], 1);
    assert_eq!(others.call(2, "tools/call", call()).await["id"], 2, "the idle one gave way");
    server.await_request(|seen| seen.method == Method::DELETE).await;
    server.once(rpc("tools/call"), Answer::result(DONE).after(&gate));
    let meanwhile = async {
        server.await_requests(3, rpc("tools/call")).await;
        let list = caller.request(3, "tools/list", json!({}));
        let full = caller.post(&list).await;
        assert_eq!(full.status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(full.header("retry-after").is_some());
        let full = full.json().await;
        assert_eq!(
            (&full["id"], &full["error"]["data"]["mcpgate"]["reason"]),
            (&json!(3), &json!("no_capacity"))
        );
        let legacy = gateway.client("/own/mcp").post(&echo(4)).await;
        assert_eq!(legacy.status, StatusCode::SERVICE_UNAVAILABLE);
        gate.open();
    };
    let (answer, ()) = tokio::join!(others.call(5, "tools/call", call()), meanwhile);
    assert_eq!(answer["result"]["content"][0]["text"], "done");
}

/// What nobody uses any more ends by its own clock, and takes leave of its servers.
#[tokio::test]
async fn an_idle_implicit_session_ends() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new()
        .http("u1", server.url())
        .with(|s| s.sessions.implicit_idle = Duration::from_millis(100))
        .start()
        .await;
    let caller = modern(&gateway, "/mcp");
    caller.call(1, "tools/call", tool("mcp_u1_echo", json!({}))).await;
    server.await_request(|seen| seen.method == Method::DELETE).await;
    caller.call(2, "tools/call", tool("mcp_u1_echo", json!({}))).await;
    assert_eq!(server.count(rpc("initialize")), 2);
}
