//! From a file, or the command line, to [`Settings`]: every problem at once, each with its place and remedy.
//!
//! file -> tree with positions -> hosts' keys translated -> `${NAME}` replaced -> checked against the schema ->
//! written types -> `resolve`; files that `include` names go the same way. This is the only place where the environment and secret files are read.

mod files;

use std::net::SocketAddr;
use std::path::{Path as FilePath, PathBuf};

use secrecy::SecretString;

use super::Settings;
use super::check::Checker;
use super::environment::Environment;
use super::parts::Parts;
use super::problem::{Problems, Remark, Review};
use super::sources::Sources;
use super::tree::{Node, Path, parse};
use super::written::Listen;

/// A configuration that can be served.
#[derive(Debug)]
pub struct Loaded {
    /// What it means.
    pub settings: Settings,
    /// What the operator should know, though it is no mistake.
    pub warnings: Vec<Remark>,
    /// What is wrong with files that keep their old state; only after [`Loader::load_again`].
    pub kept: Vec<Remark>,
    /// What each file says, for [`Loader::load_again`].
    pub parts: Parts,
    /// The files it came from.
    pub sources: Sources,
}

/// Where a configuration comes from; it can be loaded again.
#[derive(Clone, Debug)]
pub struct Loader {
    origin: Origin,
    listen: Option<SocketAddr>,
    admin: Option<Listen>,
    environment: Environment,
}

/// What a configuration is made from.
#[derive(Clone, Debug)]
enum Origin {
    File(PathBuf),
    Command { name: String, command: String, args: Vec<String> },
    Url { name: String, url: String },
}

// === impl Loaded ===

impl Loaded {
    fn new(parts: Parts, warnings: Vec<Remark>, kept: Vec<Remark>, sources: Sources) -> Self {
        Self { settings: parts.settings(), warnings, kept, parts, sources }
    }
}

// === impl Settings ===

impl Settings {
    /// Loads a config file with the environment of this process.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn load(path: &FilePath) -> Result<Loaded, Problems> {
        Loader::of_file(path).load()
    }

    /// The settings for one server that is started as a child process.
    ///
    /// # Errors
    /// The name is not legal.
    pub fn for_command(name: &str, command: &str, args: &[String]) -> Result<Loaded, Problems> {
        Loader::of_command(name, command, args).load()
    }

    /// The settings for one server that is called at `url`.
    ///
    /// # Errors
    /// The name or the URL is not legal.
    pub fn for_url(name: &str, url: &str) -> Result<Loaded, Problems> {
        Loader::of_url(name, url).load()
    }
}

// === impl Loader ===

impl Loader {
    /// From a config file.
    pub fn of_file(path: &FilePath) -> Self {
        Self::of(Origin::File(path.to_owned()))
    }

    /// For one server that is started as a child process.
    pub fn of_command(name: &str, command: &str, args: &[String]) -> Self {
        Self::of(Origin::Command { name: name.to_owned(), command: command.to_owned(), args: args.to_vec() })
    }

    /// For one server that is called at `url`.
    pub fn of_url(name: &str, url: &str) -> Self {
        Self::of(Origin::Url { name: name.to_owned(), url: url.to_owned() })
    }

    /// Overrides `listen`.
    #[must_use]
    pub fn listen_on(self, listen: Option<SocketAddr>) -> Self {
        Self { listen, ..self }
    }

    /// Overrides `admin.listen`.
    #[must_use]
    pub fn admin_on(self, admin: Option<Listen>) -> Self {
        Self { admin, ..self }
    }

    /// Takes variables from `environment` instead of this process.
    #[must_use]
    pub fn with_environment(self, environment: Environment) -> Self {
        Self { environment, ..self }
    }

    /// Reads everything; it must all be right.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub fn load(&self) -> Result<Loaded, Problems> {
        let mut sources = Sources::default();
        match self.first(&mut sources) {
            Ok((parts, warnings)) => Ok(Loaded::new(parts, warnings, Vec::new(), sources)),
            Err(remarks) => Err(Problems { remarks, sources }),
        }
    }

    /// Reads everything anew; a file that is wrong keeps the state it has in `before`.
    ///
    /// # Errors
    /// Everything that is wrong, if nothing can take effect.
    pub fn load_again(&self, before: &Parts) -> Result<Loaded, Problems> {
        let mut sources = Sources::default();
        match self.again(before, &mut sources) {
            Ok((parts, warnings, kept)) => Ok(Loaded::new(parts, warnings, kept, sources)),
            Err(remarks) => Err(Problems { remarks, sources }),
        }
    }

    fn of(origin: Origin) -> Self {
        Self { origin, listen: None, admin: None, environment: Environment::of_process() }
    }
}

/// Reads the tree of a YAML file and begins its review.
pub(super) fn read_tree(file: &FilePath, sources: &mut Sources) -> Result<(Node, Review), Remark> {
    tree_of(file, sources.read(file))
}

/// The same for a file that was read.
fn tree_of(file: &FilePath, bytes: std::io::Result<Vec<u8>>) -> Result<(Node, Review), Remark> {
    let bytes = bytes.map_err(|error| {
        let remedy = "name a file that this user may read";
        Remark::on_file(file, format!("cannot be read: {error}"), remedy)
    })?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Remark::on_file(file, "is not UTF-8 text", "save it as UTF-8"))?;
    let tree = parse(text.trim_start_matches('\u{feff}')).map_err(|error| Remark {
        at: error.at,
        ..Remark::on_file(
            file,
            format!("is not YAML: {}", error.what),
            "mend the syntax; the rest is checked then",
        )
    })?;
    Ok((tree.clone(), Review::new(file, tree)))
}

/// Checks the tree and turns what is left of it into types.
pub(super) fn typed<T: serde::de::DeserializeOwned + Default>(
    mut tree: Node,
    schema: &serde_json::Value,
    review: &mut Review,
) -> T {
    Checker::new(schema, review).check(&mut tree);
    tree.read().unwrap_or_else(|mismatch| {
        // The check is as strict as the types; if it ever is not, this says so instead of hiding it.
        review.problem(&Path::default(), format!("cannot be understood: {mismatch}"), "");
        T::default()
    })
}

/// A secret is a file's text without the newline that editors and `kubectl` leave at its end.
pub(super) fn secret_of(mut bytes: Vec<u8>) -> Option<SecretString> {
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
    }
    String::from_utf8(bytes).ok().map(SecretString::from)
}
