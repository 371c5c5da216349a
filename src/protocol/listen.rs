//! What `subscriptions/listen` asks for, and what its acknowledgement grants (N1, N2).

use std::collections::BTreeSet;
use std::sync::Arc;

use super::method::Method;
use super::object::{Object, items, quoted, text};

/// A list whose changes can be told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ListType {
    /// `tools/list`
    Tools,
    /// `prompts/list`
    Prompts,
    /// `resources/list` and `resources/templates/list`
    Resources,
}

/// Some of the lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lists(u8);

/// What a listen asks for, or is granted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Lists whose changes are told.
    pub lists: Lists,
    /// Resources whose updates are told.
    pub uris: BTreeSet<Arc<str>>,
}

/// What a listen must hold to, besides being well formed: over it, it is refused before anything is done for it.
pub mod bounds {
    /// How many resources one listen may name.
    pub const URIS: usize = 1000;
    /// The longest URI of them, bytes.
    pub const URI: usize = 8192;
}

// === impl ListType ===

impl ListType {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Tools, Self::Prompts, Self::Resources];

    /// The member of `notifications` that asks for it.
    pub const fn member(self) -> &'static str {
        match self {
            Self::Tools => "toolsListChanged",
            Self::Prompts => "promptsListChanged",
            Self::Resources => "resourcesListChanged",
        }
    }

    /// The server capability whose `listChanged` offers it.
    pub const fn capability(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
        }
    }

    /// The notification that tells of it.
    pub const fn notification(self) -> Method {
        match self {
            Self::Tools => Method::ToolsListChanged,
            Self::Prompts => Method::PromptsListChanged,
            Self::Resources => Method::ResourcesListChanged,
        }
    }
}

// === impl Lists ===

impl Lists {
    /// All of them.
    pub const ALL: Self = Self(0b111);

    /// Whether `list` is one of them.
    pub const fn has(self, list: ListType) -> bool {
        self.0 & (1 << list as u8) != 0
    }

    /// These and one more.
    #[must_use]
    pub const fn with(self, list: ListType) -> Self {
        Self(self.0 | (1 << list as u8))
    }

    /// Those in either.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those in both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether there are none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = ListType> {
        ListType::ALL.into_iter().filter(move |list| self.has(*list))
    }
}

// === impl Filter ===

impl Filter {
    /// Reads the raw `notifications` of a caller's listen, which must hold to the [`bounds`].
    ///
    /// # Errors
    /// What is wrong with it, for a person.
    pub fn asked(raw: &str) -> Result<Self, String> {
        let filter = Self::parse(raw)?;
        if filter.uris.len() > bounds::URIS || filter.uris.iter().any(|uri| uri.len() > bounds::URI) {
            return Err(too_many());
        }
        Ok(filter)
    }

    /// Reads the raw `notifications` of a listen or of an acknowledgement; members that are not known are passed over.
    ///
    /// # Errors
    /// What is wrong with it, for a person.
    pub fn parse(raw: &str) -> Result<Self, String> {
        let all = Object::parse(raw).map_err(|e| format!("`notifications` cannot be read: {e}"))?;
        let mut filter = Self::default();
        for list in ListType::ALL {
            match all.get(list.member()) {
                Some("true") => filter.lists = filter.lists.with(list),
                None | Some("false" | "null") => {}
                Some(_) => return Err(format!("`notifications.{}` must be true or false", list.member())),
            }
        }
        let Some(raw) = all.get("resourceSubscriptions").filter(|raw| *raw != "null") else {
            return Ok(filter);
        };
        let not_uris = || "`notifications.resourceSubscriptions` must be an array of URIs".to_owned();
        let uris = items(raw).ok_or_else(not_uris)?;
        for raw in uris {
            filter.uris.insert(text(raw).ok_or_else(not_uris)?.into());
        }
        Ok(filter)
    }

    /// The same as a raw object; what is not in it is left out.
    pub fn written(&self) -> String {
        let mut members: Vec<String> =
            self.lists.iter().map(|list| format!(r#""{}":true"#, list.member())).collect();
        if !self.uris.is_empty() {
            let uris: Vec<String> = self.uris.iter().map(|uri| quoted(uri)).collect();
            members.push(format!(r#""resourceSubscriptions":[{}]"#, uris.join(",")));
        }
        format!("{{{}}}", members.join(","))
    }

    /// What is in both.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let uris = self.uris.intersection(&other.uris).cloned().collect();
        Self { lists: self.lists.and(other.lists), uris }
    }

    /// What is in either.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        Self { lists: self.lists.or(other.lists), uris: &self.uris | &other.uris }
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty() && self.uris.is_empty()
    }
}

fn too_many() -> String {
    let (uris, uri) = (bounds::URIS, bounds::URI);
    format!("a listen may name at most {uris} resources, by URIs of at most {uri} bytes each")
}

/// Whether a resource is the one of the URI `subscribed`, or one below it (N7).
pub fn is_within(uri: &str, subscribed: &str) -> bool {
    let Some(rest) = uri.strip_prefix(subscribed) else { return false };
    rest.is_empty() || subscribed.ends_with('/') || rest.starts_with(['/', '?', '#'])
}

#[cfg(test)]
mod tests;
