//! Pages in browsers: which may call, and what they may read.

use http::{Method, StatusCode};
use mcpgate::settings::auth::Anonymous;
use serde_json::json;

use crate::client::{Answer, Client, SOON, init, request};
use crate::gateway::{Setup, TestGateway};

const APP: &str = "https://app.example.com";
const ASKED: &str = "authorization, content-type, accept, mcp-session-id, mcp-protocol-version, last-event-id, \
                     mcp-method, mcp-name, mcp-param-city, Mcp-Param-Region, x-api-key";

fn closed() -> Setup {
    TestGateway::new().with(|s| {
        s.origins = vec![APP.into()];
        s.auth.anonymous = Anonymous::Never;
        s.auth.api_keys = vec![crate::credentials::api_key("ann", "ann-key")];
    })
}

fn preflight(client: Client) -> Client {
    client
        .header("origin", APP)
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", ASKED)
}

fn allows(answer: &Answer) {
    assert_eq!(answer.header("access-control-allow-origin"), Some(APP));
    assert_eq!(answer.header("access-control-allow-credentials"), None, "never with credentials");
    let vary: Vec<_> = answer.headers.get_all("vary").iter().collect();
    assert!(vary.iter().any(|v| v.to_str().is_ok_and(|v| v.eq_ignore_ascii_case("origin"))));
}

fn exposes(answer: &Answer) {
    allows(answer);
    let exposed = answer.header("access-control-expose-headers").expect("exposed headers");
    for name in ["Mcp-Session-Id", "WWW-Authenticate", "X-Request-Id", "Retry-After"] {
        assert!(exposed.contains(name), "{name} in {exposed}");
    }
}

/// case-E05: a preflight has no credential to show, and is answered before anybody asks for one.
#[tokio::test]
async fn a_preflight_is_answered_before_authentication() {
    let gateway = closed().start().await;
    for path in ["/mcp", "/mcp/", "/.well-known/oauth-protected-resource/mcp"] {
        let answer = preflight(gateway.client(path)).send(Method::OPTIONS, "").await;
        assert_eq!(answer.status, StatusCode::NO_CONTENT, "{path}");
        allows(&answer);
        let allowed = answer.header("access-control-allow-headers").expect("headers").to_ascii_lowercase();
        let allowed: Vec<&str> = allowed.split(',').map(str::trim).collect();
        for asked in ASKED.to_ascii_lowercase().split(',').map(str::trim) {
            assert!(allowed.contains(&asked), "{asked} in {allowed:?}");
        }
        let methods = answer.header("access-control-allow-methods").expect("methods");
        for method in ["GET", "POST", "DELETE"] {
            assert!(methods.contains(method), "{method} in {methods}");
        }
        assert_eq!(answer.text().await, "");
    }
}

/// case-E05: some programs ask for headers only.
#[tokio::test]
async fn a_preflight_that_asks_for_headers_only_is_one() {
    let gateway = closed().start().await;
    let client = preflight(gateway.client("/mcp")).without("access-control-request-method");
    assert_eq!(client.send(Method::OPTIONS, "").await.status, StatusCode::NO_CONTENT);
}

/// case-E05: the page may read the headers that matter on every answer, also when it is refused.
#[tokio::test]
async fn headers_are_exposed_on_every_kind_of_answer() {
    let gateway = closed().with(|s| s.shutdown.delay = SOON).start().await;
    let client = gateway.client("/mcp").header("origin", APP);
    let refused = client.post(&init("2025-06-18", json!({}))).await;
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
    assert!(refused.header("www-authenticate").is_some());
    exposes(&refused);
    let client = client.header("x-api-key", "ann-key");
    let opened = client.post(&init("2025-06-18", json!({}))).await;
    assert_eq!(opened.status, StatusCode::OK);
    exposes(&opened);
    let unknown =
        client.clone().header("mcp-session-id", "unknown").post(&request(1, "ping", json!({}))).await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    exposes(&unknown);
    let nowhere = client.clone().at("/nowhere").send(Method::GET, "").await;
    assert_eq!(nowhere.status, StatusCode::NOT_FOUND);
    exposes(&nowhere);
    let wrong = client.send(Method::PUT, "").await;
    assert_eq!(wrong.status, StatusCode::METHOD_NOT_ALLOWED);
    exposes(&wrong);
    gateway.begin_to_stop().await;
    let draining = client.post(&init("2025-06-18", json!({}))).await;
    assert_eq!(draining.status, StatusCode::SERVICE_UNAVAILABLE);
    exposes(&draining);
}

/// A stream is an answer like any other.
#[tokio::test]
async fn headers_are_exposed_on_streams() {
    let gateway = TestGateway::new().with(|s| s.origins = vec![APP.into()]).start().await;
    let client = gateway.client("/mcp").header("origin", APP).initialize("2025-11-25").await;
    exposes(&client.send(Method::GET, "").await);
    exposes(&client.clone().header("accept", "text/event-stream").post(&request(1, "ping", json!({}))).await);
}

/// T3: a page that may not call gets 403 before anything else, and may read nothing.
#[tokio::test]
async fn a_foreign_origin_is_403_for_every_method() {
    let gateway = closed().start().await;
    for origin in
        ["https://evil.example", "null", "https://app.example.com.evil.example", "http://app.example.com", ""]
    {
        let client = gateway.client("/mcp").header("origin", origin).header("x-api-key", "ann-key");
        for method in [Method::POST, Method::GET, Method::DELETE, Method::OPTIONS, Method::PUT] {
            let answer = client.send(method.clone(), init("2025-06-18", json!({})).to_string()).await;
            assert_eq!(answer.status, StatusCode::FORBIDDEN, "{method} {origin:?}");
            assert_eq!(answer.header("access-control-allow-origin"), None, "{method} {origin:?}");
        }
        let answer = preflight(client).header("origin", origin).send(Method::OPTIONS, "").await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "preflight {origin:?}");
    }
    let twice = gateway.client("/mcp").header("origin", APP).also("origin", APP);
    assert_eq!(twice.send(Method::GET, "").await.status, StatusCode::FORBIDDEN, "two origins");
}
