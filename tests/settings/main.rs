//! The config file from outside: what is accepted, what it means, and what is said about mistakes.

#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail this way")]

mod command_line;
mod files;
mod included;
mod mistakes;
mod replicas;
mod secrets;
mod support;
mod understood;
mod watched;
