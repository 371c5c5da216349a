//! `mcpgate schema`: the JSON Schema of the config file, or the same as a page to read.

use std::io::Write as _;

use clap::Args;

use super::failure::Failure;
use crate::settings::{markdown, schema};

/// Print the JSON Schema of the config file.
#[derive(Debug, Args)]
pub(super) struct Schema {
    /// Print the page of all keys (docs/configuration.md) instead.
    #[arg(long)]
    markdown: bool,
}

// === impl Schema ===

impl Schema {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let text = if self.markdown { markdown() } else { format!("{:#}\n", schema()) };
        match std::io::stdout().write_all(text.as_bytes()) {
            // `mcpgate schema | head` has seen enough.
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(()),
        }
    }
}
