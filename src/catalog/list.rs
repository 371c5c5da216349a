//! What one server lists of one kind: its items as it wrote them, malformed ones left out.
//!
//! It holds nothing of the config: names and filters are the view's, so a kept list outlives a change of them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use super::hints::Hints;
use super::kind::Kind;
use crate::protocol::envelope::Span;
use crate::protocol::object::{Object, items, quoted, text};
use crate::protocol::param_header::{Annotation, annotations};
use crate::protocol::revision::{Era, Revision};
use crate::protocol::translate;

/// One item of a server's list.
#[derive(Clone, Debug)]
pub struct Item {
    /// What the server calls it: a name, URI or URI template.
    pub own: Box<str>,
    /// The item as the server wrote it.
    pub raw: Box<str>,
    /// Where its name stands in `raw`, quotes included.
    pub key: Span,
}

/// What one server lists of one kind, in its order.
#[derive(Clone, Debug)]
pub struct List {
    /// The items that can be offered.
    pub items: Vec<Item>,
    /// How many were malformed and left out (case-G15).
    pub quarantined: usize,
    /// Tells contents apart.
    pub digest: u64,
    /// What its server said of keeping it, when this was read.
    pub hints: Option<Hints>,
    /// Of tools that want arguments mirrored in headers, by their own names, which (T48).
    pub annotated: HashMap<Box<str>, Arc<[Annotation]>>,
}

/// A list result that cannot be read at all.
#[derive(Debug, thiserror::Error)]
#[error("its {member} list cannot be read: {why}")]
pub struct UnreadableList {
    member: &'static str,
    why: String,
}

/// Reads pages of a list as they come.
#[derive(Debug)]
pub struct ListReader<'a> {
    kind: Kind,
    server: &'a str,
    list: List,
    seen: HashMap<Box<str>, usize>,
    /// The server's era and its callers' revision, where items are to be written anew.
    translation: Option<(Era, Revision)>,
    unfollowable: Unfollowable,
}

/// What becomes of a tool that wants arguments mirrored in headers against the rules (T49).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unfollowable {
    /// It is offered; its server sees no headers.
    Offered,
    /// It is left out: its server would refuse each call.
    LeftOut,
}

// === impl List ===

impl List {
    /// The arguments that the tool `own` wants mirrored in headers.
    pub fn annotations(&self, own: &str) -> Option<&Arc<[Annotation]>> {
        self.annotated.get(own)
    }
}

// === impl ListReader ===

impl<'a> ListReader<'a> {
    /// An empty list of `server`.
    pub fn new(kind: Kind, server: &'a str) -> Self {
        let list =
            List { items: Vec::new(), quarantined: 0, digest: 0, hints: None, annotated: HashMap::new() };
        let unfollowable = Unfollowable::Offered;
        Self { kind, server, list, seen: HashMap::new(), translation: None, unfollowable }
    }

    /// The same for a modern server over HTTP: a tool whose arguments cannot be mirrored as it wants is left out (T49).
    #[must_use]
    pub fn mirroring(self) -> Self {
        Self { unfollowable: Unfollowable::LeftOut, ..self }
    }

    /// The same for items as a server of one era writes them, for callers of this revision.
    #[must_use]
    pub fn translating(self, from: Era, to: Revision) -> Self {
        // Only tools differ.
        Self { translation: (self.kind == Kind::Tools).then_some((from, to)), ..self }
    }

    /// Adds the items of one raw list result; gives its `nextCursor`, raw. An empty string is a cursor too (case-G09).
    ///
    /// # Errors
    /// [`UnreadableList`] if the result has no list.
    pub fn page<'p>(&mut self, result: &'p str) -> Result<Option<&'p str>, UnreadableList> {
        let member = self.kind.member();
        let unreadable = |why: String| UnreadableList { member, why };
        let page = Object::parse(result).map_err(|e| unreadable(e.to_string()))?;
        let raw = page.get(member).ok_or_else(|| unreadable(format!("the result has no `{member}`")))?;
        let items = items(raw).ok_or_else(|| unreadable(format!("`{member}` is no array")))?;
        items.into_iter().for_each(|raw| self.item(raw));
        let hints = Hints::of(&page);
        self.list.hints = Some(self.list.hints.map_or(hints, |before| before.and(hints)));
        Ok(page.get("nextCursor").filter(|c| c.starts_with('"')))
    }

    /// How many items there are by now.
    pub fn len(&self) -> usize {
        self.list.items.len() + self.list.quarantined
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The list of a server that has nothing of this kind, which stays so until it says something else of itself.
    pub fn nothing(mut self) -> List {
        self.list.hints = Some(Hints::public(super::shelf::FRESH_FOR));
        self.finish()
    }

    /// The whole list.
    pub fn finish(mut self) -> List {
        let mut hasher = DefaultHasher::new();
        for item in &self.list.items {
            item.raw.hash(&mut hasher);
        }
        self.list.digest = hasher.finish();
        self.list
    }

    /// Takes one item as the server wrote it.
    pub fn item(&mut self, raw: &str) {
        let raw = &*match self.translation {
            Some((from, to)) => translate::tool(raw, from, to),
            None => raw.into(),
        };
        match self.sound(raw) {
            Ok((own, key, annotated)) => {
                self.seen.insert(own.clone(), self.list.items.len());
                if !annotated.is_empty() {
                    self.list.annotated.insert(own.clone(), annotated.into());
                }
                self.list.items.push(Item { own, raw: raw.into(), key });
            }
            Err(Unsound::Repeated) => {}
            Err(Unsound::Because(why)) => {
                self.list.quarantined += 1;
                let (server, kind, name) = (self.server, self.kind.member(), self.shown(raw));
                tracing::warn!(server, kind, name, %why, "left out a malformed item of a server's list");
            }
        }
    }

    /// What a malformed item calls itself, as far as that can be told.
    fn shown(&self, raw: &str) -> String {
        let name = Object::parse(raw).ok().and_then(|item| item.text(self.kind.key()).map(Cow::into_owned));
        quoted(&name.unwrap_or_default().chars().take(128).collect::<String>())
    }

    /// The item's key and its place, if the item can be offered, and the arguments it wants mirrored.
    fn sound(&self, raw: &str) -> Result<(Box<str>, Span, Vec<Annotation>), Unsound> {
        let object = Object::parse(raw).map_err(|_| "it is no object, or names a member twice")?;
        let raw_key = object.get(self.kind.key()).ok_or("its name or URI is missing")?;
        let own: Box<str> = text(raw_key).ok_or("its name or URI is no string")?.into();
        if own.is_empty() {
            return Err("its name or URI is empty".into());
        }
        let mut annotated = Vec::new();
        if self.kind == Kind::Tools {
            let schema = object.get("inputSchema").filter(|s| s.starts_with('{'));
            match (annotations(schema.ok_or("its inputSchema is no object")?), self.unfollowable) {
                (Ok(found), _) => annotated = found,
                (Err(why), Unfollowable::LeftOut) => {
                    return Err(Unsound::Because(why.to_string().into()));
                }
                (Err(_), Unfollowable::Offered) => {}
            }
        }
        if let Some(first) = self.seen.get(&own).and_then(|at| self.list.items.get(*at)) {
            // Lists that change while they are paged through overlap; only another item of the name is a fault.
            let same = *first.raw == *raw;
            return Err(if same { Unsound::Repeated } else { "another item has its name".into() });
        }
        Ok((own, Span::of(raw_key, raw.as_bytes()), annotated))
    }
}

/// Why an item is not taken.
enum Unsound {
    /// It was taken already.
    Repeated,
    /// It cannot be offered.
    Because(Cow<'static, str>),
}

impl From<&'static str> for Unsound {
    fn from(why: &'static str) -> Self {
        Self::Because(why.into())
    }
}

#[cfg(test)]
mod tests;
