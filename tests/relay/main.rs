//! Relaying and the catalog, as callers and servers see them on the wire.

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
mod kit;
mod limits_in_time;
mod logging;
mod merging;
mod names;
mod outcomes;
mod pages;
mod questions;
mod resources;
mod sharing;
mod smuggling;
mod upstream_sessions;
