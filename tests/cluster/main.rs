//! Several replicas over one store: any of them serves any session, and none is lost with its replica.

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

mod adopting;
mod bounds;
mod cut_store;
mod draining;
mod forwarding;
mod replicas;
