//! A configuration of several files: what each holds, and where they contradict each other.
//!
//! When files are read again, a file that is wrong, by itself or beside the others, keeps its own old state; of two
//! files that contradict each other the one that brought it about yields.

mod yielding;

use std::path::PathBuf;
use std::sync::Arc;

use super::check::nearest;
use super::include::Pattern;
use super::problem::Remark;
use super::resolve::is_template;
use super::tree::{Path, Position};
use super::written::Timeouts;
use super::{ServerSettings, Settings};

pub(super) use yielding::{Again, Yields, unite};

/// The files of a configuration that is in force, as they were when each was right.
#[derive(Clone, Debug)]
pub struct Parts {
    pub(super) root: Root,
    pub(super) included: Vec<Part>,
}

/// The servers of one file.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) file: PathBuf,
    /// All names, also of servers that are switched off, and where they stand.
    pub(super) names: Vec<(String, Position)>,
    pub(super) servers: Vec<Arc<ServerSettings>>,
}

/// The file that all begins with.
#[derive(Clone, Debug)]
pub(super) struct Root {
    pub(super) part: Part,
    /// Everything but servers.
    pub(super) settings: Settings,
    pub(super) selections: Vec<Selection>,
    /// What holds for servers of all files.
    pub(super) timeouts: Timeouts,
    pub(super) max_message: usize,
    /// What `include` says.
    pub(super) patterns: Vec<Pattern>,
}

/// A server that an endpoint names.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    pub(super) path: Path,
    pub(super) at: Position,
    pub(super) server: String,
}

/// Two files, of which one must not be as it is; the root is number 0.
#[derive(Debug)]
pub(super) struct Clash {
    /// The sides, and what is to be said about each.
    pub(super) sides: [Side; 2],
    /// Which of them is told, if nothing else speaks for one.
    pub(super) told: usize,
    /// It is the template of names that makes them meet.
    pub(super) by_template: bool,
}

/// One side of a [`Clash`].
#[derive(Debug)]
pub(super) struct Side {
    pub(super) part: usize,
    pub(super) server: String,
    pub(super) remark: Remark,
}

// === impl Parts ===

impl Parts {
    /// What all files say together.
    pub(super) fn settings(&self) -> Settings {
        let parts = std::iter::once(&self.root.part).chain(&self.included);
        Settings {
            servers: parts.flat_map(|part| part.servers.iter().cloned()).collect(),
            ..self.root.settings.clone()
        }
    }
}

// === impl Part ===

impl Part {
    /// Whether it names a server so.
    pub(super) fn names(&self, server: &str) -> bool {
        self.names.iter().any(|(name, _)| name == server)
    }

    fn remark(&self, at: Position, server: &str, what: String, remedy: String) -> Remark {
        let path = Path::of(["mcpServers"]).key(server).to_string();
        Remark { file: self.file.clone(), at, path, what, remedy }
    }

    fn place(&self, at: Position) -> String {
        format!("{}:{}:{}", self.file.display(), at.line, at.column)
    }
}

// === impl Root ===

impl Root {
    /// What endpoints name and no part holds.
    pub(super) fn unknown<'a>(&'a self, parts: &[&Part]) -> Vec<(&'a Selection, Remark)> {
        let unknown = self.selections.iter().filter(|s| !parts.iter().any(|part| part.names(&s.server)));
        let remark = |selection: &'a Selection| {
            let known = parts.iter().flat_map(|part| part.names.iter().map(|(name, _)| name.as_str()));
            let remedy = match nearest(&selection.server, known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "name a key of mcpServers".to_owned(),
            };
            let what = format!("there is no server `{}`", selection.server);
            let path = selection.path.to_string();
            let remark = Remark { file: self.part.file.clone(), at: selection.at, path, what, remedy };
            (selection, remark)
        };
        unknown.map(remark).collect()
    }

    /// The contradictions between these parts, of which the first is the root's own.
    pub(super) fn clashes(&self, parts: &[&Part]) -> Vec<Clash> {
        let template = self.settings.names.template.as_str();
        let template = is_template(template).then_some(template);
        let all: Vec<Name<'_>> = parts
            .iter()
            .enumerate()
            .flat_map(|(number, part)| {
                part.names.iter().map(move |(name, at)| Name { number, part, name, at: *at })
            })
            .collect();
        let mut clashes = Vec::new();
        for (n, one) in all.iter().enumerate() {
            for other in all.iter().skip(n + 1) {
                if one.name == other.name {
                    clashes.push(one.same_as(other));
                    continue;
                }
                let Some(template) = template.filter(|_| one.is_on() && other.is_on()) else { continue };
                for (short, long) in [(one, other), (other, one)] {
                    if meet(template, short.name, long.name) {
                        clashes.push(long.may_be_taken_for(short, template));
                    }
                }
            }
        }
        clashes
    }
}

/// A name of a server, with its place.
struct Name<'a> {
    number: usize,
    part: &'a Part,
    name: &'a str,
    at: Position,
}

// === impl Name ===

impl Name<'_> {
    /// Whether the server is not switched off.
    fn is_on(&self) -> bool {
        self.part.servers.iter().any(|server| server.name == self.name)
    }

    fn side(&self, remark: Remark) -> Side {
        Side { part: self.number, server: self.name.to_owned(), remark }
    }

    /// Both files have it.
    fn same_as(&self, later: &Self) -> Clash {
        let say = |here: &Self, there: &Self| {
            let what = format!("`{}` stands in {} too", here.name, there.part.place(there.at));
            here.side(here.part.remark(
                here.at,
                here.name,
                what,
                "keep one of them, or rename one".to_owned(),
            ))
        };
        Clash { sides: [say(self, later), say(later, self)], told: 1, by_template: false }
    }

    /// Tools of both may get the same name.
    fn may_be_taken_for(&self, short: &Self, template: &str) -> Clash {
        let elsewhere = if self.number == short.number {
            String::new()
        } else {
            format!("; `{}` stands in {}", short.name, short.part.place(short.at))
        };
        let (short_name, long) = (short.name, self.name);
        let what = format!(
            "a tool of `{long}` and one of `{short_name}` can get the same name from names.template{elsewhere}"
        );
        let other = long.replace('_', "-");
        let remedy = if other != long && !meet(template, short_name, &other) {
            format!("rename one of them, for example `{other}`")
        } else {
            "rename one of them, or write another names.template".to_owned()
        };
        let say = |of: &Self| of.side(of.part.remark(of.at, of.name, what.clone(), remedy.clone()));
        Clash { sides: [say(short), say(self)], told: 1, by_template: true }
    }
}

/// Whether a tool of the server `short` can have the qualified name of one of `long`, as `b_c` of `a` and `c` of
/// `a_b` do in `{server}_{tool}`: if what stands fixed at the tool's side for the one begins (or, with the tool
/// first, ends) what stands there for the other. All servers share `/mcp`.
fn meet(template: &str, short: &str, long: &str) -> bool {
    let Some((before, after)) = template.split_once("{server}") else { return false };
    match (before.split_once("{tool}"), after.split_once("{tool}")) {
        (Some((_, between)), _) => format!("{between}{long}").ends_with(&format!("{between}{short}")),
        (_, Some((between, _))) => format!("{long}{between}").starts_with(&format!("{short}{between}")),
        (None, None) => false,
    }
}
