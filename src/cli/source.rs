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

/// The name of a server that is known by its command only: `/usr/bin/my.server` is `my-server`.
pub(super) fn name_of_command(command: &str) -> String {
    let file = Path::new(command).file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let bare = ["py", "js", "mjs", "sh", "exe"]
        .iter()
        .find_map(|ending| file.strip_suffix(ending)?.strip_suffix('.'))
        .unwrap_or(&file);
    legal_name(bare)
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
