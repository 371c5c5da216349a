//! The HTTP surface: what callers may send, and what they get for it.

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
#[path = "../support/h2.rs"]
mod h2;
#[path = "../support/http_server.rs"]
mod http_server;
#[path = "../support/raw.rs"]
mod raw;

mod accept;
mod cors;
mod depth;
mod garbage;
mod metadata;
mod methods;
mod metrics;
mod operators;
mod paths;
mod protocols;
mod secrets;
mod session_header;
mod sizes;
mod slow;
mod smuggled;
mod tokens;
mod versions;
