//! A config file as a tree in which every node knows where it stands.
//!
//! Scalars stay text: what a scalar means is decided by the key it stands at, so `command: yes` is the word `yes`
//! and `--version 1.10` keeps its zero. Knows YAML (JSON is part of it), nothing of the gateway's keys.

mod into_types;
mod parse;

use std::fmt;

pub(super) use parse::parse;

/// One node of the tree.
#[derive(Clone)]
pub(super) struct Node {
    /// Where it begins.
    pub(super) at: Position,
    /// What it is.
    pub(super) value: Value,
}

/// What a node is.
#[derive(Clone)]
pub(super) enum Value {
    /// Nothing, `null` or `~`.
    Null,
    /// A scalar.
    Text(Text),
    /// A sequence.
    List(Vec<Node>),
    /// A mapping, in the order of the file; a key may stand in it twice until it is checked.
    Map(Vec<Entry>),
}

/// A scalar.
#[derive(Clone)]
pub(super) struct Text {
    /// As it stands in the file: may be shown, unless it is a secret by its place.
    pub(super) written: String,
    /// With `${NAME}` replaced; never shown.
    pub(super) meant: String,
}

/// One key of a mapping and what stands at it.
#[derive(Clone)]
pub(super) struct Entry {
    /// The key.
    pub(super) key: String,
    /// Where the key stands.
    pub(super) at: Position,
    /// Its value.
    pub(super) node: Node,
}

/// A place in a file, counted from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: u64,
    /// The column, in characters.
    pub column: u64,
}

/// The way from the root to a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Path(Vec<Step>);

/// One step of a [`Path`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Into a mapping.
    Key(String),
    /// Into a sequence.
    Index(usize),
}

// === impl Node ===

impl Node {
    /// An empty mapping at the head of a file.
    pub(super) fn empty() -> Self {
        Self { at: Position { line: 1, column: 1 }, value: Value::Map(Vec::new()) }
    }

    /// What stands at `key`, if this is a mapping.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        self.entries().iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }

    /// The entries of a mapping; none for anything else.
    pub(super) fn entries(&self) -> &[Entry] {
        if let Value::Map(entries) = &self.value { entries } else { &[] }
    }

    /// The meaning of a scalar.
    pub(super) fn text(&self) -> Option<&str> {
        if let Value::Text(text) = &self.value { Some(&text.meant) } else { None }
    }

    /// Where `path` leads: at a key where there is one, else as far along the way as there is something.
    pub(super) fn position(&self, path: &Path) -> Position {
        let mut here = self;
        let mut at = self.at;
        for step in &path.0 {
            match (step, &here.value) {
                (Step::Key(key), Value::Map(entries)) => {
                    let Some(entry) = entries.iter().find(|entry| entry.key == *key) else { return at };
                    at = entry.at;
                    here = &entry.node;
                }
                (Step::Index(index), Value::List(items)) => {
                    let Some(item) = items.get(*index) else { return at };
                    at = item.at;
                    here = item;
                }
                _ => return at,
            }
        }
        at
    }

    /// A word for what it is.
    pub(super) fn kind(&self) -> &'static str {
        match &self.value {
            Value::Null => "nothing",
            Value::Text(_) => "a single value",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }
}

// A tree holds secrets: what is printed of it is its shape.
impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}:{}", self.kind(), self.at.line, self.at.column)
    }
}

// === impl Text ===

impl Text {
    /// A scalar without references.
    pub(super) fn plain(text: String) -> Self {
        Self { meant: text.clone(), written: text }
    }
}

// === impl Path ===

impl Path {
    /// The path of these keys.
    pub(super) fn of<'a>(keys: impl IntoIterator<Item = &'a str>) -> Self {
        Self(keys.into_iter().map(|key| Step::Key(key.to_owned())).collect())
    }

    /// One key further.
    pub(super) fn key(&self, key: &str) -> Self {
        self.then(Step::Key(key.to_owned()))
    }

    /// One item further.
    pub(super) fn index(&self, index: usize) -> Self {
        self.then(Step::Index(index))
    }

    /// Whether this is `other` or lies beneath it.
    pub(super) fn is_within(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// Whether it is the root.
    pub(super) fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The steps as words; items are `*`.
    pub(super) fn words(&self) -> Vec<&str> {
        self.0.iter().map(|step| if let Step::Key(key) = step { key.as_str() } else { "*" }).collect()
    }

    fn then(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, step) in self.0.iter().enumerate() {
            match step {
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Key(key) => {
                    let dot = if n == 0 { "" } else { "." };
                    if !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "_-$".contains(c))
                    {
                        write!(f, "{dot}{key}")?;
                    } else {
                        write!(f, "{dot}{key:?}")?;
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
