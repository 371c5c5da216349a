//! Why a command failed, and the lines and the exit code that say so.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::settings::Problems;

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// What was typed or configured cannot work: exit code 2.
    Usage(String),
    /// It could have worked and did not: exit code 1.
    Fault(anyhow::Error),
}

// === impl Failure ===

impl Failure {
    /// A usage failure: what is wrong, and what to do.
    pub(super) fn usage(what: impl fmt::Display, remedy: impl fmt::Display) -> Self {
        Self::Usage(format!("mcpgate: {what} ({remedy})"))
    }

    /// The problems of a config, one line each, how many there are, and what comes of that.
    pub(super) fn problems(problems: &Problems, so: &str) -> Self {
        let count = counted(problems.remarks.len(), "problem");
        Self::Usage(format!("{problems}\nmcpgate: {count}{so}"))
    }

    /// `address` cannot be listened on; `flag` chooses another.
    pub(super) fn bind(address: SocketAddr, flag: &str, error: &io::Error) -> Self {
        let remedy = match error.kind() {
            io::ErrorKind::AddrInUse => {
                format!("stop what listens there, or choose another address with {flag}")
            }
            io::ErrorKind::PermissionDenied => format!("choose a port over 1023 with {flag}"),
            _ => format!("choose an address of this machine with {flag}"),
        };
        let what = if error.kind() == io::ErrorKind::AddrInUse { "it is in use" } else { &error.to_string() };
        Self::usage(format_args!("cannot listen on {address}: {what}"), remedy)
    }

    /// Prints it and says how the process ends.
    #[expect(clippy::print_stderr, reason = "this is where a person reads it")]
    pub(super) fn print(&self) -> ExitCode {
        match self {
            Self::Usage(lines) => {
                eprintln!("{lines}");
                ExitCode::from(2)
            }
            Self::Fault(error) => {
                eprintln!("mcpgate: {error:#}");
                ExitCode::FAILURE
            }
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Fault(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Fault(error.into())
    }
}

/// `1 key`, `2 keys`.
pub(super) fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Prints what the command line parser has to say: help in full, a mistake in one line.
#[expect(clippy::print_stderr, reason = "this is where a person reads it")]
pub(super) fn print_usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // A closed pipe is nobody's problem here.
        let _ = error.print();
        return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
    }
    let text = error.render().to_string();
    let lines = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    let said: Vec<&str> = lines
        .filter(|line| !line.is_empty() && !line.starts_with("For more information"))
        .map(|line| line.trim_start_matches("error: "))
        .collect();
    let hint = hint(error).unwrap_or_else(|| "mcpgate --help says what there is".to_owned());
    eprintln!("mcpgate: {} ({hint})", said.join("; "));
    ExitCode::from(2)
}

/// What to do about a mistake that many make: a server's command without the `--` before it.
fn hint(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return None };
    let ContextValue::StyledStr(usage) = error.get(ContextKind::Usage)? else { return None };
    let serves = error.kind() == ErrorKind::UnknownArgument && usage.to_string().contains("mcpgate serve");
    let hint = format!("to serve the server that it starts: mcpgate serve -- {word} ...");
    (serves && !word.starts_with('-')).then_some(hint)
}

/// A config file that is not there.
pub(super) fn no_such_file(file: &Path) -> Failure {
    Failure::usage(
        format_args!("there is no config file {}", file.display()),
        "name one with --config FILE; config/quickstart.yaml is one to begin with",
    )
}
