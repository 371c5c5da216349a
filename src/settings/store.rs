//! Where sessions are kept, as configured.

use std::fmt;
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};

/// Where sessions are kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum StoreSettings {
    /// In this process's memory: one replica.
    #[default]
    Memory,
    /// In Redis: any number of replicas.
    Redis(Box<RedisSettings>),
}

/// The Redis that all replicas share.
#[derive(Clone, Debug)]
pub struct RedisSettings {
    /// Where it is.
    pub servers: RedisServers,
    /// How one shows who one is to the servers.
    pub login: Login,
    /// Trust anchors for TLS, PEM; the system's if there are none.
    pub ca: Option<Vec<u8>>,
    /// What the names of all keys and channels begin with.
    pub prefix: String,
    /// How long one command may take.
    pub timeout: Duration,
}

/// Where Redis is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedisServers {
    /// One server.
    Single {
        /// Its address.
        node: RedisNode,
        /// The number of its database.
        database: u16,
    },
    /// Some nodes of a Redis Cluster; never none.
    Cluster(Vec<RedisNode>),
    /// A master that sentinels watch.
    Sentinel(SentinelSettings),
}

/// A master that sentinels watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentinelSettings {
    /// The name they know it by.
    pub master: String,
    /// Their addresses; never none.
    pub sentinels: Vec<RedisNode>,
    /// How one shows who one is to them.
    pub login: Login,
    /// How the master is spoken to.
    pub wire: Wire,
}

/// One address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisNode {
    /// A name or an IP address, without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// How it is spoken to.
    pub wire: Wire,
}

/// How a server is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// In the clear.
    Plain,
    /// Over TLS, by the name in the address.
    Tls,
}

/// How one shows who one is.
#[derive(Clone, Debug, Default)]
pub struct Login {
    /// The ACL user; the default user if there is none.
    pub username: Option<String>,
    /// The password.
    pub password: Option<SecretString>,
}

/// What the names of keys begin with, unless the config says otherwise.
pub(super) const PREFIX: &str = "mcpgate";
/// How long one command may take, unless the config says otherwise.
pub(super) const TIMEOUT: Duration = Duration::from_millis(500);

// === impl RedisSettings ===

impl PartialEq for RedisSettings {
    fn eq(&self, other: &Self) -> bool {
        // Every field is named, so that a new one cannot be forgotten.
        let Self { servers, login, ca, prefix, timeout } = self;
        *servers == other.servers
            && *login == other.login
            && *ca == other.ca
            && *prefix == other.prefix
            && *timeout == other.timeout
    }
}

// === impl Login ===

impl PartialEq for Login {
    fn eq(&self, other: &Self) -> bool {
        let secret =
            |login: &Self| login.password.as_ref().map(|password| password.expose_secret().to_owned());
        self.username == other.username && secret(self) == secret(other)
    }
}

impl Eq for Login {}

// === impl RedisNode ===

impl fmt::Display for RedisNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

// === impl RedisServers ===

impl fmt::Display for RedisServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |nodes: &[RedisNode]| nodes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        match self {
            Self::Single { node, .. } => node.fmt(f),
            Self::Cluster(nodes) => write!(f, "the cluster of {}", list(nodes)),
            Self::Sentinel(SentinelSettings { master, sentinels, .. }) => {
                write!(f, "{master}, by the sentinels {}", list(sentinels))
            }
        }
    }
}
