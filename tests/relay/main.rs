//! Relaying and the catalog, as callers and servers see them on the wire.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    reason = "a test stops where it fails, and its helpers read better without borrows"
)]

#[path = "../support/client.rs"]
mod client;
#[path = "../support/gateway.rs"]
mod gateway;
#[path = "../support/http_server.rs"]
mod http_server;

mod cancelling;
mod children;
mod fidelity;
mod greeting;
mod ids;
mod keeping;
mod kit;
mod limits_in_time;
mod logging;
mod merging;
mod names;
mod outcomes;
mod pages;
mod questions;
mod reloading;
mod resources;
mod sharing;
mod smuggling;
mod upstream_sessions;
