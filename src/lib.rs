//! mcpgate: a gateway for the Model Context Protocol.
//!
//! Layers, each of which may use those to its right:
//! `cli -> gateway -> { http, admin } -> relay -> { session, catalog -> upstream, auth } -> tenancy -> store -> protocol`;
//! `settings` and `telemetry` are the ground that everyone may use. `docs/architecture.md` is the map.

pub mod admin;
pub mod auth;
pub mod protocol;
pub mod settings;
pub mod telemetry;
pub mod tenancy;
