//! mcpgate: a gateway for the Model Context Protocol.
//!
//! Layers, each of which may use those to its right:
//! `cli -> gateway -> { http, admin } -> relay -> { session, catalog -> upstream, auth } -> tenancy -> store -> protocol`;
//! `settings` and `telemetry` are the ground that everyone may use. `docs/architecture.md` is the map.

pub mod admin;
pub mod auth;
pub mod catalog;
pub mod cli;
pub mod gateway;
pub mod http;
pub mod protocol;
pub mod relay;
pub mod session;
pub mod settings;
pub mod store;
pub mod telemetry;
pub mod tenancy;
pub mod upstream;
