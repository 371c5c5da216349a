//! JWTs: what makes one good, and every way to be bad.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use jsonwebtoken::{Algorithm, EncodingKey, Header};
use mcpgate::auth::RefusalKind;
use mcpgate::settings::auth::JwksSource;
use mcpgate::tenancy::Issuer;
use serde_json::{Value, json};

use crate::support::*;

#[tokio::test]
async fn a_good_token_says_who_it_is() {
    let pair = Pair::rsa("k1");
    let (gate, _file) = gate_with(&[pair.jwk()]);
    let claims = claims();
    let principal = gate.bearer(&pair.sign(&claims)).await.unwrap();
    assert_eq!(principal.tenant.as_deref(), Some("acme"));
    assert_eq!(principal.issuer, Issuer::Jwt(ISSUER.into()));
    assert_eq!(&*principal.subject, "ann");
    assert_eq!(principal.client_id.as_deref(), Some("ide"));
    assert_eq!(principal.scopes.iter().map(String::as_str).collect::<Vec<_>>(), ["mcp:call", "mcp:list"]);
    let end = UNIX_EPOCH + Duration::from_secs(claims["exp"].as_u64().unwrap());
    let leeway = Duration::from_secs(30);
    assert_eq!(principal.expires, Some(end + leeway), "streams end when the token is accepted no more");
    assert_eq!(gate.counted("jwt", "ok"), 1);
}

#[tokio::test]
async fn every_kind_of_key_verifies() {
    for pair in [Pair::rsa("k"), Pair::ec("k"), Pair::ed("k")] {
        let (gate, _file) = gate_with(&[pair.jwk()]);
        assert_eq!(gate.word(&pair.sign(&claims())).await, "ok", "{:?}", pair.algorithm);
    }
}

#[tokio::test]
async fn scopes_and_client_are_found_under_their_other_names() {
    let pair = Pair::ec("k1");
    let (gate, _file) = gate_with(&[pair.jwk()]);
    let mut claims = claims_with("scope", Value::Null);
    claims["scp"] = json!(["a", "b"]);
    claims.as_object_mut().unwrap().remove("client_id");
    claims["azp"] = json!("portal");
    let principal = gate.bearer(&pair.sign(&claims)).await.unwrap();
    assert_eq!(principal.scopes, ["a".to_owned(), "b".to_owned()].into());
    assert_eq!(principal.client_id.as_deref(), Some("portal"));
}

/// case-F09: another token of the same identity is the same principal to bind to; another subject is not.
#[tokio::test]
async fn a_refreshed_token_has_the_binding_of_the_first() {
    let pair = Pair::ec("k1");
    let (gate, _file) = gate_with(&[pair.jwk()]);
    let first = gate.bearer(&pair.sign(&claims())).await.unwrap();
    let mut refreshed = claims_with("exp", json!(in_seconds(1200)));
    refreshed["scope"] = json!("mcp:list");
    let second = gate.bearer(&pair.sign(&refreshed)).await.unwrap();
    assert_eq!(first.binding(), second.binding());
    let other = gate.bearer(&pair.sign(&claims_with("sub", json!("bob")))).await.unwrap();
    assert_ne!(first.binding(), other.binding());
}

/// case-F05: a token is for this gateway or it is refused; one trailing slash makes no difference.
#[tokio::test]
async fn the_audience_must_be_this_gateway() {
    let pair = Pair::ec("k1");
    let (gate, _file) = gate_with(&[pair.jwk()]);
    for good in [
        json!(AUDIENCE),
        json!(["https://other.example", AUDIENCE]),
        json!("https://gw.example/mcp/"),
        json!([7, AUDIENCE]),
    ] {
        assert_eq!(gate.word(&pair.sign(&claims_with("aud", good.clone()))).await, "ok", "{good}");
    }
    for bad in [
        json!("https://other.example"),
        json!([]),
        Value::Null,
        json!(["https://other.example"]),
        json!("https://gw.example/mcp//"),
        json!("https://gw.example"),
        json!("https://gw.example/mcp/x"),
        json!(""),
        json!({ "aud": AUDIENCE }),
        json!([[AUDIENCE]]),
    ] {
        let refusal = gate.bearer(&pair.sign(&claims_with("aud", bad.clone()))).await.unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::WrongAudience, "{bad}");
    }
    assert_eq!(gate.counted("jwt", "bad_audience"), 10);
}

/// A8: the configured audience may be written with a trailing slash too.
#[tokio::test]
async fn a_configured_trailing_slash_makes_no_difference() {
    let pair = Pair::ec("k1");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), jwks(&[pair.jwk()])).unwrap();
    let mut issuer = issuer(JwksSource::File(file.path().to_owned()));
    issuer.audiences = vec![format!("{AUDIENCE}/")];
    let gate = Gate::new(&settings(vec![issuer], Vec::new()));
    assert_eq!(gate.word(&pair.sign(&claims())).await, "ok");
}

/// case-F07: what is forged, for others, or not of a form that is accepted.
#[tokio::test]
async fn forged_tokens_are_refused() {
    let ours = Pair::rsa("k1");
    let (gate, _file) = gate_with(&[ours.jwk()]);
    let good = ours.sign(&claims());
    let (signed, signature) = good.rsplit_once('.').unwrap();

    // No signature at all, in three spellings.
    for alg in ["none", "None", "NONE"] {
        let token = forged(&json!({ "alg": alg, "kid": "k1" }), &claims(), b"");
        assert_eq!(gate.word(&token).await, "invalid", "{alg}");
    }
    // The signature of another token, or none, under the right header.
    assert_eq!(gate.word(&format!("{signed}.")).await, "bad_signature");
    let other = ours.sign(&claims_with("sub", json!("bob")));
    let (_, other_signature) = other.rsplit_once('.').unwrap();
    assert_eq!(gate.word(&format!("{signed}.{other_signature}")).await, "bad_signature");
    // Changed claims under the old signature.
    let (header, _) = signed.split_once('.').unwrap();
    let (_, claims_and) = other.split_once('.').unwrap();
    let (changed, _) = claims_and.split_once('.').unwrap();
    assert_eq!(gate.word(&format!("{header}.{changed}.{signature}")).await, "bad_signature");
    // HS256 with the public key as the secret, in the forms an attacker would try.
    let jwk = ours.jwk();
    for secret in [jwk["n"].as_str().unwrap().to_owned(), jwk.to_string(), jwks(std::slice::from_ref(&jwk))] {
        let header = Header { kid: Some("k1".to_owned()), ..Header::new(Algorithm::HS256) };
        let secret = EncodingKey::from_secret(secret.as_bytes()).unwrap();
        let token = jsonwebtoken::encode(&header, &claims(), &secret).unwrap();
        assert_eq!(gate.word(&token).await, "invalid");
    }
    // Another's key under our kid.
    let thief = Pair::rsa("k1");
    assert_eq!(gate.word(&thief.sign(&claims())).await, "bad_signature");
    // An algorithm of the right family that is not allowed.
    let header = Header { kid: Some("k1".to_owned()), ..Header::new(Algorithm::RS512) };
    assert_eq!(gate.word(&ours.sign_with(&header, &claims())).await, "invalid");
    // An allowed algorithm of another family than the key's.
    let ec = Pair::ec("k1");
    assert_eq!(gate.word(&ec.sign(&claims())).await, "invalid");
    // An extension that is called critical.
    let header = Header { crit: Some(vec!["exp2".to_owned()]), ..ours.header() };
    assert_eq!(gate.word(&ours.sign_with(&header, &claims())).await, "invalid");
    // The genuine one still comes in.
    assert_eq!(gate.word(&good).await, "ok");
    assert_eq!(gate.counted("jwt", "_other"), 0);
}

/// case-F07: a key of one issuer does not sign for another.
#[tokio::test]
async fn each_issuer_speaks_for_itself() {
    let (ours, theirs) = (Pair::ec("ours"), Pair::ec("theirs"));
    let files = [tempfile::NamedTempFile::new().unwrap(), tempfile::NamedTempFile::new().unwrap()];
    std::fs::write(files[0].path(), jwks(&[ours.jwk()])).unwrap();
    std::fs::write(files[1].path(), jwks(&[theirs.jwk()])).unwrap();
    let first = issuer(JwksSource::File(files[0].path().to_owned()));
    let mut second = issuer(JwksSource::File(files[1].path().to_owned()));
    second.issuer = "https://other.example".to_owned();
    let gate = Gate::new(&settings(vec![first, second], Vec::new()));

    let other = claims_with("iss", json!("https://other.example"));
    assert_eq!(gate.word(&ours.sign(&claims())).await, "ok");
    assert_eq!(gate.word(&theirs.sign(&other)).await, "ok");
    assert_eq!(gate.word(&theirs.sign(&claims())).await, "unknown_key");
    assert_eq!(gate.word(&ours.sign(&other)).await, "unknown_key");
    for iss in [json!("https://third.example"), json!("https://idp.example/")] {
        assert_eq!(gate.word(&ours.sign(&claims_with("iss", iss))).await, "unknown_issuer");
    }
    for iss in [Value::Null, json!([ISSUER]), json!(7)] {
        assert_eq!(gate.word(&ours.sign(&claims_with("iss", iss))).await, "invalid");
    }
}

/// A7: times are checked, with the leeway that clocks are allowed.
#[tokio::test]
async fn a_token_is_good_between_its_times_only() {
    let pair = Pair::ec("k1");
    let (gate, _file) = gate_with(&[pair.jwk()]);
    for (claim, value, word) in [
        ("exp", json!(in_seconds(-20)), "ok"),
        ("exp", json!(in_seconds(-40)), "expired"),
        ("exp", json!(0), "expired"),
        ("exp", Value::Null, "bad_claim"),
        ("exp", json!("tomorrow"), "bad_claim"),
        ("exp", json!(-1), "bad_claim"),
        ("exp", json!(u64::MAX), "bad_claim"),
        ("nbf", json!(in_seconds(20)), "ok"),
        ("nbf", json!(in_seconds(60)), "bad_claim"),
        ("nbf", Value::Null, "ok"),
    ] {
        let token = pair.sign(&claims_with(claim, value.clone()));
        assert_eq!(gate.word(&token).await, word, "{claim} {value}");
        // What is remembered of a token changes nothing.
        assert_eq!(gate.word(&token).await, word, "{claim} {value}, again");
    }
    let refusal = gate.bearer(&pair.sign(&claims_with("exp", json!(1)))).await.unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::Expired);
}

/// A7: an ID token or a logout token is no access token.
#[tokio::test]
async fn the_type_must_be_of_an_access_token() {
    let pair = Pair::ec("k1");
    let (gate, _file) = gate_with(&[pair.jwk()]);
    for (typ, word) in [
        (None, "ok"),
        (Some("JWT"), "ok"),
        (Some("jwt"), "ok"),
        (Some("at+jwt"), "ok"),
        (Some("AT+JWT"), "ok"),
        (Some("application/at+jwt"), "ok"),
        (Some("Application/JWT"), "ok"),
        (Some("logout+jwt"), "invalid"),
        (Some("oauth-id-jag+jwt"), "invalid"),
        (Some("dpop+jwt"), "invalid"),
        (Some(""), "invalid"),
    ] {
        let header = Header { typ: typ.map(str::to_owned), ..pair.header() };
        assert_eq!(gate.word(&pair.sign_with(&header, &claims())).await, word, "{typ:?}");
    }
}

/// case-F07: a token that names no key is verified only if there is no choice.
#[tokio::test]
async fn without_a_kid_there_must_be_one_key() {
    let (first, second) = (Pair::ec("k1"), Pair::ec("k2"));
    let token = first.sign_with(&Header { kid: None, ..first.header() }, &claims());
    let mut unnamed = first.jwk();
    unnamed.as_object_mut().unwrap().remove("kid");
    let mut encryption = second.jwk();
    encryption["use"] = json!("enc");
    let unknown = json!({ "kty": "PQC", "kid": "k3", "x": "AAAA" });
    let secret = json!({ "kty": "oct", "kid": "k4", "k": "c2VjcmV0" });

    for (keys, word) in [
        (vec![first.jwk()], "ok"),
        (vec![unnamed], "ok"),
        (vec![encryption, unknown, secret, json!("no key"), first.jwk()], "ok"),
        (vec![first.jwk(), second.jwk()], "unknown_key"),
        (vec![second.jwk()], "bad_signature"),
    ] {
        let (gate, _file) = gate_with(&keys);
        assert_eq!(gate.word(&token).await, word, "{}", jwks(&keys));
    }
}

/// case-F07: keys that are not for signatures verify none.
#[tokio::test]
async fn keys_for_other_uses_verify_nothing() {
    let pair = Pair::rsa("k1");
    for (name, value) in [("use", json!("enc")), ("alg", json!("RSA-OAEP")), ("key_ops", json!(["encrypt"]))]
    {
        let mut jwk = pair.jwk();
        jwk[name] = value;
        let (gate, _file) = gate_with(&[jwk]);
        assert_eq!(gate.word(&pair.sign(&claims())).await, "unknown_key", "{name}");
    }
    // A symmetric key in the set is no key either.
    let secret = EncodingKey::from_secret(b"secret").unwrap();
    let header = Header { kid: Some("k4".to_owned()), ..Header::new(Algorithm::HS256) };
    let token = jsonwebtoken::encode(&header, &claims(), &secret).unwrap();
    let (gate, _file) = gate_with(&[json!({ "kty": "oct", "kid": "k4", "k": "c2VjcmV0", "alg": "HS256" })]);
    assert_eq!(gate.word(&token).await, "invalid");
}

/// case-F09: a token without the claims that make a principal is refused, never taken for another.
#[tokio::test]
async fn principal_and_tenant_must_be_texts() {
    let pair = Pair::ec("k1");
    let (gate, _file) = gate_with(&[pair.jwk()]);
    for claim in ["sub", "tenant"] {
        for bad in [Value::Null, json!(""), json!(7), json!(["acme"]), json!({ "id": "acme" })] {
            let token = pair.sign(&claims_with(claim, bad.clone()));
            let refusal = gate.bearer(&token).await.unwrap_err();
            assert_eq!(refusal.kind, RefusalKind::Invalid, "{claim} {bad}");
        }
    }
}

#[tokio::test]
async fn an_issuer_speaks_only_for_its_tenants() {
    let pair = Pair::ec("k1");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), jwks(&[pair.jwk()])).unwrap();
    let mut listed = issuer(JwksSource::File(file.path().to_owned()));
    listed.tenants = vec!["acme".to_owned(), "globex".to_owned()];
    let gate = Gate::new(&settings(vec![listed.clone()], Vec::new()));
    assert_eq!(gate.word(&pair.sign(&claims())).await, "ok");
    assert_eq!(gate.word(&pair.sign(&claims_with("tenant", json!("initech")))).await, "bad_claim");

    listed.tenants = vec!["acme".to_owned()];
    listed.tenant_claim = None;
    let gate = Gate::new(&settings(vec![listed.clone()], Vec::new()));
    let principal = gate.bearer(&pair.sign(&claims_with("tenant", json!("globex")))).await.unwrap();
    assert_eq!(principal.tenant.as_deref(), Some("acme"), "the only tenant it may speak for");

    listed.tenants = Vec::new();
    let gate = Gate::new(&settings(vec![listed], Vec::new()));
    assert_eq!(gate.bearer(&pair.sign(&claims())).await.unwrap().tenant, None);
}

#[tokio::test]
async fn claims_are_found_by_pointer() {
    let pair = Pair::ec("k1");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), jwks(&[pair.jwk()])).unwrap();
    let mut nested = issuer(JwksSource::File(file.path().to_owned()));
    nested.tenant_claim = Some("/https:~1~1gw.example~1org/id".to_owned());
    nested.principal_claim = "/email".to_owned();
    let gate = Gate::new(&settings(vec![nested], Vec::new()));
    let mut claims = claims();
    claims["https://gw.example/org"] = json!({ "id": "acme" });
    claims["email"] = json!("ann@acme.example");
    let principal = gate.bearer(&pair.sign(&claims)).await.unwrap();
    assert_eq!(principal.tenant.as_deref(), Some("acme"));
    assert_eq!(&*principal.subject, "ann@acme.example");
}

#[tokio::test]
async fn a_token_that_was_good_before_is_answered_from_memory() {
    let pair = Pair::ec("k1");
    let (gate, _file) = gate_with(&[pair.jwk()]);
    let token = pair.sign(&claims());
    let first = gate.bearer(&token).await.unwrap();
    let second = gate.bearer(&token).await.unwrap();
    assert!(Arc::ptr_eq(&first, &second));
}
