//! `x-mcp-header`: arguments of a tool that its schema wants repeated in headers (T48, T49).
//!
//! A schema may mark a property so that a client over HTTP mirrors the argument into `Mcp-Param-{Name}`. What is
//! here reads the marks and the values; [`super::mirror`] writes a value so that a header can hold it.

use std::borrow::Cow;

use http::HeaderName;

use super::header::MCP_PARAM_PREFIX;
use super::object::{NotAnObject, Object, items, text};

/// The keyword, as it stands in a schema.
const KEYWORD: &str = "x-mcp-header";
/// The same with its quotes: most schemas do not hold it, and are not read at all.
const MENTION: &[u8] = b"\"x-mcp-header\"";
/// How deep a schema is looked into; no annotation may stand deeper.
const MOST_LEVELS: usize = 32;
/// The largest integer that every JSON reader holds exactly.
const SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;

/// One annotation of a tool's input schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// The header: `mcp-param-` and the name that the schema gives.
    pub header: HeaderName,
    /// The names that lead from the arguments to the value.
    pub path: Vec<Box<str>>,
    /// What the value is.
    pub kind: Kind,
}

/// The types that may be annotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Mirrored as it is.
    String,
    /// Mirrored in decimal, compared as a number.
    Integer,
    /// `true` or `false`.
    Boolean,
}

/// Why a tool's annotations cannot be followed: it must not be offered then (T49).
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// Members that cannot be told apart, for one.
    #[error("its inputSchema cannot be read: {0}")]
    Unreadable(String),
    /// No string.
    #[error("an x-mcp-header is no string")]
    NoString,
    /// The name is empty.
    #[error("an x-mcp-header is empty")]
    Empty,
    /// The name is no token of RFC 9110.
    #[error("the x-mcp-header {0:?} cannot be the name of a header")]
    NoToken(String),
    /// Two properties want one header, case not minded.
    #[error("two properties want the header {0}")]
    Twice(HeaderName),
    /// On a type that no header can hold: only string, integer and boolean are allowed.
    #[error("the x-mcp-header {0:?} is on a type other than string, integer or boolean")]
    Type(String),
    /// Not to be reached by `properties` alone.
    #[error("an x-mcp-header stands where no chain of `properties` leads")]
    Misplaced,
    /// Too deep.
    #[error("an x-mcp-header stands more than {MOST_LEVELS} levels deep")]
    TooDeep,
}

/// The annotations of a tool's input schema, in its order.
///
/// # Errors
/// [`Invalid`] if one of them breaks the rules: none may be followed then.
pub fn annotations(input_schema: &str) -> Result<Vec<Annotation>, Invalid> {
    let mut found = Vec::new();
    chain(input_schema, &mut Vec::new(), &mut found)?;
    Ok(found)
}

/// The text to mirror of the value that `path` leads to; none if it is absent, null or no plain value.
pub fn value_at<'a>(arguments: &Object<'a>, path: &[Box<str>]) -> Option<Cow<'a, str>> {
    let (first, rest) = path.split_first()?;
    let mut raw = arguments.get(first)?;
    for name in rest {
        raw = Object::parse(raw).ok()?.get(name)?;
    }
    match raw.as_bytes().first()? {
        b'"' => text(raw),
        b't' | b'f' => Some(raw.into()),
        b'-' | b'0'..=b'9' => Some(decimal(raw)),
        _ => None,
    }
}

// === impl Annotation ===

impl Annotation {
    /// Whether what a header said is the value of the body; numbers are compared as such, so that `42.0` is 42 (T50).
    pub fn agrees(&self, said: &str, value: &str) -> bool {
        said == value
            || self.kind == Kind::Integer
                && matches!((number(said), number(value)), (Some(a), Some(b)) if a.total_cmp(&b).is_eq())
    }
}

/// Follows `properties` downwards, and refuses annotations anywhere else.
fn chain(schema: &str, path: &mut Vec<Box<str>>, found: &mut Vec<Annotation>) -> Result<(), Invalid> {
    let Some(schema) = look(schema, path.len())? else { return Ok(()) };
    if let Some(name) = schema.get(KEYWORD) {
        let annotation = annotation(name, &schema, path)?;
        if found.iter().any(|other| other.header == annotation.header) {
            return Err(Invalid::Twice(annotation.header));
        }
        found.push(annotation);
    }
    for (keyword, raw) in schema.iter() {
        if keyword == "properties" {
            for (name, property) in members(raw)?.iter() {
                path.push(name.into());
                chain(property, path, found)?;
                path.pop();
            }
        } else {
            nowhere_in(keyword, raw, path.len() + 1)?;
        }
    }
    Ok(())
}

/// Refuses annotations in the schemas that a keyword holds.
fn nowhere_in(keyword: &str, raw: &str, level: usize) -> Result<(), Invalid> {
    for schema in schemas(keyword, raw)? {
        let Some(schema) = look(schema, level)? else { continue };
        if schema.get(KEYWORD).is_some() {
            return Err(Invalid::Misplaced);
        }
        schema.iter().try_for_each(|(keyword, raw)| nowhere_in(keyword, raw, level + 1))?;
    }
    Ok(())
}

/// A schema that mentions the keyword somewhere, read.
fn look(schema: &str, level: usize) -> Result<Option<Object<'_>>, Invalid> {
    if !mentions(schema) || !schema.starts_with('{') {
        return Ok(None);
    }
    if level > MOST_LEVELS {
        return Err(Invalid::TooDeep);
    }
    members(schema).map(Some)
}

/// The schemas that are the value of a keyword. What is data (`default`, `enum`, `examples`) or not known to be
/// anything holds none.
fn schemas<'a>(keyword: &str, raw: &'a str) -> Result<Vec<&'a str>, Invalid> {
    if !mentions(raw) {
        return Ok(Vec::new());
    }
    Ok(match keyword {
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
        | "dependencies" => members(raw)?.iter().map(|(_, schema)| schema).collect(),
        "items"
        | "prefixItems"
        | "additionalItems"
        | "unevaluatedItems"
        | "contains"
        | "additionalProperties"
        | "unevaluatedProperties"
        | "propertyNames"
        | "oneOf"
        | "anyOf"
        | "allOf"
        | "not"
        | "if"
        | "then"
        | "else"
        | "contentSchema" => items(raw).unwrap_or_else(|| vec![raw]),
        _ => Vec::new(),
    })
}

fn annotation(name: &str, schema: &Object<'_>, path: &[Box<str>]) -> Result<Annotation, Invalid> {
    let name = text(name).ok_or(Invalid::NoString)?;
    if path.is_empty() {
        return Err(Invalid::Misplaced);
    }
    if name.is_empty() {
        return Err(Invalid::Empty);
    }
    let header = HeaderName::from_bytes(format!("{MCP_PARAM_PREFIX}{name}").as_bytes());
    let header = header.map_err(|_| Invalid::NoToken(shown(&name)))?;
    let kind = schema.get("type").and_then(kind).ok_or_else(|| Invalid::Type(shown(&name)))?;
    Ok(Annotation { header, path: path.to_vec(), kind })
}

/// The type that `type` says. One that may be null beside it is no other type: null is never mirrored.
fn kind(raw: &str) -> Option<Kind> {
    let named = |raw: &str| match text(raw)?.as_ref() {
        "string" => Some(Kind::String),
        "integer" => Some(Kind::Integer),
        "boolean" => Some(Kind::Boolean),
        _ => None,
    };
    let Some(all) = items(raw) else { return named(raw) };
    let mut other = all.into_iter().filter(|raw| text(raw).as_deref() != Some("null"));
    let only = other.next()?;
    if other.next().is_some() { None } else { named(only) }
}

fn mentions(schema: &str) -> bool {
    memchr::memmem::find(schema.as_bytes(), MENTION).is_some()
}

fn members(raw: &str) -> Result<Object<'_>, Invalid> {
    Object::parse(raw).map_err(|why: NotAnObject| Invalid::Unreadable(why.to_string()))
}

/// A name short enough for a message.
fn shown(name: &str) -> String {
    name.chars().take(64).collect()
}

/// A number in decimal if it is a whole one, however it is spelled; else as it stands, since only its server knows
/// what it makes of it.
fn decimal(raw: &str) -> Cow<'_, str> {
    let plain = |raw: &str| raw != "-0" && raw.trim_start_matches('-').bytes().all(|b| b.is_ascii_digit());
    match number(raw) {
        Some(whole) if !plain(raw) && whole.fract() == 0.0 => format!("{:.0}", whole + 0.0).into(),
        _ => raw.into(),
    }
}

/// A number that every reader holds exactly.
fn number(text: &str) -> Option<f64> {
    let number: f64 = serde_json::from_str(text).ok()?;
    // No negative zero: it is the same number.
    (number.abs() <= SAFE_INTEGER).then_some(number + 0.0)
}

#[cfg(test)]
mod tests;
