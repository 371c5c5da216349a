//! The protocol's revisions, oldest first, and the era each belongs to.

use std::fmt;

/// A dated revision of the protocol that this gateway speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    /// 2024-11-05: HTTP+SSE; here only answered in `initialize` over Streamable HTTP.
    V2024_11_05,
    /// 2025-03-26: Streamable HTTP, batches.
    V2025_03_26,
    /// 2025-06-18: structured output, elicitation, version header.
    V2025_06_18,
    /// 2025-11-25: polling streams with priming events, URL elicitation.
    V2025_11_25,
    /// 2026-07-28: no handshake, no sessions; each request stands alone.
    V2026_07_28,
}

/// How a request opens: with a session, or with all it needs in itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// `initialize` and sessions.
    Legacy,
    /// 2026-07-28 and later: each request stands alone.
    Modern,
}

/// A version text that names no revision served here.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("protocol version is not served here; served are {}", Revision::dates(&Revision::LEGACY))]
pub struct UnknownRevision;

// === impl Era ===

impl Era {
    /// The word in logs, metrics and traces.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }

    /// The era of a revision's date, known here or not: what is later than the newest legacy one is modern (V10).
    pub fn of_date(date: &[u8]) -> Self {
        let newest = Revision::LATEST_LEGACY.as_str().as_bytes();
        let same_kind =
            |(one, other): (&u8, &u8)| one == other || (one.is_ascii_digit() && other.is_ascii_digit());
        let is_date = date.len() == newest.len() && date.iter().zip(newest).all(same_kind);
        if is_date && date > newest { Self::Modern } else { Self::Legacy }
    }

    /// Whether a message's raw params may claim the modern era: a look that costs no reading. Some writers escape the
    /// slash of the key, and any letter can be written as `\u00..`.
    pub fn may_be_claimed_by(params: Option<&str>) -> bool {
        let holds = |part: &str| {
            params.is_some_and(|p| memchr::memmem::find(p.as_bytes(), part.as_bytes()).is_some())
        };
        holds("protocolVersion") || holds("\\u00")
    }
}

// === impl Revision ===

impl Revision {
    /// Those that begin with `initialize`, oldest first.
    pub const LEGACY: [Self; 4] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25];

    /// Those whose requests stand alone, oldest first: what `server/discover` and -32022 list (D7).
    pub const MODERN: [Self; 1] = [Self::V2026_07_28];

    /// The newest of the modern era: what servers of that era are spoken to in.
    pub const LATEST: Self = Self::V2026_07_28;

    /// The newest of the legacy era: what an unknown version in `initialize` is answered with (L2).
    pub const LATEST_LEGACY: Self = Self::V2025_11_25;

    /// What a caller without a session writes in that sends no version header (T34).
    pub const UNSAID: Self = Self::V2025_03_26;

    /// The revision of this date, of either era.
    ///
    /// # Errors
    /// [`UnknownRevision`] if it is none of them.
    pub fn parse(text: &str) -> Result<Self, UnknownRevision> {
        Self::legacy(text).or_else(|_| Self::modern(text).ok_or(UnknownRevision))
    }

    /// The legacy revision of this date: `initialize` and the version header of a session know no other (L2, T34).
    ///
    /// # Errors
    /// [`UnknownRevision`] if it is none of [`Revision::LEGACY`].
    pub fn legacy(text: &str) -> Result<Self, UnknownRevision> {
        Self::LEGACY.into_iter().find(|r| r.as_str() == text).ok_or(UnknownRevision)
    }

    /// The modern revision of this date, if it is one of [`Revision::MODERN`].
    pub fn modern(text: &str) -> Option<Self> {
        Self::MODERN.into_iter().find(|r| r.as_str() == text)
    }

    /// The era it belongs to.
    pub const fn era(self) -> Era {
        match self {
            Self::V2024_11_05 | Self::V2025_03_26 | Self::V2025_06_18 | Self::V2025_11_25 => Era::Legacy,
            Self::V2026_07_28 => Era::Modern,
        }
    }

    /// Its date, as it stands on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Whether streams begin with a priming event (T21).
    pub fn primes_streams(self) -> bool {
        self == Self::V2025_11_25
    }

    /// Whether an array of messages is legal (T19).
    pub fn allows_batches(self) -> bool {
        self == Self::V2025_03_26
    }

    /// The dates of some revisions, for messages to people.
    pub fn dates(revisions: &[Self]) -> String {
        revisions.iter().map(|r| r.as_str()).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E7, V10: a date behind the newest legacy one is modern, known or not; what is no date is nothing of the kind.
    #[test]
    fn a_later_date_is_of_the_modern_era() {
        for modern in ["2026-07-28", "2027-01-01", "2025-11-26", "9999-99-99"] {
            assert_eq!(Era::of_date(modern.as_bytes()), Era::Modern, "{modern}");
        }
        for legacy in ["2025-11-25", "1999-01-01", "", "2026/07/28", "2026-7-28", "2026-07-28 ", "tomorrow!!"]
        {
            assert_eq!(Era::of_date(legacy.as_bytes()), Era::Legacy, "{legacy}");
        }
    }

    /// A claim is seen however its key is spelled; most bodies are not looked at any closer.
    #[test]
    fn a_claim_may_be_spelled_with_escapes() {
        let claims = |params: &str| Era::may_be_claimed_by(Some(params));
        assert!(claims(r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"x"}}"#));
        assert!(claims(r#"{"_meta":{"io.modelcontextprotocol\/protocolVersion":"x"}}"#));
        assert!(claims(r#"{"_meta":{"io.modelcontextprotocol/\u0070rotocolVersion":"x"}}"#));
        assert!(!claims(r#"{"name":"echo","arguments":{"text":"\u6587"}}"#));
        assert!(!Era::may_be_claimed_by(None));
    }

    #[test]
    fn every_revision_is_read_back_from_its_date() {
        for revision in Revision::LEGACY.into_iter().chain(Revision::MODERN) {
            assert_eq!(Revision::parse(revision.as_str()), Ok(revision));
        }
        assert_eq!(Revision::legacy("2026-07-28"), Err(UnknownRevision));
        assert_eq!(Revision::parse("2025/11/25"), Err(UnknownRevision));
    }
}
