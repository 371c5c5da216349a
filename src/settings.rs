//! The configuration as it is meant: validated, with durations, addresses and secrets resolved.
//!
//! [`written`] holds the file's own shape; [`Loader`] turns one into the other and reports every problem at once.
//! Other modules take the part that concerns them, never the whole.

pub mod auth;
mod calendar;
mod check;
pub mod cluster;
pub mod endpoints;
mod environment;
mod hash;
mod hosts;
mod include;
mod interpolate;
mod load;
mod parts;
mod planned;
mod problem;
mod resolve;
mod schema;
pub mod servers;
mod sources;
pub mod star;
pub mod store;
mod tree;
mod units;
pub mod watch;
pub mod written;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use url::Url;

pub use auth::AuthSettings;
pub use cluster::{ClusterKey, ClusterSettings};
pub use endpoints::EndpointSettings;
pub use environment::Environment;
pub use load::{Loaded, Loader};
pub use parts::Parts;
pub use problem::{Problems, Remark};
pub use schema::{markdown, schema};
pub use servers::ServerSettings;
pub use sources::Sources;
pub use store::{RedisSettings, StoreSettings};
pub use tree::Position;

/// Everything the gateway is told by its configuration.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where callers come in.
    pub listen: SocketAddr,
    /// What callers type; metadata documents and challenges are made from it. No trailing slash in its path.
    pub public_url: Option<Url>,
    /// Where health and metrics are served; `None` serves none.
    pub admin: Option<SocketAddr>,
    /// Where sessions are kept.
    pub store: StoreSettings,
    /// How replicas find and trust each other; there with [`StoreSettings::Redis`], and never without.
    pub cluster: Option<ClusterSettings>,
    /// Ways in.
    pub auth: AuthSettings,
    /// Qualified names.
    pub names: NameSettings,
    /// Which browser origins may call.
    pub origins: Vec<String>,
    /// Lifetimes and caps of sessions.
    pub sessions: SessionSettings,
    /// Streams and their logs.
    pub streams: StreamSettings,
    /// Sizes and counts that callers and servers are held to.
    pub limits: LimitSettings,
    /// Extensions of the protocol that pass on endpoints of several servers, beside those that are known.
    pub extensions: Vec<String>,
    /// Named selections, served at `/{name}/mcp`, in config order.
    pub endpoints: Vec<EndpointSettings>,
    /// How the process stops.
    pub shutdown: ShutdownSettings,
    /// Where last good catalogs are kept; `None` keeps them in memory only.
    pub state_dir: Option<PathBuf>,
    /// The servers, in config order.
    pub servers: Vec<Arc<ServerSettings>>,
}

/// How qualified names are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameSettings {
    /// Has `{server}` and `{tool}` in it.
    pub template: String,
    /// The longest name a caller sees, in characters.
    pub max_length: usize,
}

/// Lifetimes and caps of sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSettings {
    /// A session without activity ends after this.
    pub idle: Duration,
    /// The session of a caller without an id ends after this without activity.
    pub implicit_idle: Duration,
    /// A session ends after this in any case.
    pub max_age: Duration,
    /// How many may live over all replicas; at the cap `initialize` gets 503 with `Retry-After`.
    pub max: usize,
    /// How many one principal may have over all replicas (not for anonymous on loopback); at the cap 429 with `Retry-After`.
    pub max_per_principal: usize,
}

/// Streams and their logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamSettings {
    /// How long a POST waits for its result before it becomes a stream.
    pub grace: Duration,
    /// How often an open stream gets a comment.
    pub keep_alive: Duration,
    /// How long an ended stream can be resumed.
    pub retention: Duration,
    /// What `retry:` tells the caller to wait before it comes back.
    pub retry: Duration,
    /// Long-lived streams (GETs of sessions, listens) over all replicas; over it 503.
    pub max: usize,
    /// Events kept per session.
    pub max_events: usize,
    /// Bytes of events kept per session.
    pub max_bytes: usize,
    /// An event over this is kept outside `max_bytes`.
    pub max_event: usize,
    /// Bytes of events kept in the whole process.
    pub max_total: usize,
}

/// Sizes and counts that callers and servers are held to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitSettings {
    /// The largest request body, bytes; over it 413.
    pub body: usize,
    /// The largest message from a server, bytes; over it the call fails.
    pub message: usize,
    /// All request headers together, bytes; over it 431.
    pub headers: usize,
    /// How long the head of a request may take.
    pub header_read: Duration,
    /// How long the body of a request may take, and a caller nothing of its answer.
    pub body_read: Duration,
    /// Open connections from callers; over it new ones wait in the kernel's queue.
    pub connections: usize,
    /// Running requests of one session; over it 429.
    pub in_flight_per_session: usize,
    /// Calls of one tenant that wait for their callers' answers; over it the server gets an error to its question.
    pub parked_per_tenant: usize,
    /// `subscriptions/listen` streams open at once for one principal, over all replicas; over it 429.
    pub listens_per_principal: usize,
}

/// How the process stops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShutdownSettings {
    /// How long it serves on after readiness is off.
    pub delay: Duration,
    /// How long running calls may take after that.
    pub drain: Duration,
    /// How long a child process may take to end: half of it after its stdin is closed, half after SIGTERM.
    pub children: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            public_url: None,
            admin: Some(SocketAddr::from(([127, 0, 0, 1], 9090))),
            store: StoreSettings::default(),
            cluster: None,
            auth: AuthSettings::default(),
            names: NameSettings::default(),
            origins: Vec::new(),
            sessions: SessionSettings::default(),
            streams: StreamSettings::default(),
            limits: LimitSettings::default(),
            extensions: Vec::new(),
            endpoints: Vec::new(),
            shutdown: ShutdownSettings::default(),
            state_dir: None,
            servers: Vec::new(),
        }
    }
}

impl Default for NameSettings {
    fn default() -> Self {
        Self { template: "mcp_{server}_{tool}".to_owned(), max_length: 48 }
    }
}

impl Default for SessionSettings {
    fn default() -> Self {
        Self {
            idle: Duration::from_hours(4),
            implicit_idle: Duration::from_mins(10),
            max_age: Duration::from_hours(7 * 24),
            max: 20_000,
            max_per_principal: 100,
        }
    }
}

impl Default for StreamSettings {
    fn default() -> Self {
        Self {
            grace: Duration::from_millis(200),
            keep_alive: Duration::from_secs(15),
            retention: Duration::from_mins(10),
            retry: Duration::from_secs(1),
            max: 40_000,
            max_events: 1000,
            max_bytes: 8 << 20,
            max_event: 1 << 20,
            max_total: 1 << 30,
        }
    }
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            body: 8 << 20,
            message: 32 << 20,
            headers: 32 << 10,
            header_read: Duration::from_secs(30),
            body_read: Duration::from_secs(30),
            connections: 20_000,
            in_flight_per_session: 256,
            parked_per_tenant: 1000,
            listens_per_principal: 16,
        }
    }
}

impl Default for ShutdownSettings {
    fn default() -> Self {
        Self {
            delay: Duration::from_secs(5),
            drain: Duration::from_secs(30),
            children: Duration::from_secs(10),
        }
    }
}
