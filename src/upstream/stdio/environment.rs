//! The environment of a child: an allow-list and what its settings name, never the gateway's own secrets.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use secrecy::{ExposeSecret, SecretString};

/// What programs need to find their way, their language, the network and its certificates.
const ALLOWED: [&str; 16] = [
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "TMPDIR",
    "TZ",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "LANGUAGE",
];

/// The variables of a child: what of `ours` is allowed, then `configured`, which wins (case-C11).
pub(super) fn of(
    ours: impl IntoIterator<Item = (OsString, OsString)>,
    configured: &BTreeMap<String, SecretString>,
) -> BTreeMap<OsString, OsString> {
    let allowed = ours.into_iter().filter(|(name, _)| is_allowed(name));
    let named = configured.iter().map(|(name, value)| (name.into(), value.expose_secret().into()));
    allowed.chain(named).collect()
}

fn is_allowed(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| ALLOWED.contains(&name) || name.starts_with("LC_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// case-C11: a child sees the allow-list and what is configured for it, nothing else.
    #[test]
    fn secrets_of_the_gateway_stay_with_it() {
        let ours =
            [("PATH", "/bin"), ("LC_ALL", "C"), ("LANG", "de"), ("REDIS_URL", "x"), ("MCPGATE_KEY", "x")];
        let configured = BTreeMap::from([
            ("LANG".to_owned(), SecretString::from("en")),
            ("TOKEN".to_owned(), SecretString::from("t")),
        ]);
        let child = of(ours.map(|(n, v)| (n.into(), v.into())), &configured);
        let expected = [("LANG", "en"), ("LC_ALL", "C"), ("PATH", "/bin"), ("TOKEN", "t")];
        assert_eq!(child, expected.map(|(n, v)| (n.into(), v.into())).into());
    }
}
