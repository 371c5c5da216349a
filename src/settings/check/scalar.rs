//! Whether a scalar fits, and in words what would.

use serde_json::Value as Json;

use super::has_type;
use crate::settings::tree::Text;
use crate::settings::units::{SIZE, SPAN, Size, Span};
use crate::settings::written::{ADDRESS, Address, LISTEN, Listen};

/// What a key wants, in words.
#[derive(Debug)]
pub(super) struct Wanted {
    /// A noun phrase.
    pub(super) what: String,
    /// How to write it, if the phrase does not say.
    pub(super) remedy: &'static str,
    /// Whether a wrong value may be shown: nobody writes a secret there.
    pub(super) may_be_shown: bool,
}

/// Whether `text` fits one of `alternatives`.
pub(super) fn check(text: &Text, alternatives: &[&Json]) -> Result<(), Wanted> {
    let mut best: Option<Wanted> = None;
    for schema in alternatives {
        match check_one(&text.meant, schema) {
            Ok(()) => return Ok(()),
            Err(Some(wanted)) => best = Some(wanted),
            Err(None) => {}
        }
    }
    Err(best.unwrap_or_else(|| wanted(alternatives)))
}

/// `Err(None)` leaves the words to [`wanted`].
fn check_one(text: &str, schema: &Json) -> Result<(), Option<Wanted>> {
    if let Some(word) = schema.get("const").and_then(Json::as_str) {
        return if text == word { Ok(()) } else { Err(None) };
    }
    if let Some(words) = schema.get("enum").and_then(Json::as_array) {
        return if words.iter().any(|word| word == text) { Ok(()) } else { Err(None) };
    }
    let formatted = match schema.get("format").and_then(Json::as_str) {
        Some(SPAN) => Some(text.parse::<Span>().map(drop).map_err(|error| error.to_string())),
        Some(SIZE) => Some(text.parse::<Size>().map(drop).map_err(|error| error.to_string())),
        Some(ADDRESS) => Some(text.parse::<Address>().map(drop).map_err(|error| error.to_string())),
        Some(LISTEN) => Some(text.parse::<Listen>().map(drop).map_err(|error| error.to_string())),
        _ => None,
    };
    if let Some(result) = formatted {
        return result.map_err(|what| Some(Wanted { what, remedy: "", may_be_shown: true }));
    }
    if has_type(schema, "string") {
        return Ok(());
    }
    if has_type(schema, "integer") {
        return integer(text, schema).map_err(Some);
    }
    if has_type(schema, "boolean") && matches!(text, "true" | "false") {
        return Ok(());
    }
    Err(None)
}

fn integer(text: &str, schema: &Json) -> Result<(), Wanted> {
    let bound = |name: &str| schema.get(name).and_then(Json::as_u64);
    let (least, most) = (bound("minimum").unwrap_or(0), bound("maximum"));
    // What the type behind it can hold.
    let widest = match schema.get("format").and_then(Json::as_str) {
        Some("uint16") => u64::from(u16::MAX),
        Some("uint32") => u64::from(u32::MAX),
        _ => u64::MAX,
    };
    match text.parse::<u64>() {
        Ok(number) if number >= least && number <= most.unwrap_or(widest).min(widest) => Ok(()),
        _ => {
            let what = match most {
                Some(most) => format!("a number from {least} to {most}"),
                None => format!("a whole number of at least {least}"),
            };
            Err(Wanted { what, remedy: "", may_be_shown: true })
        }
    }
}

/// What `alternatives` want, in words.
pub(super) fn wanted(alternatives: &[&Json]) -> Wanted {
    let mut words: Vec<String> = Vec::new();
    let mut parts: Vec<&str> = Vec::new();
    for schema in alternatives {
        if let Some(word) = schema.get("const").and_then(Json::as_str) {
            words.push(format!("`{word}`"));
        } else if let Some(several) = schema.get("enum").and_then(Json::as_array) {
            words.extend(several.iter().filter_map(Json::as_str).map(|word| format!("`{word}`")));
        }
    }
    let only_words = !words.is_empty();
    for (kind, name) in [
        ("object", "a mapping"),
        ("array", "a list"),
        ("boolean", "true or false"),
        ("integer", "a number"),
        ("string", "text"),
    ] {
        let fits = |schema: &&Json| has_type(schema, kind) && schema.get("const").is_none();
        // A text may also look like a number; nobody needs to be told.
        let redundant =
            matches!(kind, "boolean" | "integer") && alternatives.iter().any(|s| has_type(s, "string"));
        if alternatives.iter().filter(|schema| schema.get("enum").is_none()).any(fits) && !redundant {
            parts.push(name);
        }
    }
    let remedy = match parts.first() {
        Some(&"a list") => "write [a, b], or one item per line after `- `",
        Some(&"a mapping") if !only_words => "write one key per line, indented beneath it",
        _ => "",
    };
    words.extend(parts.iter().map(|part| (*part).to_owned()));
    let what = match words.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, before)) => format!("{} or {last}", before.join(", ")),
        None => "something else".to_owned(),
    };
    Wanted { what, remedy, may_be_shown: only_words || parts == ["true or false"] }
}
