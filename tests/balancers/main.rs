//! Three replicas behind each load balancer that the docs show: what clients and the conformance suite find there is what
//! they find at one replica. No affinity: each request goes to the next replica.
//!
//! Needs haproxy, nginx and envoy (`MCPGATE_ENVOY` names it if it is not on the path), and what `tests/interop` needs.

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
#[path = "../support/client.rs"]
mod client;
mod clients;
#[path = "../support/fleet.rs"]
mod fleet;
#[path = "../support/http_server.rs"]
mod http_server;
#[path = "../interop/kit.rs"]
mod kit;
mod leaving;
#[path = "../support/process.rs"]
mod process;
#[path = "../support/redis.rs"]
mod redis_server;
#[path = "../interop/rows.rs"]
mod rows;
#[path = "../interop/suite.rs"]
mod suite;
