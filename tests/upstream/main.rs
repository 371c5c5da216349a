//! Links to servers, against servers that misbehave.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

mod http;
mod http_faults;
#[path = "../support/http_server.rs"]
mod http_server;
mod http_sessions;
mod http_streams;
mod http_support;
mod stdio;
