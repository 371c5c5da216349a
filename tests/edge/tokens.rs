//! JWT access tokens at the door.

use http::StatusCode;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};

use crate::client::{Client, init, request};
use crate::credentials::{AUDIENCE, Pair, claims, claims_with, forged, in_seconds};
use crate::gateway::TestGateway;
use crate::metadata::with_tokens;

fn bearer(gateway: &TestGateway, token: &str) -> Client {
    gateway.client("/mcp").header("authorization", &format!("Bearer {token}"))
}

async fn status(gateway: &TestGateway, token: &str) -> StatusCode {
    let answer = bearer(gateway, token).post(&init("2025-11-25", json!({}))).await;
    if answer.status == StatusCode::UNAUTHORIZED {
        let challenge = answer.header("www-authenticate").expect("a challenge").to_owned();
        assert!(challenge.contains("error=\"invalid_token\""), "{challenge}");
        assert!(!challenge.contains(token), "no token comes back");
    }
    answer.status
}

/// case-F05: the audience must be there and be ours, as a text or in a list.
#[tokio::test]
async fn a_token_for_somebody_else_is_401() {
    let pair = Pair::ec("1");
    let (setup, _keys) = with_tokens(&pair);
    let gateway = setup.start().await;
    for aud in [json!(AUDIENCE), json!(["x", AUDIENCE]), json!([AUDIENCE])] {
        assert_eq!(
            status(&gateway, &pair.sign(&claims_with("aud", aud.clone()))).await,
            StatusCode::OK,
            "{aud}"
        );
    }
    let slash = format!("{AUDIENCE}/mcp");
    for aud in [
        json!("https://other"),
        json!([]),
        Value::Null,
        json!(["x"]),
        json!(""),
        json!(slash),
        json!(7),
        json!({AUDIENCE: 1}),
    ] {
        let token = pair.sign(&claims_with("aud", aud.clone()));
        assert_eq!(status(&gateway, &token).await, StatusCode::UNAUTHORIZED, "{aud}");
    }
}

/// case-F07: forged tokens: no signature, the public key as a secret, another's key, a key that is not published.
#[tokio::test]
async fn a_forged_token_is_401() {
    let pair = Pair::rsa("1");
    let (setup, _keys) = with_tokens(&pair);
    let gateway = setup.start().await;
    let stranger = Pair::rsa("1");
    let good = pair.sign(&claims());
    assert_eq!(status(&gateway, &good).await, StatusCode::OK);
    let public = pair.jwk()["n"].as_str().expect("a modulus").to_owned();
    let hmac = Header { kid: Some("1".into()), ..Header::new(Algorithm::HS256) };
    let confused = jsonwebtoken::encode(
        &hmac,
        &claims(),
        &EncodingKey::from_secret(public.as_bytes()).expect("a secret"),
    )
    .expect("signed");
    let (head, rest) = good.split_once('.').expect("three parts");
    let (body, signature) = rest.split_once('.').expect("three parts");
    let (_, other_rest) = pair
        .sign(&claims_with("sub", json!("eve")))
        .split_once('.')
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .expect("parts");
    let other_body = other_rest.split_once('.').expect("parts").0.to_owned();
    for (what, token) in [
        ("alg none", forged(&json!({"alg": "none", "kid": "1"}), &claims(), b"")),
        ("alg NONE", forged(&json!({"alg": "NONE", "kid": "1"}), &claims(), b"x")),
        ("no alg", forged(&json!({"kid": "1"}), &claims(), b"x")),
        ("the public key as a secret", confused),
        ("another's key under the same id", stranger.sign(&claims())),
        (
            "no such key",
            pair.sign_with(&Header { kid: Some("2".into()), ..Header::new(Algorithm::RS256) }, &claims()),
        ),
        ("another's claims", format!("{head}.{other_body}.{signature}")),
        ("cut", format!("{head}.{body}.{}", &signature[..signature.len() - 4])),
        ("no signature", format!("{head}.{body}.")),
        ("expired", pair.sign(&claims_with("exp", json!(in_seconds(-3600))))),
        ("no expiry", pair.sign(&claims_with("exp", Value::Null))),
        ("not yet", pair.sign(&claims_with("nbf", json!(in_seconds(3600))))),
        ("another issuer", pair.sign(&claims_with("iss", json!("https://evil.example")))),
        ("no issuer", pair.sign(&claims_with("iss", Value::Null))),
        ("nobody", pair.sign(&claims_with("sub", Value::Null))),
    ] {
        assert_eq!(status(&gateway, &token).await, StatusCode::UNAUTHORIZED, "{what}");
    }
}

/// A token is asked for on every request of a session, and a bad one is 401 also where the session is unknown.
#[tokio::test]
async fn who_has_no_token_learns_nothing_of_sessions() {
    let pair = Pair::ec("1");
    let (setup, _keys) = with_tokens(&pair);
    let gateway = setup.start().await;
    let owner = bearer(&gateway, &pair.sign(&claims())).initialize("2025-11-25").await;
    for client in [owner.clone(), owner.clone().header("mcp-session-id", "never-was")] {
        let client = client.without("authorization");
        for method in [http::Method::POST, http::Method::GET, http::Method::DELETE] {
            let answer = client.send(method, request(1, "ping", json!({})).to_string()).await;
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
            let reason = answer.json().await["error"]["data"]["mcpgate"]["reason"].clone();
            assert_eq!(reason, "missing");
        }
    }
    assert_eq!(owner.call(1, "ping", json!({})).await["result"], json!({}));
}

/// case-F09: a fresh token of the same person goes on with the session; another person's is 404.
#[tokio::test]
async fn a_session_outlives_its_token() {
    let pair = Pair::ec("1");
    let (setup, _keys) = with_tokens(&pair);
    let gateway = setup.start().await;
    let owner = bearer(&gateway, &pair.sign(&claims())).initialize("2025-11-25").await;
    let with =
        |claims: Value| owner.clone().header("authorization", &format!("Bearer {}", pair.sign(&claims)));
    let ping = request(1, "ping", json!({}));
    for fresh in [
        claims_with("exp", json!(in_seconds(1200))),
        claims_with("jti", json!("2")),
        claims_with("scope", json!("mcp:list")),
    ] {
        assert_eq!(with(fresh).post(&ping).await.status, StatusCode::OK);
    }
    for other in [
        claims_with("sub", json!("eve")),
        claims_with("tenant", json!("umbrella")),
        claims_with("client_id", json!("cli")),
    ] {
        let client = with(other.clone());
        assert_eq!(client.post(&ping).await.status, StatusCode::NOT_FOUND, "{other}");
        assert_eq!(client.send(http::Method::DELETE, "").await.status, StatusCode::NOT_FOUND, "{other}");
    }
    assert_eq!(owner.post(&ping).await.status, StatusCode::OK);
}

/// Two credentials are one too many: 400, whichever of them is good.
#[tokio::test]
async fn two_credentials_are_400() {
    let pair = Pair::ec("1");
    let (setup, _keys) = with_tokens(&pair);
    let gateway = setup.start().await;
    let client = bearer(&gateway, &pair.sign(&claims()));
    for client in [client.clone().header("x-api-key", "a"), client.also("authorization", "Bearer x")] {
        let answer = client.post(&init("2025-11-25", json!({}))).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    }
}

/// case-I05: a subject has no more sessions by coming through more clients.
#[tokio::test]
async fn clients_of_one_subject_share_its_cap() {
    let pair = Pair::ec("1");
    let (setup, _keys) = with_tokens(&pair);
    let gateway = setup.with(|s| s.sessions.max_per_principal = 1).start().await;
    let token = |client: &str, subject: &str| {
        let mut claims = claims_with("client_id", json!(client));
        claims["sub"] = json!(subject);
        pair.sign(&claims)
    };
    assert_eq!(status(&gateway, &token("ide", "ann")).await, StatusCode::OK);
    assert_eq!(status(&gateway, &token("bot", "ann")).await, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(status(&gateway, &token("ide", "bob")).await, StatusCode::OK);
}
