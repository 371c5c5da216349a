//! Replicas of one gateway, as written.

use schemars::JsonSchema;
use serde::Deserialize;

use super::Address;
use crate::settings::cluster;
use crate::settings::units::Span;

/// How replicas of one gateway find and trust each other.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Cluster {
    /// Where other replicas come in. They speak TLS there, with keys that are new at each start.
    #[serde(default = "default_listen")]
    pub listen: Address,
    /// What other replicas dial to reach this one, such as `${POD_IP}:8081`; needed if `listen` names no single
    /// address.
    pub advertise: Option<String>,
    /// The secret keys that all replicas share; what they store and what clients carry is sealed with them.
    pub keys: ClusterKeys,
    /// How long a replica that says nothing counts as alive; its sessions go on elsewhere after that.
    #[serde(default = "default_lease")]
    pub lease: Span,
}

/// Where the keys of the cluster are.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClusterKeys {
    /// A file with a line of base64 for each key of 32 bytes: the first seals, all open. Empty lines and lines that
    /// begin with `#` do not count.
    ///
    /// A new key goes **behind** the others first: "Rotate the cluster keys" in operations.md has the three steps.
    ///
    /// `head -c 32 /dev/urandom | base64` makes one. A relative path begins at the config file. The file is read
    /// again when it changes.
    pub file: String,
}

fn default_listen() -> Address {
    Address(cluster::LISTEN)
}

fn default_lease() -> Span {
    Span(cluster::LEASE)
}
