//! What a refused caller is told.

use super::super::refusal::{BAD_SIGNATURE, EXPIRED, MALFORMED, MISSING, WRONG_AUDIENCE};
use super::*;

const METADATA: &str = "https://gw.example/.well-known/oauth-protected-resource/a/mcp";

/// case-F03: the address is the configured one, whatever the request said.
#[test]
fn a_caller_without_a_token_learns_where_to_get_one() {
    assert_eq!(
        www_authenticate(&MISSING, Some(METADATA), Some("mcp:call")),
        r#"Bearer resource_metadata="https://gw.example/.well-known/oauth-protected-resource/a/mcp", scope="mcp:call""#
    );
}

#[test]
fn a_bad_token_is_named_as_such() {
    for refusal in [BAD_SIGNATURE, EXPIRED, WRONG_AUDIENCE] {
        let challenge = www_authenticate(&refusal, Some(METADATA), None);
        let challenge = challenge.to_str().unwrap();
        assert!(
            challenge.contains(r#", error="invalid_token", error_description="The token"#),
            "{challenge}"
        );
    }
    let challenge = www_authenticate(&MALFORMED, Some(METADATA), None);
    assert!(challenge.to_str().unwrap().contains(r#"error="invalid_request""#), "{challenge:?}");
}

#[test]
fn what_is_lacking_is_said() {
    let challenge =
        www_authenticate(&Refusal::INSUFFICIENT_SCOPE, Some(METADATA), Some("mcp:admin mcp:call"));
    let challenge = challenge.to_str().unwrap();
    assert!(challenge.contains(r#"scope="mcp:admin mcp:call", error="insufficient_scope""#), "{challenge}");
}

#[test]
fn where_tokens_are_no_way_in_there_is_no_metadata() {
    assert_eq!(www_authenticate(&MISSING, None, None), "Bearer");
}

#[test]
fn no_value_breaks_out_of_its_quotes() {
    let challenge = www_authenticate(&MISSING, None, Some("a\", error=\"x\r\n\\"));
    assert_eq!(challenge, r#"Bearer scope="a, error=x""#);
}
