//! A directory with a config in it.

use std::path::{Path, PathBuf};

use mcpgate::settings::{Environment, Loaded, Loader, Problems};
use tempfile::TempDir;

/// A config in a directory of its own.
pub(crate) struct Config {
    dir: TempDir,
}

impl Config {
    /// A directory whose `mcpgate.yaml` holds `yaml`.
    pub(crate) fn of(yaml: &str) -> Self {
        Self { dir: tempfile::tempdir().unwrap() }.with("mcpgate.yaml", yaml)
    }

    /// One more file.
    pub(crate) fn with(self, name: &str, content: &str) -> Self {
        std::fs::write(self.dir.path().join(name), content).unwrap();
        self
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.dir.path().join("mcpgate.yaml")
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn loader(&self) -> Loader {
        Loader::of_file(&self.file()).with_environment(environment())
    }

    pub(crate) fn load(&self) -> Result<Loaded, Problems> {
        self.loader().load()
    }

    /// Loads what must be right.
    #[track_caller]
    pub(crate) fn loaded(&self) -> Loaded {
        match self.load() {
            Ok(loaded) => loaded,
            Err(problems) => panic!("{problems}"),
        }
    }

    /// What is said about a config that is wrong, one line each, without the directory.
    #[track_caller]
    pub(crate) fn problems(&self) -> Vec<String> {
        let problems = self.load().map(|loaded| format!("{:?}", loaded.settings)).expect_err("a problem");
        problems.remarks.iter().map(|remark| self.shown(remark)).collect()
    }

    /// The warnings of a config that is right.
    #[track_caller]
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.loaded().warnings.iter().map(|remark| self.shown(remark)).collect()
    }

    fn shown(&self, remark: &mcpgate::settings::Remark) -> String {
        remark.to_string().replace(&format!("{}/", self.dir.path().display()), "")
    }
}

/// What the variables of these tests are.
pub(crate) fn environment() -> Environment {
    Environment::of([("TOKEN", "s3cret-canary"), ("HOME", "/home/ada"), ("PORT", "8443"), ("MAX", "7")])
        .with_program("/opt/mcpgate/bin/mcpgate")
}
