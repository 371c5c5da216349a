//! The command line: what was typed, and which command runs. The only layer that prints.

mod check;
pub mod demo;
mod failure;
mod hash_key;
mod init;
mod logging;
mod schema;
mod serve;
mod signals;
mod source;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Parser, Subcommand};

use crate::upstream::stdio::guard;

pub use failure::Failure;
pub use logging::LogFormat;

/// A gateway for the Model Context Protocol: many servers behind one URL.
#[derive(Debug, Parser)]
#[command(name = "mcpgate", version, arg_required_else_help = true, disable_help_subcommand = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
    /// How log lines are written; `MCPGATE_LOG` says which (such as `info` or `warn,mcpgate::relay=debug`).
    #[arg(long, global = true, value_enum, default_value_t, env = "MCPGATE_LOG_FORMAT", hide_env = true)]
    log_format: LogFormat,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the servers of a config file, or a single one without a file.
    Serve(serve::Serve),
    /// Read a config file and say everything that is wrong with it.
    Check(check::Check),
    /// Print the JSON Schema of the config file.
    Schema(schema::Schema),
    /// Turn an API key into the hash that a key file holds.
    HashKey(hash_key::HashKey),
    /// A small MCP server on stdin and stdout, to try the gateway with.
    DemoServer,
    /// Kill the child processes of a gateway that is gone (the gateway starts this itself).
    #[command(hide = true)]
    Guard,
}

/// Runs the command line `args`; what is wrong is printed in one line each.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    let cli = match Cli::try_parse_from(&args) {
        Ok(cli) => cli,
        Err(error) => return failure::print_usage(&error),
    };
    let ended = match cli.command {
        Command::Serve(_) if init::is_first_process() => init::run(&args),
        _ => cli.run().map(|()| ExitCode::SUCCESS),
    };
    ended.unwrap_or_else(|failure| failure.print())
}

// === impl Cli ===

impl Cli {
    fn run(self) -> Result<(), Failure> {
        match self.command {
            Command::Serve(serve) => {
                logging::start(self.log_format)?;
                serve.run()
            }
            Command::Check(check) => check.run(),
            Command::Schema(schema) => schema.run(),
            Command::HashKey(hash_key) => hash_key.run(),
            Command::DemoServer => Ok(demo::run().context("the demo server failed")?),
            Command::Guard => Ok(guard::run().context("the guard failed")?),
        }
    }
}

#[cfg(test)]
mod tests;
