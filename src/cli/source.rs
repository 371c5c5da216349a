//! Where a command takes its configuration from.

use std::path::{Path, PathBuf};

use clap::Args;
use url::Url;

use super::failure::{Failure, no_such_file};
use crate::settings::Loader;

/// What is read when no file is named.
const DEFAULT_FILE: &str = "mcpgate.yaml";

/// A config file.
#[derive(Debug, Args)]
pub(super) struct ConfigFile {
    /// The config file; `mcpgate.yaml` in this directory if none is named.
    #[arg(long, short, value_name = "FILE", env = "MCPGATE_CONFIG")]
    config: Option<PathBuf>,
}

// === impl ConfigFile ===

impl ConfigFile {
    /// The file, which is there.
    pub(super) fn path(&self) -> Result<&Path, Failure> {
        match &self.config {
            Some(file) if !file.exists() => Err(no_such_file(file)),
            Some(file) => Ok(file),
            None if Path::new(DEFAULT_FILE).exists() => Ok(Path::new(DEFAULT_FILE)),
            None => Err(Failure::usage(
                format_args!("no config file is named, and there is no {DEFAULT_FILE} in this directory"),
                "name one with --config FILE, or serve a single server with -- COMMAND ARGS... or --url URL",
            )),
        }
    }

    pub(super) fn loader(&self) -> Result<Loader, Failure> {
        Ok(Loader::of_file(self.path()?))
    }
}

/// Programs that run what their arguments name.
const RUNNERS: [&str; 11] =
    ["npx", "bunx", "uvx", "pipx", "uv", "bun", "deno", "node", "python", "python3", "py"];
/// Words of theirs that stand before it.
const VERBS: [&str; 5] = ["run", "x", "exec", "tool", "task"];
/// Options of theirs that have a value, which is not it.
const WITH_VALUE: [&str; 10] = [
    "-p",
    "--package",
    "--from",
    "--with",
    "--python",
    "--directory",
    "--project",
    "--import",
    "--require",
    "-r",
];
/// Options that are followed by a program text.
const WITH_TEXT: [&str; 4] = ["-c", "-e", "--eval", "--call"];

/// The name of a server that is known by its command only: `npx -y @example/server-x` is `server-x`,
/// `/usr/bin/my.server` is `my-server`.
pub(super) fn name_of_command(command: &str, args: &[String]) -> String {
    let program = bare_file(command);
    let run = if RUNNERS.contains(&program) { what_runs(args) } else { None };
    legal_name(run.map_or(program, bare_package))
}

/// What a runner is told to run.
fn what_runs(args: &[String]) -> Option<&str> {
    let mut args = args.iter().map(String::as_str).filter(|arg| !VERBS.contains(arg));
    loop {
        match args.next()? {
            option if WITH_TEXT.contains(&option) => return None,
            option if WITH_VALUE.contains(&option) => drop(args.next()),
            option if option.starts_with('-') => {}
            named => return Some(named),
        }
    }
}

/// `@example/server-x@1.2` is `server-x`, `mcp-server-x[extra]==1.2` is `mcp-server-x`.
fn bare_package(named: &str) -> &str {
    let bare = bare_file(named);
    let end = bare.find(['@', '[', '=', '<', '>', '~', '!']).filter(|at| *at > 0);
    end.and_then(|at| bare.get(..at)).unwrap_or(bare)
}

/// The last part of a path, without an ending that tells a language.
fn bare_file(path: &str) -> &str {
    let file = path.rsplit('/').find(|part| !part.is_empty()).unwrap_or_default();
    let endings = [".py", ".js", ".mjs", ".cjs", ".ts", ".sh", ".exe"];
    endings.iter().find_map(|ending| file.strip_suffix(ending)).unwrap_or(file)
}

/// The name of a server that is known by its URL only: its host.
pub(super) fn name_of_url(url: &str) -> String {
    let host = Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
    legal_name(&host)
}

fn legal_name(text: &str) -> String {
    let legal: String =
        text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect();
    let bare = legal.trim_matches(['-', '_']);
    let short: String = bare.chars().take(64).collect();
    if short.is_empty() { "server".to_owned() } else { short }
}
