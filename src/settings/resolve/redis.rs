//! The Redis that replicas share: where it is, and how one comes in.

use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use url::Url;

use super::Resolver;
use crate::settings::store::{Login, RedisNode, RedisServers, RedisSettings, SentinelSettings, Wire};
use crate::settings::tree::Path;
use crate::settings::written;

const SCHEMES: &str = "write redis://HOST:PORT, or rediss://HOST:PORT for TLS";
const PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;

/// What may stand behind the address.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Behind {
    Nothing,
    Database,
}

// === impl Resolver ===

impl Resolver<'_> {
    /// `lease` is that of the cluster, which a command may not outlast.
    pub(super) fn redis(
        &mut self,
        path: &Path,
        written: written::Redis,
        lease: Option<Duration>,
    ) -> Option<RedisSettings> {
        let written::Redis { url, nodes, sentinel, username, password, ca, prefix, timeout } = written;
        let timeout = timeout.0;
        if timeout.is_zero() {
            let remedy = "write a time that something can happen in";
            self.review.problem(&path.key("timeout"), "is zero", remedy);
        } else if lease.is_some_and(|lease| timeout >= lease / 2) {
            let remedy =
                "lower it, or raise cluster.lease: a replica must be able to say twice in it that it lives";
            self.review.problem(&path.key("timeout"), "is not less than half of cluster.lease", remedy);
        }
        let legal = |c: char| c.is_ascii_alphanumeric() || "_-.:".contains(c);
        if prefix.is_empty() || prefix.len() > 64 || !prefix.chars().all(legal) {
            let remedy = "use up to 64 ASCII letters, digits, `_`, `-`, `.` and `:`";
            self.review.problem(&path.key("prefix"), "is no legal beginning of a key", remedy);
        }
        let login = self.login(path, username, password);
        let servers = match (url, nodes.as_slice(), sentinel) {
            (Some(url), [], None) => self.single(&path.key("url"), &url),
            (None, [_, ..], None) => self.nodes(&path.key("nodes"), &nodes, PORT).map(RedisServers::Cluster),
            (None, [], Some(sentinel)) => self.sentinel(&path.key("sentinel"), sentinel),
            (None, [], None) => {
                let remedy = "write one of url, nodes and sentinel";
                self.review.problem(path, "does not say where Redis is", remedy);
                None
            }
            _ => {
                let remedy =
                    "keep one: url for one server, nodes for Redis Cluster, sentinel for a watched master";
                self.review.problem(path, "has several of url, nodes and sentinel", remedy);
                None
            }
        };
        let ca = ca.map(|file| self.ca(&path.key("ca"), &file, servers.as_ref()));
        Some(RedisSettings { servers: servers?, login, ca: ca.flatten(), prefix, timeout })
    }

    fn login(&mut self, path: &Path, username: Option<String>, password: Option<written::Secret>) -> Login {
        let password = password.and_then(|password| self.secret(&path.key("password"), password));
        Login { username: username.filter(|name| !name.is_empty()), password }
    }

    fn ca(&mut self, path: &Path, file: &str, servers: Option<&RedisServers>) -> Option<Vec<u8>> {
        if servers.is_some_and(|servers| !servers.has_tls()) {
            let remedy = "write rediss:// where TLS is meant, or leave it out";
            self.review.problem(path, "means nothing without rediss://", remedy);
            return None;
        }
        let file = self.path(file);
        let pem = self.read(path, &file)?;
        let mut certificates = CertificateDer::pem_slice_iter(&pem);
        if !matches!(certificates.next(), Some(Ok(_))) {
            let what = format!("names {}, which holds no certificate in PEM", file.display());
            self.review.problem(path, what, "write the file of the CA that signed the server's certificate");
        }
        Some(pem)
    }

    fn single(&mut self, path: &Path, url: &str) -> Option<RedisServers> {
        let (node, database) = self.node(path, url, PORT, Behind::Database)?;
        Some(RedisServers::Single { node, database })
    }

    fn sentinel(&mut self, path: &Path, written: written::Sentinel) -> Option<RedisServers> {
        if written.master.is_empty() {
            self.review.problem(&path.key("master"), "is empty", "write the name the sentinels know it by");
        }
        if written.urls.is_empty() {
            self.review.problem(&path.key("urls"), "names no sentinel", SCHEMES);
        }
        let login = self.login(path, written.username, written.password);
        let sentinels = self.nodes(&path.key("urls"), &written.urls, SENTINEL_PORT)?;
        let wire = match written.tls {
            Some(true) => Wire::Tls,
            Some(false) => Wire::Plain,
            None => sentinels.first()?.wire,
        };
        let master = written.master;
        Some(RedisServers::Sentinel(SentinelSettings { master, sentinels, login, wire }))
    }

    fn nodes(&mut self, path: &Path, urls: &[String], port: u16) -> Option<Vec<RedisNode>> {
        let read: Vec<Option<RedisNode>> = urls
            .iter()
            .enumerate()
            .map(|(n, url)| self.node(&path.index(n), url, port, Behind::Nothing).map(|(node, _)| node))
            .collect();
        let nodes: Vec<RedisNode> = read.into_iter().collect::<Option<_>>()?;
        if nodes.iter().any(|node| Some(node.wire) != nodes.first().map(|first| first.wire)) {
            self.review.problem(path, "mixes redis:// and rediss://", "write the same scheme for all");
            return None;
        }
        Some(nodes)
    }

    fn node(&mut self, path: &Path, text: &str, port: u16, behind: Behind) -> Option<(RedisNode, u16)> {
        let problem = |resolver: &mut Self, what: &str, remedy: &str| {
            resolver.review.problem(path, what, remedy);
            None
        };
        let Ok(url) = Url::parse(text) else { return problem(self, "is not a URL", SCHEMES) };
        let wire = match url.scheme() {
            "redis" => Wire::Plain,
            "rediss" => Wire::Tls,
            _ => return problem(self, "is neither a redis nor a rediss URL", SCHEMES),
        };
        if !url.username().is_empty() || url.password().is_some() {
            let remedy = "write them under username and password, from the environment or a file";
            return problem(self, "has credentials in its URL", remedy);
        }
        let Some(host) = url.host_str().filter(|host| !host.is_empty()) else {
            return problem(self, "names no host", SCHEMES);
        };
        if url.query().is_some() || url.fragment().is_some() {
            return problem(self, "has a query or a fragment", SCHEMES);
        }
        let database = match url.path().trim_start_matches('/') {
            "" => 0,
            number if behind == Behind::Database => match number.parse() {
                Ok(number) => number,
                Err(_) => return problem(self, "has a path that is not the number of a database", SCHEMES),
            },
            _ => return problem(self, "has a path, and there are no databases here", SCHEMES),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Some((RedisNode { host, port: url.port().unwrap_or(port), wire }, database))
    }
}

// === impl RedisServers ===

impl RedisServers {
    /// Whether anything of it is spoken to over TLS.
    fn has_tls(&self) -> bool {
        let tls = |node: &RedisNode| node.wire == Wire::Tls;
        match self {
            Self::Single { node, .. } => tls(node),
            Self::Cluster(nodes) => nodes.iter().any(tls),
            Self::Sentinel(sentinel) => sentinel.wire == Wire::Tls || sentinel.sentinels.iter().any(tls),
        }
    }
}
