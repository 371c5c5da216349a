//! Which headers carry which credential.

use http::HeaderValue;

use super::*;

fn headers(all: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in all {
        headers.append(*name, HeaderValue::from_static(value));
    }
    headers
}

fn word(all: &[(&'static str, &'static str)]) -> String {
    match presented(&headers(all)) {
        Ok(Credential::None) => "none".to_owned(),
        Ok(Credential::ApiKey(key)) => format!("key {}", String::from_utf8_lossy(key)),
        Ok(Credential::Jwt(token)) => format!("jwt {token}"),
        Err(refusal) => refusal.reason.to_owned(),
    }
}

#[test]
fn each_form_is_told_from_the_others() {
    let jwt = "eyJhbGciOiJub25lIn0.e30.";
    assert_eq!(word(&[]), "none");
    assert_eq!(word(&[("authorization", "Bearer abc")]), "key abc");
    assert_eq!(word(&[("authorization", "bEARER  abc ")]), "key abc");
    assert_eq!(word(&[("authorization", "Bearer eyJhbGciOiJub25lIn0.e30.")]), format!("jwt {jwt}"));
    assert_eq!(word(&[("x-api-key", "abc")]), "key abc");
    // Three parts, but no JSON object first: a key.
    assert_eq!(word(&[("authorization", "Bearer abc.def.ghi")]), "key abc.def.ghi");
    assert_eq!(word(&[("authorization", "Bearer W10.e30.sig")]), "key W10.e30.sig");
    assert_eq!(word(&[("authorization", "Bearer e30.e30")]), "key e30.e30");
}

/// A10: what is no bearer credential is a bad one.
#[test]
fn what_is_no_bearer_credential_is_refused() {
    for header in
        ["Basic dXNlcjpwYXNz", "Bearer", "Bearer ", "Bearer a b", "Bearer a,b", "abc", "", "Bearer: abc"]
    {
        assert_eq!(word(&[("authorization", header)]), "invalid", "{header:?}");
    }
}

/// A10: two credentials are malformed, even if they are the same.
#[test]
fn two_credentials_are_malformed() {
    assert_eq!(word(&[("authorization", "Bearer a"), ("x-api-key", "a")]), "malformed");
    assert_eq!(word(&[("authorization", "Bearer a"), ("authorization", "Bearer a")]), "malformed");
    assert_eq!(word(&[("x-api-key", "a"), ("x-api-key", "a")]), "malformed");
}
