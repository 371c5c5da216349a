//! Where log lines go: stderr, so that stdout stays free for what a command prints.

use std::io::IsTerminal as _;

use clap::ValueEnum;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::{EnvFilter, fmt};

use super::failure::Failure;

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
    let wanted = std::env::var(VARIABLE).unwrap_or_default();
    let filter = EnvFilter::builder()
        .with_default_directive(LevelFilter::INFO.into())
        .parse(&wanted)
        .map_err(|error| {
            Failure::usage(
                format_args!("{VARIABLE} is not a filter: {error}"),
                "write a level such as info or debug",
            )
        })?;
    let lines = fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = match format {
        LogFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| anyhow::anyhow!("cannot start logging: {error}").into())
}
