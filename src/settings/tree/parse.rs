//! Text to tree. serde-saphyr reads the YAML; positions come from its `Spanned`.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{DuplicateKeyPolicy, Location, Spanned};

use super::{Entry, Node, Position, Text, Value};

/// The text is not YAML.
#[derive(Debug)]
pub(crate) struct SyntaxError {
    /// Where reading stopped.
    pub(crate) at: Position,
    /// Why.
    pub(crate) what: String,
}

/// Reads `source` to a tree; an empty file is an empty mapping.
pub(crate) fn parse(source: &str) -> Result<Node, SyntaxError> {
    let options = serde_saphyr::options! {
        // Both places of a key that stands twice are reported, with all other problems.
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        strict_booleans: true,
        // A snippet would show the neighbours of a mistake, and they may be secrets.
        with_snippet: false,
    };
    let raw: Raw = serde_saphyr::from_str_with_options(source, options).map_err(SyntaxError::from)?;
    let node = raw.into_node(source);
    Ok(if matches!(node.value, Value::Null) { Node::empty() } else { node })
}

/// A node as the parser gives it.
#[derive(Deserialize)]
#[serde(transparent)]
struct Raw(Spanned<RawValue>);

enum RawValue {
    Null,
    /// What YAML takes for text.
    Text(String),
    /// What YAML takes for a number or a truth value; the spelling is in the source.
    Typed(String),
    List(Vec<Raw>),
    Map(Vec<(Spanned<String>, Raw)>),
}

struct RawVisitor;

// === impl Raw ===

impl Raw {
    fn into_node(self, source: &str) -> Node {
        let Spanned { value, referenced, defined } = self.0;
        let value = match value {
            RawValue::Null => Value::Null,
            RawValue::Text(text) => Value::Text(Text::plain(text)),
            RawValue::Typed(fallback) => {
                Value::Text(Text::plain(spelling(source, defined).map_or(fallback, str::to_owned)))
            }
            RawValue::List(items) => {
                Value::List(items.into_iter().map(|raw| raw.into_node(source)).collect())
            }
            RawValue::Map(entries) => Value::Map(
                entries
                    .into_iter()
                    .map(|(key, raw)| Entry {
                        at: position(key.referenced),
                        key: key.value,
                        node: raw.into_node(source),
                    })
                    .collect(),
            ),
        };
        Node { at: position(referenced), value }
    }
}

/// How a plain scalar is spelled in the file.
fn spelling(source: &str, at: Location) -> Option<&str> {
    let start = usize::try_from(at.span().byte_offset()?).ok()?;
    let end = start.checked_add(usize::try_from(at.span().byte_len()?).ok()?)?;
    let text = source.get(start..end)?.trim();
    // A tag or quotes would be part of the span.
    (!text.is_empty() && !text.starts_with(['!', '"', '\'', '&'])).then_some(text)
}

fn position(at: Location) -> Position {
    Position { line: at.line(), column: at.column() }
}

impl<'de> Deserialize<'de> for RawValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

impl<'de> Visitor<'de> for RawVisitor {
    type Value = RawValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("YAML")
    }

    fn visit_unit<E>(self) -> Result<RawValue, E> {
        Ok(RawValue::Null)
    }

    fn visit_bool<E>(self, v: bool) -> Result<RawValue, E> {
        Ok(RawValue::Typed(v.to_string()))
    }

    fn visit_i64<E>(self, v: i64) -> Result<RawValue, E> {
        Ok(RawValue::Typed(v.to_string()))
    }

    fn visit_u64<E>(self, v: u64) -> Result<RawValue, E> {
        Ok(RawValue::Typed(v.to_string()))
    }

    fn visit_i128<E>(self, v: i128) -> Result<RawValue, E> {
        Ok(RawValue::Typed(v.to_string()))
    }

    fn visit_u128<E>(self, v: u128) -> Result<RawValue, E> {
        Ok(RawValue::Typed(v.to_string()))
    }

    fn visit_f64<E>(self, v: f64) -> Result<RawValue, E> {
        Ok(RawValue::Typed(v.to_string()))
    }

    fn visit_str<E>(self, v: &str) -> Result<RawValue, E> {
        Ok(RawValue::Text(v.to_owned()))
    }

    fn visit_string<E>(self, v: String) -> Result<RawValue, E> {
        Ok(RawValue::Text(v))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<RawValue, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(RawValue::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawValue, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            if entries.len() >= MAX_ENTRIES {
                return Err(A::Error::custom("a mapping has too many keys"));
            }
            entries.push((key, map.next_value()?));
        }
        Ok(RawValue::Map(entries))
    }
}

/// No config comes near it; a file that does is not one.
const MAX_ENTRIES: usize = 100_000;

// === impl SyntaxError ===

impl From<serde_saphyr::Error> for SyntaxError {
    fn from(error: serde_saphyr::Error) -> Self {
        let at = error.location().map(position).unwrap_or_default();
        let what = error.without_snippet().to_string();
        // The position is printed by whoever shows this.
        let what = what.split(" at line ").next().unwrap_or_default().lines().next().unwrap_or_default();
        Self { at, what: what.trim_start_matches("error: ").to_owned() }
    }
}
