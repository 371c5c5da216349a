//! Where sessions are kept, as written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use super::Secret;
use crate::settings::store;
use crate::settings::units::Span;

/// Where sessions and their streams are kept.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Store {
    /// In the memory of this process: one replica, and sessions end with it.
    #[default]
    Memory,
    /// In Redis, for several replicas: a session outlives the replica it began on. Needs `cluster`.
    Redis(Box<Redis>),
}

/// A Redis server, version 6.2 or newer, or several of them: exactly one of `url`, `nodes` and `sentinel`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Redis {
    /// One server: `redis://HOST:PORT`, or `rediss://` for TLS; `/2` behind it selects database 2.
    pub url: Option<String>,
    /// Some nodes of a Redis Cluster; the others are learned from them.
    pub nodes: Vec<String>,
    /// A master that sentinels watch.
    pub sentinel: Option<Sentinel>,
    /// The ACL user; the default user if left out.
    pub username: Option<String>,
    /// The password. It never stands in a URL, which would show it.
    pub password: Option<Secret>,
    /// A PEM file with the CA of `rediss://`; the system's if left out.
    pub ca: Option<String>,
    /// What the name of every key and channel begins with. Gateways that share a server need one each.
    pub prefix: String,
    /// How long one command may take. After that the store counts as unreachable.
    pub timeout: Span,
}

/// A master that sentinels watch.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Sentinel {
    /// The name that the sentinels know the master by.
    pub master: String,
    /// The sentinels: `redis://HOST:PORT`, or `rediss://` for TLS.
    pub urls: Vec<String>,
    /// The ACL user of the sentinels.
    pub username: Option<String>,
    /// The password of the sentinels.
    pub password: Option<Secret>,
    /// Whether the master is spoken to over TLS; as the sentinels are if left out.
    pub tls: Option<bool>,
}

// === impl Store ===

// Only the default is ever shown: in the schema.
impl Serialize for Store {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self {
            Self::Memory => "memory",
            Self::Redis(_) => "redis",
        })
    }
}

// === impl Redis ===

impl Default for Redis {
    fn default() -> Self {
        Self {
            url: None,
            nodes: Vec::new(),
            sentinel: None,
            username: None,
            password: None,
            ca: None,
            prefix: store::PREFIX.to_owned(),
            timeout: Span(store::TIMEOUT),
        }
    }
}
