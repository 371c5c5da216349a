//! Real clients and real servers, those that people use, and the protocol's own conformance suite.
//!
//! They come from the package registries, at the versions that `tests/kit/setup.sh` names, into the folder that
//! `MCPGATE_KIT` names (`target/kit` by default). The first test that needs them installs them.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test stops where it fails, and says what it measured"
)]

mod as_client;
#[path = "../support/binary.rs"]
mod binary;
#[path = "../support/client.rs"]
mod client;
mod conformance;
mod drivers;
mod kit;
mod lossless;
#[path = "../support/process.rs"]
mod process;
mod quickstart;
mod resume;
mod rmcp;
mod rows;
mod six_servers;
mod suite;
