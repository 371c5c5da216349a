//! Several replicas: the Redis they share, and how they find and trust each other.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Resolver;
use crate::settings::cluster::{ClusterKey, ClusterSettings};
use crate::settings::store::StoreSettings;
use crate::settings::tree::Path;
use crate::settings::written;

/// The shortest and longest lease.
const LEASES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));
/// How a key is made.
const MAKE_A_KEY: &str = "make one with `head -c 32 /dev/urandom | base64`";

// === impl Resolver ===

impl Resolver<'_> {
    /// Both, since neither is good for anything alone.
    pub(super) fn replicas(
        &mut self,
        store: written::Store,
        cluster: Option<written::Cluster>,
    ) -> (StoreSettings, Option<ClusterSettings>) {
        let (at_store, at_cluster) = (Path::of(["store", "redis"]), Path::of(["cluster"]));
        // One that is wrong itself is spoken of below.
        let lease = cluster.as_ref().map(|cluster| cluster.lease.0).filter(|lease| is_lease(*lease));
        let several = matches!(store, written::Store::Redis(_));
        match (&store, &cluster) {
            (written::Store::Memory, Some(_)) => {
                let remedy = "leave it out, or write store.redis for several";
                self.review.problem(
                    &at_cluster,
                    "one replica needs none, and sessions are in memory",
                    remedy,
                );
            }
            // A `cluster` that does not even have the right form was spoken of.
            (written::Store::Redis(_), None) if self.review.is_sound(&at_cluster) => {
                let remedy =
                    "write cluster: { listen, advertise, keys: { file } }; replicas find each other by it";
                self.review.problem(
                    &Path::of(["store"]),
                    "says redis, which needs `cluster`, and there is none",
                    remedy,
                );
            }
            _ => {}
        }
        let store = match store {
            written::Store::Memory => StoreSettings::Memory,
            written::Store::Redis(redis) => {
                let redis = self.redis(&at_store, *redis, lease);
                redis.map_or(StoreSettings::Memory, |redis| StoreSettings::Redis(Box::new(redis)))
            }
        };
        let cluster = cluster.filter(|_| several).and_then(|cluster| self.cluster(&at_cluster, cluster));
        (store, cluster)
    }

    fn cluster(&mut self, path: &Path, written: written::Cluster) -> Option<ClusterSettings> {
        let lease = written.lease.0;
        if !is_lease(lease) {
            let remedy =
                "write 5s; a shorter one takes a busy replica for dead, a longer one waits for a dead one";
            self.review.problem(&path.key("lease"), "is not between 1s and 1m", remedy);
        }
        let advertise = self.advertise(path, written.listen.0, written.advertise);
        let keys = self.cluster_keys(&path.key("keys").key("file"), &written.keys.file);
        Some(ClusterSettings { listen: written.listen.0, advertise: advertise?, keys: keys?, lease })
    }

    fn advertise(&mut self, path: &Path, listen: SocketAddr, written: Option<String>) -> Option<String> {
        let place = path.key("advertise");
        let remedy = "write what other replicas dial, such as ${POD_IP}:8081";
        match written {
            Some(text) if is_host_and_port(&text) => return Some(text),
            Some(_) => self.review.problem(&place, "is not a host and a port", remedy),
            None if !listen.ip().is_unspecified() => return Some(listen.to_string()),
            None => {
                self.review.problem(&place, "is missing, and cluster.listen names no single address", remedy);
            }
        }
        None
    }

    fn cluster_keys(&mut self, path: &Path, written: &str) -> Option<Vec<ClusterKey>> {
        let file = self.path(written);
        let bytes = self.read(path, &file)?;
        let shown = file.display();
        let Ok(text) = std::str::from_utf8(&bytes) else {
            self.review.problem(path, format!("names {shown}, which is not text"), MAKE_A_KEY);
            return None;
        };
        let mut keys = Vec::new();
        let mut seen = BTreeSet::new();
        for (n, line) in text.lines().map(str::trim).enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let key = STANDARD.decode(line).ok().and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
            let Some(key) = key else {
                let what = format!("names {shown}, whose line {} is not base64 of 32 bytes", n + 1);
                self.review.problem(path, what, MAKE_A_KEY);
                return None;
            };
            if !seen.insert(key) {
                let what = format!("names {shown}, whose line {} stands there twice", n + 1);
                self.review.problem(path, what, "keep one of them");
                return None;
            }
            keys.push(ClusterKey::of(key));
        }
        if keys.is_empty() {
            self.review.problem(path, format!("names {shown}, which holds no key"), MAKE_A_KEY);
            return None;
        }
        Some(keys)
    }
}

fn is_lease(time: Duration) -> bool {
    (LEASES.0..=LEASES.1).contains(&time)
}

/// `host:port`, with an IPv6 address in brackets.
fn is_host_and_port(text: &str) -> bool {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return !address.ip().is_unspecified();
    }
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let legal = host.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
    !host.is_empty() && legal && port.parse::<u16>().is_ok_and(|port| port != 0)
}
