//! What the config may take from the process: environment variables and the path of the running program.
//!
//! Only loading asks it, and tests bring their own.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Where `${NAME}` is looked up.
#[derive(Clone)]
pub struct Environment {
    lookup: Arc<Lookup>,
    program: Option<PathBuf>,
}

type Lookup = dyn Fn(&str) -> Option<String> + Send + Sync;

// === impl Environment ===

impl Environment {
    /// That of this process.
    pub fn of_process() -> Self {
        Self { lookup: Arc::new(|name| std::env::var(name).ok()), program: std::env::current_exe().ok() }
    }

    /// A fixed one.
    pub fn of<K: Into<String>, V: Into<String>>(variables: impl IntoIterator<Item = (K, V)>) -> Self {
        let variables: BTreeMap<String, String> =
            variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { lookup: Arc::new(move |name| variables.get(name).cloned()), program: None }
    }

    /// The same with `program` as the running one.
    #[must_use]
    pub fn with_program(self, program: impl Into<PathBuf>) -> Self {
        Self { program: Some(program.into()), ..self }
    }

    /// The value of a variable; not shown anywhere.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        (self.lookup)(name)
    }

    /// The running program.
    pub(super) fn program(&self) -> Option<&PathBuf> {
        self.program.as_ref()
    }

    /// `path` with a leading `~` replaced by the home directory.
    pub(super) fn expand_home(&self, path: &str) -> PathBuf {
        match (path.strip_prefix('~'), self.get("HOME")) {
            (Some(""), Some(home)) => PathBuf::from(home),
            (Some(rest), Some(home)) if rest.starts_with('/') => {
                PathBuf::from(home).join(rest.trim_start_matches('/'))
            }
            _ => PathBuf::from(path),
        }
    }
}

// Variables hold secrets.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").field("program", &self.program).finish_non_exhaustive()
    }
}
