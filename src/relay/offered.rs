//! What servers declare of themselves, merged into what the gateway does, for callers of both eras (G1, G17).

use crate::catalog::{Endpoint, Naming};
use crate::protocol::listen::{ListType, Lists};
use crate::protocol::object::Object;
use crate::upstream::Introduction;

/// The longest instructions given to a caller, characters.
const MOST_INSTRUCTIONS: usize = 16_384;

/// What one server, or any of several, offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Offered {
    /// Tools, prompts and resources: those that it has.
    pub(super) has: Lists,
    /// Those of them of whose changes it tells.
    pub(super) tells: Lists,
    /// Whether it tells of updates of single resources.
    pub(super) subscribe: bool,
    pub(super) logging: bool,
    pub(super) completions: bool,
}

// === impl Offered ===

impl Offered {
    /// What a server may turn out to offer of which nothing is known.
    pub(super) const ANYTHING: Self =
        Self { has: Lists::ALL, tells: Lists::ALL, subscribe: true, logging: true, completions: true };

    /// What a server said.
    pub(super) fn by(introduction: &Introduction) -> Self {
        let Ok(all) = Object::parse(&introduction.capabilities) else { return Self::default() };
        let mut offered = Self {
            logging: all.get("logging").is_some(),
            completions: all.get("completions").is_some(),
            ..Self::default()
        };
        for list in ListType::ALL {
            let Some(raw) = all.get(list.capability()) else { continue };
            offered.has = offered.has.with(list);
            let Ok(own) = Object::parse(raw) else { continue };
            if own.get("listChanged") == Some("true") {
                offered.tells = offered.tells.with(list);
            }
            offered.subscribe |= list == ListType::Resources && own.get("subscribe") == Some("true");
        }
        offered
    }

    /// What either offers.
    #[must_use]
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            has: self.has.or(other.has),
            tells: self.tells.or(other.tells),
            subscribe: self.subscribe || other.subscribe,
            logging: self.logging || other.logging,
            completions: self.completions || other.completions,
        }
    }

    /// The same of a server that cannot tell of anything by itself.
    #[must_use]
    pub(super) fn untold(self) -> Self {
        Self { tells: Lists::default(), subscribe: false, ..self }
    }

    /// The same as a raw capabilities object, with `more` members.
    pub(super) fn written(self, more: Vec<String>) -> String {
        let mut members = more;
        if self.logging {
            members.push(r#""logging":{}"#.to_owned());
        }
        if self.completions {
            members.push(r#""completions":{}"#.to_owned());
        }
        for list in [ListType::Prompts, ListType::Resources, ListType::Tools] {
            if !self.has.has(list) {
                continue;
            }
            let mut own = Vec::with_capacity(2);
            if self.subscribe && list == ListType::Resources {
                own.push(r#""subscribe":true"#);
            }
            if self.tells.has(list) {
                own.push(r#""listChanged":true"#);
            }
            members.push(format!(r#""{}":{{{}}}"#, list.capability(), own.join(",")));
        }
        format!("{{{}}}", members.join(","))
    }
}

/// What the servers say of how to use them, each under its name (G17).
pub(super) fn instructions<'a>(
    endpoint: &Endpoint,
    known: impl Iterator<Item = (&'a str, &'a Introduction)>,
) -> Option<String> {
    let mut all = String::new();
    for (server, introduction) in known {
        let Some(text) = introduction.instructions.as_deref().filter(|t| !t.is_empty()) else { continue };
        if endpoint.naming == Naming::Bare {
            all.push_str(text);
            continue;
        }
        if all.is_empty() {
            all.push_str("Several servers are reached here; names inside their own instructions lack the prefix that tools have here.");
        }
        all.push_str("\n\n## ");
        all.push_str(server);
        all.push('\n');
        all.push_str(text);
    }
    if all.chars().count() > MOST_INSTRUCTIONS {
        all = all.chars().take(MOST_INSTRUCTIONS).collect();
        all.push('…');
    }
    (!all.is_empty()).then_some(all)
}
