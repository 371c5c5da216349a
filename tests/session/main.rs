//! Sessions and streams of legacy callers, as they look on the wire.

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
#[path = "../support/raw.rs"]
mod raw;

mod batch;
mod caps;
mod drain;
mod expiry;
mod large_list;
mod lifecycle;
mod log_bounds;
mod polling;
mod resume;
mod slow_reader;
mod standalone;
mod strangers;
mod timely;
