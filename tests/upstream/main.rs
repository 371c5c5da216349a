//! Links, against servers that do what the test says.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail where it stands"
)]

mod http;
mod http_faults;
#[path = "../support/http_server.rs"]
mod http_server;
mod http_sessions;
mod http_streams;
mod http_support;
