//! The cookies a server sets: kept for its own origin, so that a load balancer before it finds the replica again.

use std::sync::Mutex;

use arc_swap::ArcSwapOption;
use http::header::{HeaderMap, HeaderValue, SET_COOKIE};

use crate::store::lock;

/// More cookies than this are not kept.
const MOST: usize = 32;
/// A longer cookie is not kept, bytes.
const LONGEST: usize = 4096;

/// The cookies of one link. Paths, domains and expiry dates are not looked at: they live no longer than the link.
#[derive(Default)]
pub(super) struct Cookies {
    kept: Mutex<Vec<(String, String)>>,
    header: ArcSwapOption<HeaderValue>,
}

// === impl Cookies ===

impl Cookies {
    /// The `Cookie` header of the next request.
    pub(super) fn header(&self) -> Option<HeaderValue> {
        self.header.load().as_deref().cloned()
    }

    /// Takes what a response sets.
    pub(super) fn keep(&self, headers: &HeaderMap) {
        if !headers.contains_key(SET_COOKIE) {
            return;
        }
        let mut kept = lock(&self.kept);
        for cookie in headers.get_all(SET_COOKIE).iter().filter_map(|cookie| cookie.to_str().ok()) {
            let mut parts = cookie.split(';').map(str::trim);
            let Some((name, value)) = parts.next().and_then(|pair| pair.split_once('=')) else { continue };
            kept.retain(|(other, _)| other != name);
            let gone = parts.any(|attribute| attribute.eq_ignore_ascii_case("max-age=0"));
            if !gone && !name.is_empty() && kept.len() < MOST && name.len() + value.len() <= LONGEST {
                kept.push((name.to_owned(), value.to_owned()));
            }
        }
        let text = kept.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("; ");
        let header = HeaderValue::from_str(&text).ok().filter(|_| !kept.is_empty()).map(|mut header| {
            header.set_sensitive(true);
            header.into()
        });
        self.header.store(header);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(set: &[&'static str]) -> Option<String> {
        let cookies = Cookies::default();
        for cookie in set {
            cookies.keep(&HeaderMap::from_iter([(SET_COOKIE, HeaderValue::from_static(cookie))]));
        }
        cookies.header().map(|header| header.to_str().unwrap().to_owned())
    }

    #[test]
    fn cookies_are_sent_back_replaced_and_taken_away() {
        assert_eq!(after(&[]), None);
        assert_eq!(after(&["a=1; Path=/; HttpOnly", "b=x=y"]).unwrap(), "a=1; b=x=y");
        assert_eq!(after(&["a=1", "b=2", "a=3"]).unwrap(), "b=2; a=3");
        assert_eq!(after(&["a=1", "a=; Max-Age=0"]), None);
        assert_eq!(after(&["nonsense", "=x"]), None);
    }

    #[test]
    fn their_number_is_bounded() {
        let cookies = Cookies::default();
        for n in 0..MOST + 5 {
            let header = HeaderValue::from_str(&format!("c{n}=1")).unwrap();
            cookies.keep(&HeaderMap::from_iter([(SET_COOKIE, header)]));
        }
        assert_eq!(cookies.header().unwrap().to_str().unwrap().split("; ").count(), MOST);
    }
}
