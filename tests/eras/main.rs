//! Callers and servers of both eras, in every pairing, on the same URLs.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    reason = "a test stops where it fails, and its helpers read better without borrows"
)]

#[path = "../support/client.rs"]
mod client;
#[path = "../auth/support.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    clippy::new_ret_no_self,
    reason = "another area's keys and tokens; a part of them is used here"
)]
mod credentials;
#[path = "../support/gateway.rs"]
mod gateway;
#[path = "../support/http_server.rs"]
mod http_server;

mod asked;
mod attribution;
mod caching;
mod discover;
mod edge;
mod era_change;
mod extensions;
mod http_servers;
mod kit;
mod leaving;
mod legacy_callers;
mod listening;
mod pairings;
mod parked;
mod rounds;
mod sessionless;
mod stdio_servers;
mod subscriptions;
mod tasks;
mod tasks_core;
mod to_modern;
