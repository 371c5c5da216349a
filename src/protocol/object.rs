//! A JSON object read one level deep: its members in order, each as raw text.
//!
//! Everything that must be lossless goes through this: unknown members, number spellings and key order stay
//! as they were written. A name that stands twice is refused (case-G07).

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::envelope::Text;

/// The members of an object, in the order they were written.
#[derive(Debug, Default)]
pub struct Object<'a> {
    members: Vec<(Cow<'a, str>, &'a RawValue)>,
}

/// Why text is not an object that can be read.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotAnObject(String);

// === impl Object ===

impl<'a> Object<'a> {
    /// Reads `text`, which must be a JSON object.
    ///
    /// # Errors
    /// [`NotAnObject`] if it is something else or names a member twice.
    pub fn parse(text: &'a str) -> Result<Self, NotAnObject> {
        serde_json::from_str(text).map_err(|e| NotAnObject(e.to_string()))
    }

    /// The raw text of a member; a slice of what was parsed.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.members.iter().find(|(n, _)| n == name).map(|(_, v)| v.get())
    }

    /// A member that is a string, decoded; `None` if it is absent or no string.
    pub fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        text(self.get(name)?)
    }

    /// All members in order, their names for as long as the text lives.
    pub fn into_members(self) -> impl Iterator<Item = (Cow<'a, str>, &'a str)> {
        self.members.into_iter().map(|(name, value)| (name, value.get()))
    }

    /// All members in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.members.iter().map(|(n, v)| (n.as_ref(), v.get()))
    }
}

/// Whether a reader that does not mind case would take a member for `known`: some servers' readers do not, so that
/// they would follow `Name` where we looked at `name` (case-G07).
pub fn is_variant(name: &str, known: &str) -> bool {
    let fold = |c: char| match c {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        c => c.to_ascii_lowercase(),
    };
    name != known && name.chars().map(fold).eq(known.chars().map(fold))
}

/// Whether raw JSON may hold this word: as it stands, or spelled with escapes. A look at its bytes, before anything is
/// parsed; most texts do not.
pub fn may_say(raw: &str, word: &str) -> bool {
    let finds = |word: &str| memchr::memmem::find(raw.as_bytes(), word.as_bytes()).is_some();
    finds(word) || finds("\\u")
}

/// Decodes raw JSON that is a string.
pub fn text(raw: &str) -> Option<Cow<'_, str>> {
    serde_json::from_str::<Text<'_>>(raw).ok().map(|t| t.0)
}

/// Reads raw JSON that is an array, each item as raw text.
pub fn items(raw: &str) -> Option<Vec<&str>> {
    let items: Vec<&RawValue> = serde_json::from_str(raw).ok()?;
    Some(items.into_iter().map(RawValue::get).collect())
}

/// Writes text as a JSON string.
pub fn quoted(text: &str) -> String {
    // A string always serialises.
    serde_json::to_string(text).unwrap_or_default()
}

impl<'de> de::Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor;
        impl<'de> Visitor<'de> for ObjectVisitor {
            type Value = Object<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
                let mut object = Object::default();
                // Names of a large object are looked up in a set, so that a hostile one costs no square.
                let mut many = std::collections::HashSet::new();
                while let Some(Text(name)) = map.next_key::<Text<'de>>()? {
                    let twice = if object.members.len() < 16 {
                        object.members.iter().any(|(n, _)| *n == name)
                    } else {
                        if many.is_empty() {
                            many.extend(object.members.iter().map(|(n, _)| n.to_string()));
                        }
                        !many.insert(name.to_string())
                    };
                    if twice {
                        // Quoted, as it was written: decoded, it could break the line it is shown in.
                        let shown = quoted(&name.chars().take(64).collect::<String>());
                        return Err(de::Error::custom(format_args!("member {shown} stands twice")));
                    }
                    object.members.push((name, map.next_value()?));
                }
                Ok(object)
            }
        }
        deserializer.deserialize_map(ObjectVisitor)
    }
}

#[cfg(test)]
mod tests;
