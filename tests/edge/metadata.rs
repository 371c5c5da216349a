//! How a client without a token learns where to get one (RFC 9728).

use http::{Method, StatusCode};
use mcpgate::settings::EndpointSettings;
use mcpgate::settings::auth::JwksSource;
use serde_json::json;

use crate::client::init;
use crate::credentials::{Pair, issuer, jwks};
use crate::gateway::{Setup, TestGateway};
use crate::http_server::HttpServer;

/// A gateway that takes tokens, with endpoints `t1` and `t2`.
pub(crate) fn with_tokens(pair: &Pair) -> (Setup, tempfile::NamedTempFile) {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), jwks(&[pair.jwk()])).expect("written");
    let source = JwksSource::File(file.path().to_owned());
    let named = |name: &str| EndpointSettings {
        name: name.into(),
        servers: Vec::new(),
        allow: Vec::new(),
        deny: Vec::new(),
        ..EndpointSettings::default()
    };
    let setup = TestGateway::new().with(|s| {
        s.auth.jwt = vec![issuer(source)];
        s.endpoints = vec![named("t1"), named("t2")];
    });
    (setup, file)
}

/// case-F01: the document of every endpoint is there for everyone, at the root for `/mcp` and behind its path for
/// all, and names exactly the URL that users type.
#[tokio::test]
async fn every_endpoint_has_its_document() {
    let server = HttpServer::start().await;
    let (setup, _keys) = with_tokens(&Pair::ec("1"));
    let gateway = setup
        .http("u1", server.url())
        .with(|s| s.public_url = Some("https://gw.example".parse().expect("a URL")))
        .start()
        .await;
    for (suffix, resource) in [
        ("", "https://gw.example/mcp"),
        ("/", "https://gw.example/mcp"),
        ("/mcp", "https://gw.example/mcp"),
        ("/mcp/", "https://gw.example/mcp"),
        ("/t1/mcp", "https://gw.example/t1/mcp"),
        ("/t2/mcp", "https://gw.example/t2/mcp"),
        ("/servers/u1/mcp", "https://gw.example/servers/u1/mcp"),
    ] {
        let client = gateway.client(&format!("/.well-known/oauth-protected-resource{suffix}"));
        let answer = client.send(Method::GET, "").await;
        assert_eq!(answer.status, StatusCode::OK, "{suffix}");
        assert_eq!(answer.header("content-type"), Some("application/json"), "{suffix}");
        let document = answer.json().await;
        assert_eq!(document["resource"], resource, "{suffix}");
        assert_eq!(document["authorization_servers"], json!([crate::credentials::ISSUER]), "{suffix}");
        let head = client.send(Method::HEAD, "").await;
        assert_eq!((head.status, head.text().await), (StatusCode::OK, String::new()), "{suffix}");
        let post = client.send(Method::POST, "").await;
        assert_eq!((post.status, post.header("allow")), (StatusCode::METHOD_NOT_ALLOWED, Some("GET, HEAD")));
    }
    for suffix in ["/nope/mcp", "/t1", "/servers/none/mcp", "/servers/u1", "/mcp/mcp/mcp", "/t3/mcp", "x"] {
        let client = gateway.client(&format!("/.well-known/oauth-protected-resource{suffix}"));
        let answer = client.send(Method::GET, "").await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{suffix}");
        assert!(answer.json().await["error"].is_object(), "{suffix}");
    }
}

/// Where tokens are no way in, there is nothing to say of them.
#[tokio::test]
async fn without_issuers_there_is_no_document() {
    let gateway = TestGateway::new().start().await;
    for path in ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"] {
        assert_eq!(gateway.client(path).send(Method::GET, "").await.status, StatusCode::NOT_FOUND, "{path}");
    }
}

/// case-F03: what a 401 points to comes from the configured URL, path included, whatever the request says.
#[tokio::test]
async fn the_challenge_points_to_the_public_url_whatever_the_request_says() {
    let (setup, _keys) = with_tokens(&Pair::ec("1"));
    let gateway =
        setup.with(|s| s.public_url = Some("https://gw.example/a".parse().expect("a URL"))).start().await;
    for (name, value) in [
        ("x-a", "b"),
        ("x-forwarded-proto", "http"),
        ("x-forwarded-host", "evil.example"),
        ("x-forwarded-prefix", "/evil"),
        ("forwarded", "host=evil.example;proto=http"),
    ] {
        for (path, metadata) in [
            ("/mcp", "https://gw.example/.well-known/oauth-protected-resource/a/mcp"),
            ("/mcp/", "https://gw.example/.well-known/oauth-protected-resource/a/mcp"),
            ("/t1/mcp", "https://gw.example/.well-known/oauth-protected-resource/a/t1/mcp"),
        ] {
            let answer = gateway.client(path).header(name, value).post(&init("2025-11-25", json!({}))).await;
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
            let challenge = answer.header("www-authenticate").expect("a challenge");
            assert!(challenge.contains(&format!("resource_metadata=\"{metadata}\"")), "{challenge}");
            assert!(!challenge.contains("evil"), "{challenge}");
        }
    }
    // A proxy may hand the path of the public URL on, or strip it.
    for path in [
        "/.well-known/oauth-protected-resource/a/mcp",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-protected-resource",
    ] {
        let document = gateway.client(path).send(Method::GET, "").await.json().await;
        assert_eq!(document["resource"], "https://gw.example/a/mcp", "{path}");
    }
}

/// case-F03: without a configured URL the listener's own address is named, never a header.
#[tokio::test]
async fn without_a_public_url_headers_are_not_believed() {
    let (setup, _keys) = with_tokens(&Pair::ec("1"));
    let gateway = setup.start().await;
    let client = gateway
        .client("/mcp")
        .header("x-forwarded-proto", "https")
        .header("x-forwarded-host", "evil.example")
        .header("forwarded", "host=evil.example;proto=https");
    let answer = client.post(&init("2025-11-25", json!({}))).await;
    let challenge = answer.header("www-authenticate").expect("a challenge");
    let own = format!("http://{}/.well-known/oauth-protected-resource/mcp", gateway.address);
    assert!(challenge.contains(&own) && !challenge.contains("evil"), "{challenge}");
}
