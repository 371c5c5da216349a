//! The program that a server is started with: which one is meant, and whether it is there.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path as FilePath;

use secrecy::{ExposeSecret, SecretString};

use super::Resolver;
use crate::settings::tree::Path;

/// The command that stands for the running program.
const OURSELVES: &str = "mcpgate";

// === impl Resolver ===

impl Resolver<'_> {
    /// The program: `mcpgate` is the running one, `./x` begins at the config file, anything else is left to PATH.
    pub(super) fn command(&mut self, path: &Path, command: &str) -> Option<String> {
        let place = path.key("command");
        if command.is_empty() || command.contains('\0') {
            self.review.problem(&place, "is empty", "write the program to run");
            return None;
        }
        if command == OURSELVES
            && let Some(program) = self.environment.program()
        {
            return Some(program.to_string_lossy().into_owned());
        }
        if command.contains(char::is_whitespace) && !command.contains('/') {
            let what = "holds spaces, but no shell takes it apart";
            self.review.warning(&place, what, "write the program in command and the rest in args");
        }
        let relative = command.starts_with("./") || command.starts_with("../");
        if relative || command.starts_with("~/") {
            let program = self.path(command);
            // The child may run in another directory.
            let program = std::path::absolute(&program).unwrap_or(program);
            return Some(program.to_string_lossy().into_owned());
        }
        Some(command.to_owned())
    }

    /// A program that is not there is no mistake, since it may be installed later; but somebody should know.
    pub(super) fn look_for(&mut self, path: &Path, command: &str, env: &BTreeMap<String, SecretString>) {
        let remedy = "install it, or correct the command; until then every call of this server fails";
        if self.environment.program().is_some_and(|own| own == FilePath::new(command)) {
            return;
        }
        if command.contains('/') {
            // A relative one begins where the child runs.
            if FilePath::new(command).is_absolute() && !is_program(FilePath::new(command)) {
                self.review.warning(path, "is no program that could be run now", remedy);
            }
            return;
        }
        // The child's own PATH counts.
        let own = env.get("PATH").map(|path| path.expose_secret().to_owned());
        let Some(search) = own.or_else(|| self.environment.get("PATH")) else { return };
        if !std::env::split_paths(&search).any(|folder| is_program(&folder.join(command))) {
            self.review.warning(path, "is not on PATH now", remedy);
        }
    }
}

fn is_program(file: &FilePath) -> bool {
    file.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}
