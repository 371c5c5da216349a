//! Checks a tree against the JSON Schema of the written types, so that all mistakes of form are found at once.
//!
//! What does not fit is cut out of the tree after it was reported (or something empty stands in for it); the rest
//! still turns into types, and the rules that span several keys are checked on it in the same run.

mod nearest;
mod scalar;

use serde_json::Value as Json;

use super::hosts::HOSTS;
use super::planned;
use super::problem::Review;
use super::tree::{Entry, Node, Path, Position, Text, Value};
pub(super) use nearest::nearest;

/// Whether a node can stay in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// It can; what did not fit beneath it is gone.
    Fits,
    /// It cannot, and why was reported.
    Misfit,
}

/// Checks trees against one schema.
pub(super) struct Checker<'a> {
    schema: &'a Json,
    review: &'a mut Review,
}

/// Keys that people look for under another name.
const ALSO_KNOWN_AS: [(&str, &str); 6] = [
    ("servers", "mcpServers"),
    ("context_servers", "mcpServers"),
    ("mcp", "mcpServers"),
    ("port", "listen"),
    ("bind", "listen"),
    ("environment", "env"),
];

// === impl Checker ===

impl<'a> Checker<'a> {
    /// A checker for `schema`; what it finds goes to `review`.
    pub(super) fn new(schema: &'a Json, review: &'a mut Review) -> Self {
        Self { schema, review }
    }

    /// Checks the whole tree.
    pub(super) fn check(mut self, tree: &mut Node) {
        if self.node(tree, self.schema, &Path::default()) == Fit::Misfit {
            *tree = Node::empty();
        }
    }

    fn node(&mut self, node: &mut Node, schema: &'a Json, path: &Path) -> Fit {
        let alternatives = self.alternatives(schema);
        match &mut node.value {
            Value::Null => self.nothing(node, &alternatives, path),
            Value::Text(text) => match scalar::check(text, &alternatives) {
                Ok(()) => Fit::Fits,
                Err(wanted) => {
                    let what = scalar_problem(text, &wanted);
                    let words = path.words();
                    let words: Vec<&str> = words.into_iter().chain([text.written.as_str()]).collect();
                    match planned::remedy(&words) {
                        Some(remedy) => self.refuse_planned(node, path, remedy),
                        None => self.review.problem_at(node.at, path, what, wanted.remedy),
                    }
                    Fit::Misfit
                }
            },
            Value::List(items) => match alternatives.iter().find_map(|schema| schema.get("items")) {
                Some(of_items) if is(&alternatives, "array") => self.items(items, of_items, path),
                _ => self.wrong_kind(node, &alternatives, path),
            },
            Value::Map(_) => self.mapping(node, &alternatives, path),
        }
    }

    /// `auth:` is `auth: {}`, but a single value must be there.
    fn nothing(&mut self, node: &mut Node, alternatives: &[&'a Json], path: &Path) -> Fit {
        let single = |schema: &&Json| !has_type(schema, "object") && !has_type(schema, "array");
        if is(alternatives, "null") {
            return Fit::Fits;
        }
        if !alternatives.iter().any(single) {
            if is(alternatives, "object") {
                node.value = Value::Map(Vec::new());
                return self.mapping(node, alternatives, path);
            }
            return Fit::Fits;
        }
        let remedy = "write one, or leave the key out; an empty text is \"\"";
        self.review.problem_at(node.at, path, "has no value", remedy);
        Fit::Misfit
    }

    fn items(&mut self, items: &mut [Node], schema: &'a Json, path: &Path) -> Fit {
        for (n, item) in items.iter_mut().enumerate() {
            if self.node(item, schema, &path.index(n)) == Fit::Misfit {
                // Cut out it would move the items after it.
                *item = self.stand_in(schema, item.at);
                self.review.stand_in(path.index(n));
            }
        }
        Fit::Fits
    }

    fn mapping(&mut self, node: &mut Node, alternatives: &[&'a Json], path: &Path) -> Fit {
        let objects: Vec<&'a Json> =
            alternatives.iter().copied().filter(|schema| has_type(schema, "object")).collect();
        let Value::Map(entries) = &mut node.value else { return Fit::Misfit };
        let Some(first) = objects.first().copied() else {
            if let [entry] = entries.as_slice()
                && let Some(remedy) = planned::remedy(&path.key(&entry.key).words())
            {
                self.review.problem_at(entry.at, &path.key(&entry.key), NOT_IN_THIS_VERSION, remedy);
                return Fit::Misfit;
            }
            return self.wrong_kind(node, alternatives, path);
        };
        let fits = |schema: &&&Json| entries.iter().any(|entry| schema.pointer_key(&entry.key).is_some());
        let fitting = objects.iter().find(fits).copied();
        let schema = fitting.unwrap_or(first);
        self.drop_repeated(entries, path);
        let written = std::mem::take(entries);
        for mut entry in written {
            if self.entry(&mut entry, schema, alternatives, path) == Fit::Fits {
                entries.push(entry);
            }
        }
        if fitting.is_none() && alternatives.iter().filter(|schema| !has_type(schema, "null")).count() > 1 {
            // No key of any form this could have: what is unknown was said, what is missing nobody knows.
            if self.review.is_sound(path) {
                return self.wrong_kind(node, alternatives, path);
            }
            return Fit::Misfit;
        }
        for key in schema.get("required").and_then(Json::as_array).into_iter().flatten() {
            let Some(key) = key.as_str().filter(|key| !entries.iter().any(|entry| entry.key == *key)) else {
                continue;
            };
            let of_key = schema.pointer_key(key).unwrap_or(&Json::Null);
            let place = path.key(key);
            // Unless it is there and wrong, which was said already.
            if self.review.is_sound(&place) {
                self.review.problem_at(node.at, &place, "is missing", first_line(of_key));
            }
            let stand_in = self.stand_in(of_key, node.at);
            self.review.stand_in(place);
            entries.push(Entry { key: key.to_owned(), at: node.at, node: stand_in });
        }
        Fit::Fits
    }

    /// Something of the right form in the place of what is missing or wrong, so that the rest can be read.
    fn stand_in(&self, schema: &'a Json, at: Position) -> Node {
        let alternatives = self.alternatives(schema);
        let value = match alternatives.first() {
            Some(schema) if has_type(schema, "array") => Value::List(Vec::new()),
            Some(schema) if has_type(schema, "object") => {
                let required = schema.get("required").and_then(Json::as_array).into_iter().flatten();
                let entry = |key: &'a str| Entry {
                    key: key.to_owned(),
                    at,
                    node: self.stand_in(schema.pointer_key(key).unwrap_or(&Json::Null), at),
                };
                Value::Map(required.filter_map(Json::as_str).map(entry).collect())
            }
            Some(schema) => {
                let word = schema.get("const").and_then(Json::as_str).unwrap_or_default();
                Value::Text(Text::plain(word.to_owned()))
            }
            None => Value::Null,
        };
        Node { at, value }
    }

    fn entry(&mut self, entry: &mut Entry, schema: &'a Json, alternatives: &[&'a Json], path: &Path) -> Fit {
        let place = path.key(&entry.key);
        if let Some(schema) = schema.pointer_key(&entry.key) {
            return self.node(&mut entry.node, schema, &place);
        }
        if let Some(schema @ Json::Object(_)) = schema.get("additionalProperties") {
            return self.node(&mut entry.node, schema, &place);
        }
        if let Some(remedy) = planned::remedy(&place.words()) {
            let at = entry.at;
            self.review.problem_at(at, &place, NOT_IN_THIS_VERSION, remedy);
        } else {
            let known: Vec<&str> = alternatives
                .iter()
                .filter_map(|schema| schema.get("properties"))
                .filter_map(Json::as_object)
                .flatten()
                .filter(|(_, property)| property.get(HOSTS).is_none())
                .map(|(key, _)| key.as_str())
                .collect();
            self.review.problem_at(entry.at, &place, "unknown key", suggestion(&entry.key, &known));
        }
        Fit::Misfit
    }

    fn drop_repeated(&mut self, entries: &mut Vec<Entry>, path: &Path) {
        let mut first: Vec<(String, u64)> = Vec::new();
        entries.retain(|entry| {
            let before = first.iter().find(|(key, _)| *key == entry.key).map(|(_, line)| *line);
            if let Some(line) = before {
                let what = format!("stands twice, first in line {line}");
                self.review.problem_at(entry.at, &path.key(&entry.key), what, "keep one of them");
                return false;
            }
            first.push((entry.key.clone(), entry.at.line));
            true
        });
    }

    fn wrong_kind(&mut self, node: &Node, alternatives: &[&'a Json], path: &Path) -> Fit {
        let wanted = scalar::wanted(alternatives);
        let what = format!("{} is wanted, not {}", wanted.what, node.kind());
        self.review.problem_at(node.at, path, what, wanted.remedy);
        Fit::Misfit
    }

    fn refuse_planned(&mut self, node: &Node, path: &Path, remedy: &str) {
        let what = match node.text() {
            Some(_) => format!("what is written here {NOT_IN_THIS_VERSION}"),
            None => NOT_IN_THIS_VERSION.to_owned(),
        };
        self.review.problem_at(node.at, path, what, remedy);
    }

    /// The schemas one of which must fit, references resolved.
    fn alternatives(&self, schema: &'a Json) -> Vec<&'a Json> {
        if let Some(reference) = schema.get("$ref").and_then(Json::as_str) {
            let target = reference.strip_prefix('#').and_then(|pointer| self.schema.pointer(pointer));
            return target.map(|target| self.alternatives(target)).unwrap_or_default();
        }
        match schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Json::as_array) {
            Some(alternatives) => alternatives.iter().flat_map(|schema| self.alternatives(schema)).collect(),
            None => vec![schema],
        }
    }
}

const NOT_IN_THIS_VERSION: &str = "is not available in this version";

/// Finding a key of an object's schema.
trait PointerKey {
    fn pointer_key(&self, key: &str) -> Option<&Json>;
}

impl PointerKey for Json {
    fn pointer_key(&self, key: &str) -> Option<&Json> {
        self.get("properties")?.get(key)
    }
}

fn has_type(schema: &Json, kind: &str) -> bool {
    match schema.get("type") {
        Some(Json::String(only)) => only == kind,
        Some(Json::Array(several)) => several.iter().any(|one| one == kind),
        _ => false,
    }
}

fn is(alternatives: &[&Json], kind: &str) -> bool {
    alternatives.iter().any(|schema| has_type(schema, kind))
}

/// Shows the spelling only where a secret has no place: at words, numbers, durations, sizes and addresses.
fn scalar_problem(text: &Text, wanted: &scalar::Wanted) -> String {
    if wanted.may_be_shown && text.written.chars().count() <= 40 {
        format!("{} is wanted, not `{}`", wanted.what, text.written)
    } else {
        format!("{} is wanted, not a single value", wanted.what)
    }
}

/// What the schema says a key is for.
fn first_line(schema: &Json) -> &str {
    let description = schema.get("description").and_then(Json::as_str).unwrap_or_default();
    description.lines().next().unwrap_or_default().trim_end_matches('.')
}

fn suggestion(key: &str, known: &[&str]) -> String {
    let alias = ALSO_KNOWN_AS.iter().find(|(alias, ours)| *alias == key && known.contains(ours));
    match alias.map(|(_, ours)| *ours).or_else(|| nearest(key, known.iter().copied())) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => "leave it out".to_owned(),
        None => format!("known here: {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests;
