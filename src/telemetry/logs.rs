//! Log lines: where they go, in which form, from which level on.
//!
//! `info` is for lifecycle only, never a line per request; `debug` is per request. Nothing in here has a secret to
//! print: credentials are never handed to it, and session ids only as [`short_hash`]. Text of servers and callers
//! cannot break out of its line, whichever form that has.

mod one_line;

use std::fmt::Write as _;
use std::io;

use aws_lc_rs::digest;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::util::SubscriberInitExt;

use one_line::OneLine;

/// The filter if none is given.
pub const DEFAULT_FILTER: &str = "info";

/// The form of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object per line, for collectors.
    Json,
}

/// Why logs cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum LogSetupError {
    /// The filter cannot be read.
    #[error(
        "the log filter is not understood ({0}); write a level such as `info`, or `info,mcpgate::relay=debug`"
    )]
    Filter(#[from] tracing_subscriber::filter::ParseError),
    /// Somebody has set up logs already.
    #[error("logs are set up already")]
    Twice(#[from] tracing_subscriber::util::TryInitError),
}

/// Sends the log lines of this process to stderr; `filter` is a level, or levels by module. To be called once.
///
/// # Errors
/// [`LogSetupError`] if the filter is not understood, or on a second call.
pub fn init(format: LogFormat, filter: &str) -> Result<(), LogSetupError> {
    Ok(dispatch(format, filter, io::stderr)?.try_init()?)
}

/// The same for one part of a program: lines go to `writer`.
///
/// # Errors
/// [`LogSetupError::Filter`] if the filter is not understood.
pub fn dispatch<W>(format: LogFormat, filter: &str, writer: W) -> Result<tracing::Dispatch, LogSetupError>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::builder().parse(filter)?)
        .with_writer(writer)
        .with_ansi(false);
    Ok(match format {
        LogFormat::Text => lines.map_event_format(OneLine).into(),
        LogFormat::Json => {
            lines.json().flatten_event(true).with_current_span(false).with_span_list(false).into()
        }
    })
}

/// Eight hex digits that stand for a session id, or another id that is a secret, in a log line.
pub fn short_hash(id: &str) -> String {
    let hash = digest::digest(&digest::SHA256, id.as_bytes());
    hash.as_ref().iter().take(4).fold(String::with_capacity(8), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests;
