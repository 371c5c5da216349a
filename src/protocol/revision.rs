//! The protocol's revisions, oldest first, and the era each belongs to.

use std::fmt;

use super::object::Object;

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
}

/// How a request opens: with a session, or with all it needs in itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// `initialize` and sessions.
    Legacy,
    /// 2026-07-28 and later: each request stands alone.
    Modern,
}

/// The member of `params._meta` by which a request claims the modern era (E7, M1).
const CLAIM: &str = "io.modelcontextprotocol/protocolVersion";

/// A version text that names no revision served here.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("protocol version is not served here; served are {}", Revision::served())]
pub struct UnknownRevision;

// === impl Era ===

impl Era {
    /// The era that a request's raw params claim: the body decides, not a header (D14).
    pub fn claimed_by(params: Option<&str>) -> Self {
        let Some(params) = params.filter(|p| memchr::memmem::find(p.as_bytes(), CLAIM.as_bytes()).is_some())
        else {
            return Self::Legacy;
        };
        let claims = Object::parse(params).ok().and_then(|p| Object::parse(p.get("_meta")?).ok()?.get(CLAIM));
        if claims.is_some() { Self::Modern } else { Self::Legacy }
    }
}

// === impl Revision ===

impl Revision {
    /// All of them, oldest first.
    pub const ALL: [Self; 4] = [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25];

    /// The newest of the legacy era: what an unknown version in `initialize` is answered with (L2).
    pub const LATEST_LEGACY: Self = Self::V2025_11_25;

    /// The revision of this date.
    ///
    /// # Errors
    /// [`UnknownRevision`] if it is none of [`Revision::ALL`].
    pub fn parse(text: &str) -> Result<Self, UnknownRevision> {
        Self::ALL.into_iter().find(|r| r.as_str() == text).ok_or(UnknownRevision)
    }

    /// Its date, as it stands on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
        }
    }

    /// Whether streams begin with a priming event (T21).
    pub fn primes_streams(self) -> bool {
        self >= Self::V2025_11_25
    }

    /// Whether an array of messages is legal (T19).
    pub fn allows_batches(self) -> bool {
        self == Self::V2025_03_26
    }

    /// The dates of all revisions, for messages to people.
    pub fn served() -> String {
        Self::ALL.map(Self::as_str).join(", ")
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

    #[test]
    fn every_revision_is_read_back_from_its_date() {
        for revision in Revision::ALL {
            assert_eq!(Revision::parse(revision.as_str()), Ok(revision));
        }
        assert_eq!(Revision::parse("2025/11/25"), Err(UnknownRevision));
    }
}
