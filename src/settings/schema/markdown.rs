//! `docs/configuration.md`, made from the schema: every key, its type, default and meaning.

use std::fmt::Write as _;

use serde_json::Value as Json;

use super::{key_file, schema};
use crate::settings::hosts::HOSTS;
use crate::settings::planned::planned;
use crate::settings::units::{SIZE, SPAN};
use crate::settings::written::{ADDRESS, LISTEN};

/// The page.
pub fn markdown() -> String {
    let mut page = INTRODUCTION.to_owned();
    let (root, key_file) = (&schema(), &key_file());
    page.push_str("\n## Top level\n\n");
    page.push_str(TABLE_HEAD);
    for (key, schema) in properties(root).filter(|(_, schema)| schema.get(HOSTS).is_none()) {
        row(&mut page, root, key, schema);
    }
    for (key, schema) in properties(root) {
        let mut rows = String::new();
        beneath(&mut rows, root, key, schema);
        if !rows.is_empty() {
            let _ = write!(page, "\n## {key}\n\n{}\n\n{TABLE_HEAD}{rows}", sentences(schema));
        }
    }
    page.push_str("\n## The file of API keys\n\n");
    page.push_str(KEY_FILE);
    page.push_str(TABLE_HEAD);
    for (key, schema) in properties(key_file) {
        row(&mut page, key_file, key, schema);
        beneath(&mut page, key_file, key, schema);
    }
    page.push_str("\n## Keys of other hosts\n\n");
    page.push_str(OTHER_HOSTS);
    let server = root.pointer("/$defs/Server").unwrap_or(&Json::Null);
    for (key, schema) in properties(server).filter(|(_, schema)| schema.get(HOSTS).is_some()) {
        let meaning = text(schema).trim_start_matches("Written by some MCP hosts: ").to_owned();
        let meaning = meaning.trim_start_matches("Written by some MCP hosts; ").to_owned();
        let _ = writeln!(page, "| `{key}` | {meaning} |");
    }
    page.push_str("\n## Not in this version\n\n");
    page.push_str(NOT_YET);
    for (path, remedy) in planned() {
        let _ = writeln!(page, "| `{}` | {remedy} |", path.join("."));
    }
    page
}

const INTRODUCTION: &str = "\
<!-- Made by `mcpgate schema --markdown`; a test checks that it is current. -->
# Configuration

The config is one YAML file; JSON works too, since YAML contains it.
A file that an MCP host wrote, with nothing but `mcpServers` in it, is a complete config.
`mcpgate check --config FILE` says everything that is wrong with a file, each with line, column and remedy.
The running gateway reads the file again when it, or a secret or key file it names, changes, and on SIGHUP; a bad file \
leaves the old config in force.
Unknown keys are refused, so that a typing mistake does not go unnoticed.

- **Environment**: `${NAME}` in a value, quoted or not, stands for an environment variable, and `${NAME:-default}` has \
a default. `$${` is a literal `${`. A variable that is not set is a problem. Values are never shown.
- **Durations** have a unit: `200ms`, `30s`, `10m`, `4h`, `1h30m`, `7d`.
- **Sizes** are bytes, or have a unit: `64KiB`, `8MiB`, `1GiB` (also `kB`, `MB`, `GB` in thousands).
- **Secrets** are a value, `${NAME}`, or `{ file: PATH }`.
- **Paths**: `~` is the home directory, and a relative path begins at the file it stands in.
- **Patterns**: `*` stands for any text.
";

const TABLE_HEAD: &str = "| key | type | default | meaning |\n|---|---|---|---|\n";

const KEY_FILE: &str = "\
`auth.apiKeys.file` names a YAML file that holds hashes only, so that nobody who reads it can call.
`mcpgate hash-key --generate` makes a key and its hash.

";

const OTHER_HOSTS: &str = "\
Desktop apps, editors and terminal agents write these into `mcpServers` entries.
They are accepted, so that their files work as they are; so are `$schema`, and with a warning `globalShortcut`, `inputs` and \
`preferences` beside `mcpServers`.

| key | here |
|---|---|
";

const NOT_YET: &str = "\
These keys are refused until they do what they say.

| key | instead |
|---|---|
";

/// Rows for everything beneath `key`.
fn beneath(rows: &mut String, root: &Json, key: &str, schema: &Json) {
    for form in forms(root, schema) {
        for (name, property) in properties(form).filter(|(_, property)| property.get(HOSTS).is_none()) {
            let key = format!("{key}.{name}");
            // A word that carries more is described where the word is.
            let described = if property.get("description").is_some() { property } else { form };
            row_as(rows, root, &key, property, &text(described));
            beneath(rows, root, &key, property);
        }
        if let Some(items @ Json::Object(_)) = form.get("items") {
            beneath(rows, root, &format!("{key}[]"), items);
        }
        if let Some(values @ Json::Object(_)) = form.get("additionalProperties")
            && !is_secret(values)
        {
            beneath(rows, root, &format!("{key}.*"), values);
        }
    }
}

fn row(rows: &mut String, root: &Json, key: &str, schema: &Json) {
    row_as(rows, root, key, schema, &text(schema));
}

fn row_as(rows: &mut String, root: &Json, key: &str, schema: &Json, meaning: &str) {
    let default = shown_default(schema.get("default"));
    let words = words(root, schema);
    let space = if words.is_empty() { "" } else { " " };
    let _ = writeln!(rows, "| `{key}` | {} | {default} | {meaning}{space}{words} |", kind(root, schema));
}

/// The words a key may hold, each with its meaning.
fn words(root: &Json, schema: &Json) -> String {
    forms(root, schema)
        .into_iter()
        .filter_map(|form| Some((form.get("const")?.as_str()?, text(form))))
        .map(|(word, meaning)| format!("`{word}`: {meaning}"))
        .collect::<Vec<_>>()
        .join(" ")
}

fn shown_default(default: Option<&Json>) -> String {
    match default {
        Some(Json::String(text)) if text.is_empty() => String::new(),
        Some(Json::String(text)) => format!("`{text}`"),
        Some(number @ (Json::Number(_) | Json::Bool(_))) => format!("`{number}`"),
        Some(Json::Array(items)) if !items.is_empty() => {
            let items: Vec<&str> = items.iter().filter_map(Json::as_str).collect();
            format!("`[{}]`", items.join(", "))
        }
        _ => String::new(),
    }
}

fn kind(root: &Json, schema: &Json) -> String {
    let mut kinds: Vec<String> = Vec::new();
    for form in forms(root, schema) {
        let kind = kind_of_form(root, form);
        if !kind.is_empty() && !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds.join(" or ")
}

fn kind_of_form(root: &Json, form: &Json) -> String {
    match form.get("format").and_then(Json::as_str) {
        Some(SPAN) => return "duration".to_owned(),
        Some(SIZE) => return "size".to_owned(),
        Some(ADDRESS) => return "IP:port".to_owned(),
        Some(LISTEN) => return "IP:port or `off`".to_owned(),
        _ => {}
    }
    let of = |key: &str| form.get(key).map(|inner| kind(root, inner)).filter(|kind| !kind.is_empty());
    match form.get("type") {
        Some(Json::String(kind)) => match kind.as_str() {
            "string" if form.get("const").is_some() => "word".to_owned(),
            "string" => "text".to_owned(),
            "integer" => "number".to_owned(),
            "boolean" => "`true` or `false`".to_owned(),
            "array" => format!("list of {}", of("items").unwrap_or_default()),
            "object" => match form.get("additionalProperties") {
                Some(values @ Json::Object(_)) if is_secret(values) => "name: secret".to_owned(),
                Some(Json::Object(_)) => "name: mapping".to_owned(),
                _ => "mapping".to_owned(),
            },
            _ => String::new(),
        },
        // A text that may look like a number, or one that may be left out.
        Some(Json::Array(kinds)) if kinds.iter().any(|kind| kind == "string") => "text".to_owned(),
        Some(Json::Array(kinds)) if kinds.iter().any(|kind| kind == "array") => {
            format!("list of {}", of("items").unwrap_or_default())
        }
        _ => String::new(),
    }
}

/// The forms a schema allows, references resolved, without "nothing".
fn forms<'a>(root: &'a Json, schema: &'a Json) -> Vec<&'a Json> {
    if let Some(reference) = schema.get("$ref").and_then(Json::as_str) {
        let target = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        return target.map(|target| forms(root, target)).unwrap_or_default();
    }
    match schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Json::as_array) {
        Some(several) => several.iter().flat_map(|schema| forms(root, schema)).collect(),
        None => vec![schema],
    }
}

fn is_secret(schema: &Json) -> bool {
    schema.get("$ref").and_then(Json::as_str) == Some("#/$defs/Secret")
}

fn properties(schema: &Json) -> impl Iterator<Item = (&String, &Json)> {
    schema.get("properties").and_then(Json::as_object).into_iter().flatten()
}

/// A description on one line, fit for a cell of a table.
fn text(schema: &Json) -> String {
    let description = schema.get("description").and_then(Json::as_str).unwrap_or_default();
    description.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// A description with a sentence on each line.
fn sentences(schema: &Json) -> String {
    text(schema).replace(". ", ".\n")
}
