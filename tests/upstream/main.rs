//! Links, against servers that do what the test says.

mod http;
mod http_faults;
mod http_sessions;
mod http_streams;
mod http_support;
#[path = "../support/http_server.rs"]
mod http_server;
