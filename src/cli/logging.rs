//! Where log lines go: stderr, so that stdout stays free for what a command prints.

use clap::ValueEnum;

use super::failure::Failure;
use crate::telemetry::logs;

/// How log lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Which lines are written.
const VARIABLE: &str = "MCPGATE_LOG";

/// Starts logging for the whole process.
pub(super) fn start(format: LogFormat) -> Result<(), Failure> {
    let wanted = std::env::var(VARIABLE).ok().filter(|filter| !filter.is_empty());
    let format = match format {
        LogFormat::Text => logs::LogFormat::Text,
        LogFormat::Json => logs::LogFormat::Json,
    };
    logs::init(format, wanted.as_deref().unwrap_or(logs::DEFAULT_FILTER)).map_err(|error| {
        Failure::usage(format_args!("logging cannot start: {error}"), format_args!("set {VARIABLE}"))
    })
}
