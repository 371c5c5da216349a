//! The config file from outside: what is accepted, what it means, and what is said about mistakes.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test may fail this way"
)]

#[path = "../support/binary.rs"]
mod binary;
#[path = "../support/client.rs"]
mod client;
mod command_line;
mod files;
mod included;
mod mistakes;
#[path = "../support/process.rs"]
mod process;
mod reloaded;
mod replicas;
mod secrets;
mod support;
mod understood;
mod watched;
