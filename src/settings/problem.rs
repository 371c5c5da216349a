//! What is wrong with a config, each with its place and its remedy; values are never shown, they may be secrets.

use std::fmt;
use std::path::{Path as FilePath, PathBuf};

use super::sources::Sources;
use super::tree::{Node, Path, Position};

/// One thing to say about a config: a problem or a warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The file.
    pub file: PathBuf,
    /// Where in it; line 0 means the file as a whole.
    pub at: Position,
    /// The key, such as `mcpServers.github.url`.
    pub path: String,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}

/// Everything that is wrong with a config, in the order of the file; never empty.
#[derive(Debug, thiserror::Error)]
#[error("{}", remarks.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct Problems {
    /// One for each problem.
    pub remarks: Vec<Remark>,
    /// The files that were read, or should have been: a change of one of them may mend it.
    pub sources: Sources,
}

/// Collects what there is to say about one file.
#[derive(Debug)]
pub(super) struct Review {
    file: PathBuf,
    tree: Node,
    problems: Vec<(Path, Remark)>,
    stand_ins: Vec<Path>,
    overrides: Vec<(Path, &'static str)>,
    warnings: Vec<Remark>,
}

// === impl Remark ===

impl Remark {
    /// A remark on a file as a whole.
    pub(super) fn on_file(file: &FilePath, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            at: Position::default(),
            path: String::new(),
            what: what.into(),
            remedy: remedy.into(),
        }
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if self.at.line > 0 {
            write!(f, ":{}:{}", self.at.line, self.at.column)?;
        }
        if !self.path.is_empty() {
            write!(f, ": {}", self.path)?;
        }
        write!(f, ": {}", self.what)?;
        if !self.remedy.is_empty() {
            write!(f, " ({})", self.remedy)?;
        }
        Ok(())
    }
}

// === impl Review ===

impl Review {
    /// Begins the review of `tree`, read from `file`.
    pub(super) fn new(file: &FilePath, tree: Node) -> Self {
        Self {
            file: file.to_owned(),
            tree,
            problems: Vec::new(),
            stand_ins: Vec::new(),
            overrides: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Notes a problem at `path`, unless something at or beneath it is known to be wrong: what follows from a
    /// problem is not worth a second line.
    pub(super) fn problem(&mut self, path: &Path, what: impl Into<String>, remedy: impl Into<String>) {
        if self.is_sound(path) {
            self.problem_at(self.tree.position(path), path, what, remedy);
        }
    }

    /// Notes a problem of the relation between `keys` at `path`, unless one of them is known to be wrong itself.
    pub(super) fn problem_between(
        &mut self,
        path: &Path,
        keys: [&str; 2],
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        if keys.iter().all(|key| self.is_sound(&path.key(key))) {
            self.problem_at(self.tree.position(path), path, what, remedy);
        }
    }

    /// Notes a problem at a place known better than by its path.
    pub(super) fn problem_at(
        &mut self,
        at: Position,
        path: &Path,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let remark = self.remark(at, path, what.into(), remedy.into());
        self.problems.push((path.clone(), remark));
    }

    /// Notes a warning at `path`.
    pub(super) fn warning(&mut self, path: &Path, what: impl Into<String>, remedy: impl Into<String>) {
        let remark = self.remark(self.tree.position(path), path, what.into(), remedy.into());
        self.warnings.push(remark);
    }

    /// Takes over a problem of another file.
    pub(super) fn foreign(&mut self, path: &Path, remarks: impl IntoIterator<Item = Remark>) {
        self.problems.extend(remarks.into_iter().map(|remark| (path.clone(), remark)));
    }

    /// Takes over warnings about another file.
    pub(super) fn foreign_warnings(&mut self, remarks: impl IntoIterator<Item = Remark>) {
        self.warnings.extend(remarks);
    }

    /// Where `path` leads.
    pub(super) fn position(&self, path: &Path) -> Position {
        self.tree.position(path)
    }

    /// The file.
    pub(super) fn file(&self) -> &FilePath {
        &self.file
    }

    /// Notes that a flag says what counts at `path`, whatever the file says.
    pub(super) fn overridden(&mut self, path: Path, flag: &'static str) {
        self.overrides.push((path, flag));
    }

    /// The flag that says what counts at `path`, if there is one.
    pub(super) fn flag_for(&self, path: &Path) -> Option<&'static str> {
        self.overrides.iter().find(|(overridden, _)| overridden == path).map(|(_, flag)| *flag)
    }

    /// Whether nothing is known to be wrong at or beneath `path`, nor with the file as a whole.
    pub(super) fn is_sound(&self, path: &Path) -> bool {
        !self.stand_ins.iter().any(|stand_in| path.is_within(stand_in))
            && !self.problems.iter().any(|(wrong, _)| wrong.is_within(path) || wrong.is_root())
    }

    /// Notes that what stands at `path` is not what was written, so that nothing about it is worth saying.
    pub(super) fn stand_in(&mut self, path: Path) {
        self.stand_ins.push(path);
    }

    /// Ends the review: the warnings, or the problems.
    pub(super) fn verdict(self) -> Result<Vec<Remark>, Vec<Remark>> {
        let mut problems: Vec<Remark> = self.problems.into_iter().map(|(_, remark)| remark).collect();
        // A stable sort: problems of other files stay together after the key that names the file.
        problems.sort_by_key(|remark| (remark.file != self.file, remark.at));
        if problems.is_empty() { Ok(self.warnings) } else { Err(problems) }
    }

    fn remark(&self, at: Position, path: &Path, what: String, remedy: String) -> Remark {
        if let Some(flag) = self.flag_for(path) {
            let whole = Remark::on_file(FilePath::new("command line"), what, remedy);
            return Remark { path: flag.to_owned(), ..whole };
        }
        Remark { file: self.file.clone(), at, path: path.to_string(), what, remedy }
    }
}
