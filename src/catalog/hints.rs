//! How long a list may be kept, and by whom: what modern servers say of it (K1 to K4), and what is said to callers.

use std::time::Duration;

use crate::protocol::object::Object;

/// The longest time that a server is believed to know its list for.
pub const MOST: Duration = Duration::from_hours(24);

/// Who may be given what was kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Anyone.
    Public,
    /// Only who was given it before. Links to servers carry the gateway's own credential, so towards a server this
    /// means everyone who comes through the same one (K2, D10).
    #[default]
    Private,
}

/// How long a list may be kept, and by whom; by default not at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// How long.
    pub ttl: Duration,
    /// By whom.
    pub scope: Scope,
}

// === impl Hints ===

impl Hints {
    /// Those of a list that stays as it is for this long and is the same for all.
    pub const fn public(ttl: Duration) -> Self {
        Self { ttl, scope: Scope::Public }
    }

    /// What one raw page of a list says: without a word it is not kept (K4).
    pub fn of(page: &Object<'_>) -> Self {
        // A negative number, or none at all, is no number here.
        let ttl = page.get("ttlMs").and_then(|raw| raw.parse().ok()).map(Duration::from_millis);
        let scope =
            if page.text("cacheScope").as_deref() == Some("public") { Scope::Public } else { Scope::Private };
        Self { ttl: ttl.unwrap_or_default().min(MOST), scope }
    }

    /// What holds for two parts together: the shorter time, and private if either is (K3, K6).
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let scope = if self.scope == other.scope { self.scope } else { Scope::Private };
        Self { ttl: self.ttl.min(other.ttl), scope }
    }

    /// The same after some time.
    #[must_use]
    pub fn after(self, age: Duration) -> Self {
        Self { ttl: self.ttl.saturating_sub(age), ..self }
    }
}

// === impl Scope ===

impl Scope {
    /// The word in results.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Private => "private",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(page: &str) -> Hints {
        Hints::of(&Object::parse(page).unwrap())
    }

    /// K4: what is negative or absent is 0.
    #[test]
    fn a_page_says_how_long_and_by_whom() {
        let minute = Duration::from_mins(1);
        assert_eq!(of(r#"{"ttlMs":60000,"cacheScope":"public"}"#), Hints::public(minute));
        assert_eq!(of(r#"{"ttlMs":-1,"cacheScope":"everyone"}"#), Hints::default());
        assert_eq!(of("{}"), Hints::default());
        assert_eq!(of(r#"{"ttlMs":18446744073709551615}"#).ttl, MOST);
    }

    /// K3, K6: of several pages or servers the most careful one counts.
    #[test]
    fn parts_together_are_as_careful_as_the_most_careful() {
        let (one, other) = (of(r#"{"ttlMs":5,"cacheScope":"public"}"#), of(r#"{"ttlMs":9}"#));
        assert_eq!(one.and(other), Hints { ttl: Duration::from_millis(5), scope: Scope::Private });
        assert_eq!(one.and(one), one);
    }
}
