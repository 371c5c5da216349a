//! The configuration as it is written: the file's own shape, one struct per concern.
//!
//! These types make the JSON Schema and `docs/configuration.md`: what stands in a `///` here is what an operator
//! reads. Nothing here is validated beyond its own form; `resolve` turns it into [`super::Settings`].

mod address;
mod admin;
mod auth;
mod cluster;
mod endpoint;
mod included;
mod limits;
mod named;
mod names;
mod secret;
mod server;
mod sessions;
mod shutdown;
mod store;
mod streams;
mod timeouts;

use schemars::JsonSchema;
use serde::Deserialize;

use super::hosts;

pub(super) use address::{ADDRESS, LISTEN};
pub use address::{Address, Listen};
pub use admin::Admin;
pub(super) use auth::ASYMMETRIC;
pub use auth::{Anonymous, ApiKeys, Auth, JwtIssuer, KeyFile, KeyLine};
pub use cluster::{Cluster, ClusterKeys};
pub use endpoint::{Endpoint, EndpointSessions, EndpointTools};
pub use included::Included;
pub use limits::Limits;
pub use named::Named;
pub use names::Names;
pub use secret::Secret;
pub use server::{Isolation, Pool, Server, ServerTools, Shared};
pub use sessions::Sessions;
pub use shutdown::Shutdown;
pub use store::{Redis, Sentinel, Store};
pub use streams::Streams;
pub use timeouts::{ServerTimeouts, Timeouts};

/// The configuration of mcpgate.
///
/// Only `mcpServers` is needed; every other key has a default that suits one person on one machine.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(title = "mcpgate configuration", transform = hosts::add_beside_to_schema)]
pub struct Config {
    /// Where callers come in: IP address and port.
    ///
    /// An address that is not loopback needs a way in under `auth`, or `auth.anonymous: acceptedFromAnywhere`.
    pub listen: Address,
    /// What callers type to reach the gateway, such as `https://mcp.example.com`.
    ///
    /// Metadata documents and challenges are made from it. Needed with `auth.jwt` when the gateway is not on
    /// loopback, since a request's own headers are not trusted to say where it went.
    pub public_url: Option<String>,
    /// The listener for operators: health and metrics, apart from callers.
    pub admin: Admin,
    /// Where sessions and their streams are kept.
    pub store: Store,
    /// How replicas of one gateway find and trust each other; needed with `store.redis`.
    pub cluster: Option<Cluster>,
    /// Who may call, and how they show who they are.
    pub auth: Auth,
    /// The names under which callers see tools and prompts of several servers.
    pub names: Names,
    /// Extensions of the protocol that pass between callers and servers on endpoints of several servers, such as
    /// `com.example/rooms`.
    ///
    /// `io.modelcontextprotocol/tasks` and `io.modelcontextprotocol/ui` pass without being listed, and on
    /// `/servers/{server}/mcp` every extension does.
    pub extensions: Vec<String>,
    /// Browser origins that may call, such as `https://app.example.com`; a request from another origin gets 403.
    ///
    /// Clients that are not browsers send no origin and are not concerned.
    pub origins: Vec<String>,
    /// How long sessions live and how many there may be.
    pub sessions: Sessions,
    /// Streams to callers and the logs from which they resume.
    pub streams: Streams,
    /// How long servers may take; `mcpServers.*.timeouts` overrides it for one server.
    pub timeouts: Timeouts,
    /// Sizes and counts that callers and servers are held to.
    pub limits: Limits,
    /// Named selections of servers and tools, each served at `/{name}/mcp`.
    pub endpoints: Named<Endpoint>,
    /// Patterns of further files with `mcpServers` in them, such as `conf.d/*.yaml`, relative to this file.
    ///
    /// They hold nothing else, and may not name a server that another file names. They are taken in the order of their
    /// paths, at most 256 of 1 MiB each. At a start every file must be right; later a bad one keeps its own old state,
    /// and the others take effect.
    pub include: Vec<String>,
    /// How the process stops after SIGTERM.
    pub shutdown: Shutdown,
    /// A directory for what should survive a restart: the last good lists of every server, and the secret keys of what
    /// clients carry.
    ///
    /// By default `$XDG_STATE_HOME/mcpgate` or `~/.local/state/mcpgate`. If it cannot be written, both are kept in
    /// memory only. Give each gateway one of its own.
    pub state_dir: Option<String>,
    /// The MCP servers behind the gateway, by name, in the shape that MCP hosts use.
    ///
    /// A name is made of up to 64 ASCII letters, digits, `_` and `-`, and begins with a letter or digit. It shows in
    /// the names of tools, in URLs, metrics and logs.
    pub mcp_servers: Named<Server>,
}
