//! Which browser origins may call (T2, T3).

use http::HeaderMap;
use http::header::ORIGIN;
use url::Url;

use crate::auth::Reach;
use crate::settings::Settings;

/// The origins that may call.
#[derive(Debug)]
pub(super) struct Origins {
    allowed: Vec<String>,
    /// Pages served from this machine, when only this machine can reach the gateway.
    loopback: bool,
}

/// What the `Origin` header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// There is none: no browser's request across origins.
    Absent,
    /// It may call.
    Allowed,
    /// It may not.
    Refused,
}

// === impl Origins ===

impl Origins {
    pub(super) fn new(settings: &Settings, reach: Reach) -> Self {
        let configured = settings.origins.iter().map(|o| o.trim_end_matches('/').to_ascii_lowercase());
        let own = settings.public_url.iter().map(|url| url.origin().ascii_serialization());
        Self { allowed: configured.chain(own).collect(), loopback: reach == Reach::Loopback }
    }

    pub(super) fn judge(&self, headers: &HeaderMap) -> Verdict {
        let mut lines = headers.get_all(ORIGIN).iter();
        let Some(origin) = lines.next() else { return Verdict::Absent };
        let origin = origin.to_str().unwrap_or_default();
        let allowed =
            lines.next().is_none() && (self.is_listed(origin) || (self.loopback && is_loopback(origin)));
        if allowed { Verdict::Allowed } else { Verdict::Refused }
    }

    fn is_listed(&self, origin: &str) -> bool {
        self.allowed.iter().any(|o| o.eq_ignore_ascii_case(origin))
    }
}

fn is_loopback(origin: &str) -> bool {
    let Ok(url) = Url::parse(origin) else { return false };
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn judge(settings: &Settings, reach: Reach, origin: &'static str) -> Verdict {
        let mut headers = HeaderMap::new();
        headers.insert(ORIGIN, HeaderValue::from_static(origin));
        Origins::new(settings, reach).judge(&headers)
    }

    #[test]
    fn pages_of_this_machine_may_call_a_loopback_gateway_only() {
        let settings = Settings::default();
        for origin in ["http://localhost:3000", "http://127.0.0.1:8080", "http://[::1]:1"] {
            assert_eq!(judge(&settings, Reach::Loopback, origin), Verdict::Allowed, "{origin}");
            assert_eq!(judge(&settings, Reach::Network, origin), Verdict::Refused, "{origin}");
        }
        for origin in
            ["http://evil.example", "http://localhost.evil.example", "null", "http://127.0.0.1.evil.example"]
        {
            assert_eq!(judge(&settings, Reach::Loopback, origin), Verdict::Refused, "{origin}");
        }
    }

    #[test]
    fn listed_origins_may_call() {
        let settings = Settings { origins: vec!["https://app.example.com/".into()], ..Settings::default() };
        assert_eq!(judge(&settings, Reach::Network, "https://app.example.com"), Verdict::Allowed);
        assert_eq!(judge(&settings, Reach::Network, "https://app.example.com:444"), Verdict::Refused);
    }
}
