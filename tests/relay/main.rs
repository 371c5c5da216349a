//! Relaying and the catalog, as callers and servers see them on the wire.

#[path = "../support/client.rs"]
mod client;
#[path = "../support/gateway.rs"]
mod gateway;
#[path = "../support/http_server.rs"]
mod http_server;

mod children;
mod fidelity;
mod greeting;
mod kit;
mod names;
mod pages;
mod resources;
mod smuggling;
mod upstream_sessions;
