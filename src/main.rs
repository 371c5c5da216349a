//! The `mcpgate` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    mcpgate::cli::run(std::env::args_os())
}
