//! Callers without a credential, with a key, with two; and what nothing may ever show.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::FutureExt as _;
use http::HeaderMap;
use mcpgate::auth::{Authenticator, Pace, Reach, RefusalKind, Unusable, challenge};
use mcpgate::settings::AuthSettings;
use mcpgate::settings::auth::{Anonymous, JwksSource};
use mcpgate::telemetry::Metrics;
use mcpgate::tenancy::{Issuer, Principal};
use tokio_util::task::TaskTracker;

use crate::support::*;

fn build(settings: &AuthSettings, reach: Reach) -> Result<Authenticator, Unusable> {
    let client = mcpgate::auth::KeyClient::default();
    Authenticator::new(settings, reach, client, TaskTracker::new(), Arc::new(Metrics::default()))
}

#[tokio::test]
async fn on_loopback_without_any_way_in_a_caller_is_anonymous() {
    let gate = Gate::new(&AuthSettings::default());
    assert_eq!(*gate.try_headers(&[]).await.unwrap(), Principal::anonymous());
    assert_eq!(gate.counted("none", "ok"), 1);
}

#[test]
fn an_anonymous_caller_never_waits() {
    let authenticator = build(&AuthSettings::default(), Reach::Loopback).unwrap();
    let headers = HeaderMap::new();
    let first = authenticator.authenticate(&headers).now_or_never().expect("no suspension").unwrap();
    let second = authenticator.authenticate(&headers).now_or_never().expect("no suspension").unwrap();
    assert!(Arc::ptr_eq(&first, &second), "no allocation either");
}

#[test]
fn off_loopback_without_any_way_in_it_does_not_start() {
    let nothing = AuthSettings::default();
    assert_eq!(build(&nothing, Reach::Network).unwrap_err(), Unusable::NoWayIn);
    // The last key was taken out of the file: nobody comes in, and the gateway goes on.
    let never = AuthSettings { anonymous: Anonymous::Never, ..AuthSettings::default() };
    assert!(build(&never, Reach::Network).is_ok());
    let open = AuthSettings { anonymous: Anonymous::AcceptedFromAnywhere, ..AuthSettings::default() };
    assert!(build(&open, Reach::Network).is_ok());
}

#[test]
fn reach_is_told_by_the_address() {
    for (address, reach) in [
        ("127.0.0.1:1", Reach::Loopback),
        ("127.9.9.9:1", Reach::Loopback),
        ("[::1]:1", Reach::Loopback),
        ("[::ffff:127.0.0.1]:1", Reach::Loopback),
        ("0.0.0.0:1", Reach::Network),
        ("[::]:1", Reach::Network),
        ("10.0.0.1:1", Reach::Network),
    ] {
        assert_eq!(Reach::from(address.parse::<SocketAddr>().unwrap()), reach, "{address}");
    }
}

#[test]
fn settings_that_would_let_in_too_much_or_nobody_are_refused() {
    let usual = || issuer(JwksSource::File("/nowhere".into()));
    let refused =
        |issuer| build(&settings(vec![issuer], Vec::new()), Reach::Network).unwrap_err().to_string();
    for algorithm in ["HS256", "none", "RS257"] {
        let mut issuer = usual();
        issuer.algorithms = vec![algorithm.to_owned()];
        let text = refused(issuer);
        assert!(
            text.contains(algorithm) && text.contains(ISSUER) && text.contains("use for example"),
            "{text}"
        );
    }
    let mut no_algorithm = usual();
    no_algorithm.algorithms.clear();
    assert!(refused(no_algorithm).contains("`algorithms` is empty"));
    let mut no_audience = usual();
    no_audience.audiences.clear();
    assert!(refused(no_audience).contains("`audiences` is empty"));
    let mut no_claim = usual();
    no_claim.tenant_claim = None;
    no_claim.tenants = vec!["a".to_owned(), "b".to_owned()];
    assert!(refused(no_claim).contains("no `tenantClaim`"));
}

/// A bad credential is refused where none would do.
#[tokio::test]
async fn a_bad_credential_is_refused_where_none_would_do() {
    for anonymous in [Anonymous::Loopback, Anonymous::AcceptedFromAnywhere] {
        let gate = Gate::new(&AuthSettings { anonymous, ..AuthSettings::default() });
        for headers in [
            [("authorization", "Bearer wrong")],
            [("x-api-key", "wrong")],
            [("x-api-key", "")],
            [("authorization", "Basic dXNlcjpwYXNz")],
            [("authorization", "Bearer eyJhbGciOiJub25lIn0.e30.")],
        ] {
            let refusal = gate.try_headers(&headers).await.unwrap_err();
            assert_eq!(refusal.kind, RefusalKind::Invalid, "{headers:?}");
        }
    }
}

#[tokio::test]
async fn where_a_way_in_is_configured_none_does_not_do() {
    let gate = Gate::new(&settings(Vec::new(), vec![api_key("ci", "s3cret")]));
    assert_eq!(gate.try_headers(&[]).await.unwrap_err().kind, RefusalKind::Missing);
    assert_eq!(gate.counted("none", "missing"), 1);
}

#[tokio::test]
async fn a_key_opens_by_either_header() {
    let mut ended = api_key("old", "0ld");
    ended.expires = Some(SystemTime::now() - Duration::from_secs(1));
    let mut ends = api_key("new", "n3w");
    ends.expires = Some(SystemTime::now() + Duration::from_secs(600));
    let gate = Gate::new(&settings(Vec::new(), vec![api_key("ci", "s3cret"), ended, ends]));
    for headers in [[("authorization", "Bearer s3cret")], [("x-api-key", "s3cret")]] {
        let principal = gate.try_headers(&headers).await.unwrap();
        assert_eq!((&*principal.subject, &principal.issuer), ("ci", &Issuer::ApiKey));
        assert_eq!(principal.tenant.as_deref(), Some("acme"));
        assert!(principal.scopes.contains("mcp:call"));
    }
    assert!(gate.try_headers(&[("x-api-key", "n3w")]).await.unwrap().expires.is_some());
    assert_eq!(gate.try_headers(&[("x-api-key", "0ld")]).await.unwrap_err().kind, RefusalKind::Expired);
    for wrong in ["s3cre", "s3cret ", "S3CRET", "s3crets"] {
        let kind = gate.try_headers(&[("x-api-key", &format!("{wrong}x"))]).await.unwrap_err().kind;
        assert_eq!(kind, RefusalKind::Invalid, "{wrong}");
    }
    assert_eq!(gate.counted("api_key", "ok"), 3);
    assert_eq!(gate.counted("api_key", "expired"), 1);
}

/// A10: two credentials are malformed, even if each is good.
#[tokio::test]
async fn two_credentials_are_malformed() {
    let gate = Gate::new(&settings(Vec::new(), vec![api_key("ci", "s3cret")]));
    for headers in [
        [("authorization", "Bearer s3cret"), ("x-api-key", "s3cret")],
        [("authorization", "Bearer s3cret"), ("authorization", "Bearer s3cret")],
        [("x-api-key", "s3cret"), ("x-api-key", "s3cret")],
    ] {
        assert_eq!(gate.try_headers(&headers).await.unwrap_err().kind, RefusalKind::Malformed);
    }
}

/// case-F11, case-F13: no credential is in a log line, an error, a header, a metric or a Debug text.
#[tokio::test]
async fn no_credential_shows_anywhere() {
    let pair = Pair::ec("k1");
    let server = Jwks::start(jwks(&[pair.jwk()])).await;
    let mut source = server.url.clone();
    source.set_query(Some("secret=CANARY"));
    let pace = Pace { retry: Duration::ZERO, floor: Duration::ZERO, ..Pace::default() };
    let with = settings(vec![issuer(JwksSource::Url(source))], vec![api_key("ci", "CANARY-good")]);
    let gate = Gate::paced(&with, pace);

    let mut claims = claims();
    claims["note"] = "CANARY".into();
    let good = pair.sign(&claims);
    let signature = good.rsplit('.').next().unwrap().to_owned();
    let thief = Pair::ec("k1").sign(&claims);
    let payload = good.split('.').nth(1).unwrap().to_owned();
    let mut seen = String::new();
    server.answer(Answer::Status(500));
    for token in [&good, &thief] {
        seen += &format!("{:?}", gate.bearer(token).await.map_err(|refusal| (refusal, refusal.to_string())));
    }
    server.answer(Answer::Document(jwks(&[pair.jwk()])));
    for token in [good.as_str(), thief.as_str(), "CANARY-good", "CANARY-bad", "CANARY CANARY"] {
        match gate.bearer(token).await {
            Ok(principal) => seen += &format!("{principal:?} {:?}", principal.binding()),
            Err(refusal) => {
                seen +=
                    &format!("{refusal} {refusal:?} {:?}", challenge::www_authenticate(&refusal, None, None));
            }
        }
    }
    seen += &format!("{:?}", gate.authenticator);
    seen += &gate.metrics.encode();
    seen += &Log::read();
    assert!(seen.contains("a caller is refused"), "the log was read:\n{seen}");
    assert!(seen.contains("is not to be had"), "the failed fetch was logged:\n{seen}");
    for canary in ["CANARY", &payload, &signature] {
        let at = seen.find(canary).map(|at| &seen[at.saturating_sub(300)..(at + 40).min(seen.len())]);
        assert_eq!(at, None, "a credential shows");
    }
}
