//! One hash of all settings, by which replicas see whether they run the same config.
//!
//! Over what is in force: a default that is written out makes no difference. What differs between replicas of one
//! gateway by its nature (addresses, folders) is left out. Secrets count, through a digest that only holders of the
//! cluster key could try guesses against.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac;
use secrecy::{ExposeSecret as _, SecretString};

use super::servers::TransportSettings;
use super::store::{Login, RedisServers, StoreSettings};
use super::{ClusterSettings, Settings};

// === impl Settings ===

impl Settings {
    /// Tells configs apart.
    pub fn hash(&self) -> [u8; 32] {
        let keys = self.cluster.as_ref().map(|cluster| &*cluster.keys).unwrap_or_default();
        let key = keys.first().map_or([0; 32], |key| *key.expose());
        let mut all = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, &key));
        // Secrets are redacted in it.
        all.update(format!("{:?}", self.shared()).as_bytes());
        for secret in self.secrets() {
            all.update(digest(&SHA256, secret.expose_secret().as_bytes()).as_ref());
        }
        let mut hash = [0; 32];
        hash.iter_mut().zip(all.sign().as_ref()).for_each(|(to, from)| *to = *from);
        hash
    }

    /// What is the same for all replicas.
    fn shared(&self) -> Self {
        let nowhere = Self::default().listen;
        let cluster = self.cluster.as_ref().map(|cluster| ClusterSettings {
            listen: nowhere,
            advertise: String::new(),
            keys: Vec::new(),
            lease: cluster.lease,
        });
        Self { listen: nowhere, admin: None, state_dir: None, cluster, ..self.clone() }
    }

    /// All secrets, each kind in an order of its own.
    fn secrets(&self) -> impl Iterator<Item = &SecretString> {
        let of_store = match &self.store {
            StoreSettings::Memory => Vec::new(),
            StoreSettings::Redis(redis) => {
                let watched = match &redis.servers {
                    RedisServers::Sentinel(sentinel) => Some(&sentinel.login),
                    RedisServers::Single { .. } | RedisServers::Cluster(_) => None,
                };
                let password = |login: &'_ Login| login.password.is_some();
                [Some(&redis.login), watched].into_iter().flatten().filter(|login| password(login)).collect()
            }
        };
        let of_servers = self.servers.iter().flat_map(|server| match &server.transport {
            TransportSettings::Stdio(stdio) => stdio.env.values().collect::<Vec<_>>(),
            TransportSettings::Http(http) => http.headers.iter().map(|(_, value)| value).collect(),
        });
        of_store.into_iter().filter_map(|login| login.password.as_ref()).chain(of_servers)
    }
}
