//! The program itself under blows: killed children, a killed gateway, callers without end, servers that never start.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test stops where it fails, and says what it measured"
)]

#[path = "../support/binary.rs"]
mod binary;
mod churn;
#[path = "../support/client.rs"]
mod client;
mod first_process;
#[path = "../support/http_server.rs"]
mod http_server;
mod kept_alive;
mod kill;
#[path = "../support/process.rs"]
mod process;
mod start;
