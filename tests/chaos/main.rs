//! The program itself under blows: killed children, a killed gateway, callers without end, servers that never start,
//! replicas that come and go.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test stops where it fails, and says what it measured"
)]

#[path = "../support/balancer.rs"]
mod balancer;
#[path = "../support/binary.rs"]
mod binary;
mod churn;
#[path = "../support/client.rs"]
mod client;
#[path = "../support/fault_proxy.rs"]
mod fault_proxy;
mod first_process;
#[path = "../support/fleet.rs"]
mod fleet;
#[path = "../support/http_server.rs"]
mod http_server;
mod kept_alive;
mod kill;
mod outage;
#[path = "../support/process.rs"]
mod process;
#[path = "../support/redis.rs"]
mod redis_server;
mod replicas;
mod start;
mod steady;
