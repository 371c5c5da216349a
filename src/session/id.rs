//! The session id: minted here only, unguessable, and nothing but a name to everyone else.

use std::fmt;

use http::HeaderValue;

use crate::telemetry::logs::short_hash;

/// The longest id that may name a session (anything longer is malformed).
const LONGEST: usize = 256;

/// An `Mcp-Session-Id`. It is a credential of a kind: `Debug` shows a short hash only.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SessionId(HeaderValue);

/// The header's value cannot be a session id at all: 400, not 404.
#[derive(Debug, thiserror::Error)]
#[error("Mcp-Session-Id must be 1 to {LONGEST} visible ASCII characters without comma or space, sent once")]
pub struct MalformedSessionId;

// === impl SessionId ===

impl SessionId {
    /// A new one: uuid v4, 122 random bits.
    pub fn mint() -> Self {
        let mut buffer = uuid::Uuid::encode_buffer();
        let text: &str = uuid::Uuid::new_v4().hyphenated().encode_lower(&mut buffer);
        // Hexadecimal digits and hyphens are a legal header value.
        Self(HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static("")))
    }

    /// Reads a caller's header (T29: bytes 0x21 to 0x7E).
    ///
    /// # Errors
    /// [`MalformedSessionId`]
    pub fn parse(value: &HeaderValue) -> Result<Self, MalformedSessionId> {
        let bytes = value.as_bytes();
        let legal = |b: &u8| matches!(b, 0x21..=0x7E) && *b != b',';
        if bytes.is_empty() || bytes.len() > LONGEST || !bytes.iter().all(legal) {
            return Err(MalformedSessionId);
        }
        Ok(Self(value.clone()))
    }

    /// The value for the response header.
    pub fn header(&self) -> HeaderValue {
        self.0.clone()
    }

    /// Its bytes, for what is derived from it.
    pub(super) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Eight hexadecimal digits that stand for it in logs.
    pub fn short_hash(&self) -> String {
        // An id is visible ASCII, so it always is text.
        short_hash(self.0.to_str().unwrap_or_default())
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionId({})", self.short_hash())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// case-A05: ids are visible ASCII and hold at least 122 random bits.
    #[test]
    fn minted_ids_are_legal_and_differ() {
        let (a, b) = (SessionId::mint(), SessionId::mint());
        assert_ne!(a, b);
        assert!(SessionId::parse(&a.header()).is_ok());
    }

    /// case-E11: comma, space, length and other bytes make an id malformed.
    #[test]
    fn malformed_ids_are_refused() {
        for bad in ["", "a b", "a,b", "a\tb", &"x".repeat(257)] {
            let value = HeaderValue::from_str(bad).expect("a header value");
            assert!(SessionId::parse(&value).is_err(), "{bad:?}");
        }
        let latin = HeaderValue::from_bytes(b"\xe4").expect("a header value");
        assert!(SessionId::parse(&latin).is_err());
        assert!(SessionId::parse(&HeaderValue::from_static("attacker-chosen")).is_ok());
    }

    #[test]
    fn debug_hides_the_id() {
        let id = SessionId::parse(&HeaderValue::from_static("secret-id")).expect("legal");
        assert!(!format!("{id:?}").contains("secret"));
    }
}
