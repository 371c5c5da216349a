//! Protected resource metadata (RFC 9728): the document of an endpoint, its address, and the way back.
//!
//! An endpoint has a path on the listener, such as `/mcp` or `/servers/git/mcp`. Callers type it after the
//! public URL, which may have a path of its own: `https://gw.example/a` and `/mcp` make the resource
//! `https://gw.example/a/mcp`, whose metadata is at `https://gw.example/.well-known/oauth-protected-resource/a/mcp`.
//! Nothing here reads a header of a request (case-F03).

use std::net::SocketAddr;

use bytes::Bytes;
use serde::Serialize;
use url::Url;

/// Where all metadata documents are; the root form is that of `/mcp`.
pub const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The endpoint that the root form of the document is about.
const ROOT_ENDPOINT: &str = "/mcp";

#[derive(Serialize)]
struct Document<'a> {
    resource: &'a str,
    authorization_servers: &'a [&'a str],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    scopes_supported: &'a [&'a str],
    bearer_methods_supported: [&'static str; 1],
}

/// What callers type before the path of an endpoint: the configured URL, else the listener's own address.
pub fn public_url(configured: Option<&Url>, listen: SocketAddr) -> Url {
    configured.cloned().unwrap_or_else(|| {
        Url::parse(&format!("http://{listen}")).expect("an IP address and a port are a URL's authority")
    })
}

/// The resource of an endpoint: exactly what callers type, without a trailing slash (A8).
pub fn resource_url(public_url: &Url, endpoint: &str) -> String {
    format!("{}{}{endpoint}", public_url.origin().ascii_serialization(), prefix(public_url))
}

/// The address of an endpoint's document, the path form (A5).
pub fn metadata_url(public_url: &Url, endpoint: &str) -> String {
    format!("{}{WELL_KNOWN}{}{endpoint}", public_url.origin().ascii_serialization(), prefix(public_url))
}

/// The document of an endpoint. `issuers` has at least one (A3); without any there is no document.
pub fn document(resource_url: &str, issuers: &[&str], scopes: &[&str]) -> Bytes {
    let document = Document {
        resource: resource_url,
        authorization_servers: issuers,
        scopes_supported: scopes,
        bearer_methods_supported: ["header"],
    };
    serde_json::to_vec(&document).expect("texts and lists of texts are JSON").into()
}

/// The endpoint whose document is asked for at `path`, or `None` if it is no well-known path or no form of one.
/// Whether there is such an endpoint, the router knows.
///
/// Proxies hand the public URL's path on or strip it: both are understood. If an endpoint has the name of that
/// path, the path form of the public URL wins, as that is what the challenge says.
pub fn endpoint_of<'a>(path: &'a str, public_url: Option<&Url>) -> Option<&'a str> {
    let suffix = path.strip_prefix(WELL_KNOWN)?;
    let suffix = suffix.strip_suffix('/').unwrap_or(suffix);
    if suffix.is_empty() {
        return Some(ROOT_ENDPOINT);
    }
    let stripped =
        public_url.and_then(|url| suffix.strip_prefix(prefix(url))).filter(|rest| is_endpoint(rest));
    stripped.or_else(|| Some(suffix).filter(|suffix| is_endpoint(suffix)))
}

/// `/mcp`, `/{endpoint}/mcp` or `/servers/{server}/mcp`.
fn is_endpoint(path: &str) -> bool {
    let Some(parents) = path.strip_suffix("/mcp") else { return false };
    let mut parts = parents.split('/');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(""), None, None, None) => true,
        (Some(""), Some(name), None, None) => !name.is_empty(),
        (Some(""), Some("servers"), Some(name), None) => !name.is_empty(),
        _ => false,
    }
}

/// The public URL's own path, without a trailing slash.
fn prefix(public_url: &Url) -> &str {
    public_url.path().trim_end_matches('/')
}

#[cfg(test)]
mod tests;
