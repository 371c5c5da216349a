//! Several replicas over one store: any of them serves any session, and none is lost with its replica.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::print_stderr,
    reason = "a test stops where it fails, and its helpers read better without borrows"
)]

#[path = "../support/binary.rs"]
mod binary;
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
#[path = "../support/fleet.rs"]
mod fleet;
#[path = "../support/gateway.rs"]
mod gateway;
#[path = "../support/http_server.rs"]
mod http_server;
#[path = "../support/process.rs"]
mod process;
#[path = "../support/redis.rs"]
mod redis_server;

#[path = "../eras/kit.rs"]
#[allow(dead_code, reason = "each test area uses a part of it")]
mod kit;

mod addresses;
mod adopting;
mod bounds;
mod caps;
mod cut_store;
mod draining;
mod edges;
mod forwarding;
mod listening;
mod lists;
mod lost_store;
mod modern;
mod paused;
mod processes;
mod replicas;
mod rotating;
mod subscriptions;
