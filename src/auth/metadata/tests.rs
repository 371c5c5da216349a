//! Addresses of endpoints and of their documents.

use super::*;

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

/// case-F03: both addresses come from the public URL.
#[test]
fn addresses_are_made_from_the_public_url() {
    for public in ["https://gw.example/a", "https://GW.example:443/a/"] {
        assert_eq!(resource_url(&url(public), "/mcp"), "https://gw.example/a/mcp");
        assert_eq!(
            metadata_url(&url(public), "/mcp"),
            "https://gw.example/.well-known/oauth-protected-resource/a/mcp"
        );
    }
    assert_eq!(
        resource_url(&url("https://gw.example"), "/servers/git/mcp"),
        "https://gw.example/servers/git/mcp"
    );
}

/// case-F03: without a public URL it is the listener's own address.
#[test]
fn without_a_public_url_the_listener_s_address_is_used() {
    let own = public_url(None, "127.0.0.1:8080".parse().unwrap());
    assert_eq!(resource_url(&own, "/mcp"), "http://127.0.0.1:8080/mcp");
    let own = public_url(None, "[::1]:8080".parse().unwrap());
    assert_eq!(metadata_url(&own, "/mcp"), "http://[::1]:8080/.well-known/oauth-protected-resource/mcp");
    let public = public_url(Some(&url("https://gw.example/a")), "127.0.0.1:8080".parse().unwrap());
    assert_eq!(resource_url(&public, "/mcp"), "https://gw.example/a/mcp");
}

/// case-F01: the root form and the path form are both served, the latter with the public path or without it.
#[test]
fn every_form_of_the_address_leads_to_its_endpoint() {
    let public = url("https://gw.example/a");
    for (suffix, endpoint) in [
        ("", "/mcp"),
        ("/", "/mcp"),
        ("/mcp", "/mcp"),
        ("/mcp/", "/mcp"),
        ("/a/mcp", "/mcp"),
        ("/a/servers/git/mcp", "/servers/git/mcp"),
        ("/servers/git/mcp", "/servers/git/mcp"),
        ("/research/mcp", "/research/mcp"),
        ("/a/research/mcp", "/research/mcp"),
    ] {
        let path = format!("/.well-known/oauth-protected-resource{suffix}");
        assert_eq!(endpoint_of(&path, Some(&public)), Some(endpoint), "{path}");
    }
    assert_eq!(endpoint_of("/.well-known/oauth-protected-resource/t1/mcp", None), Some("/t1/mcp"));
}

/// case-F01: what is no form of an endpoint is not found.
#[test]
fn other_suffixes_are_none() {
    let public = url("https://gw.example/a");
    for path in [
        "/.well-known/oauth-protected-resource/a",
        "/.well-known/oauth-protected-resource/nope",
        "/.well-known/oauth-protected-resource/amcp",
        "/.well-known/oauth-protected-resourcemcp",
        "/.well-known/oauth-protected-resource//mcp",
        "/.well-known/oauth-protected-resource/a//mcp",
        "/.well-known/oauth-protected-resource/a/b/c/mcp",
        "/.well-known/oauth-authorization-server",
        "/mcp",
    ] {
        assert_eq!(endpoint_of(path, Some(&public)), None, "{path}");
    }
}

/// case-F01: the document names exactly what callers type.
#[test]
fn the_document_says_whose_tokens_are_accepted() {
    let document = document("https://gw.example/t1/mcp", &["https://idp.example"], &[]);
    assert_eq!(
        document,
        r#"{"resource":"https://gw.example/t1/mcp","authorization_servers":["https://idp.example"],"bearer_methods_supported":["header"]}"#
    );
    let scoped = super::document("https://gw.example/mcp", &["https://idp.example"], &["mcp:call"]);
    assert!(std::str::from_utf8(&scoped).unwrap().contains(r#""scopes_supported":["mcp:call"]"#));
}
