//! From the config as it is written to the config as it is meant: rules that span keys, files and secrets.

mod auth;
mod endpoints;
mod extensions;
mod keys;
mod program;
mod redis;
mod replicas;
mod rules;
mod servers;

use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use secrecy::SecretString;
use url::Url;

use super::environment::Environment;
use super::include::Pattern;
use super::load::secret_of;
use super::parts::{Part, Root};
use super::problem::Review;
use super::sources::Sources;
use super::tree::Path;
use super::{Settings, written};

pub(super) use rules::is_template;

/// Turns one written config into settings; what is wrong goes to the review, and the result counts only without.
pub(super) struct Resolver<'a> {
    review: &'a mut Review,
    environment: &'a Environment,
    sources: &'a mut Sources,
    base: PathBuf,
}

// === impl Resolver ===

impl<'a> Resolver<'a> {
    /// A resolver; relative paths begin at `base`.
    pub(super) fn new(
        review: &'a mut Review,
        environment: &'a Environment,
        sources: &'a mut Sources,
        base: PathBuf,
    ) -> Self {
        Self { review, environment, sources, base }
    }

    /// What the config means.
    pub(super) fn resolve(mut self, config: written::Config) -> Root {
        let part = self.part(config.mcp_servers, &config.timeouts, config.limits.message.0);
        let (store, cluster) = self.replicas(config.store, config.cluster);
        let mut selections = Vec::new();
        let max_message = config.limits.message.0;
        let settings = Settings {
            listen: config.listen.0,
            public_url: self.public_url(config.public_url.as_deref()),
            admin: match config.admin.listen {
                written::Listen::Off => None,
                written::Listen::At(address) => Some(address),
            },
            store,
            cluster,
            auth: self.auth(config.auth),
            names: config.names.into(),
            origins: self.origins(config.origins),
            sessions: config.sessions.into(),
            streams: config.streams.into(),
            limits: config.limits.into(),
            extensions: self.extensions(config.extensions),
            endpoints: self.endpoints(config.endpoints, &mut selections),
            shutdown: config.shutdown.into(),
            state_dir: self.state_dir(config.state_dir.as_deref()),
            servers: Vec::new(),
        };
        rules::check(&settings, &config.timeouts, self.review);
        if part.servers.is_empty() && config.include.is_empty() {
            let remedy = "write at least one server; config/quickstart.yaml shows one";
            self.review.problem(&Path::of(["mcpServers"]), "there is no server", remedy);
        }
        let patterns = config.include.iter().map(|pattern| Pattern::new(self.path(pattern))).collect();
        Root { part, settings, selections, timeouts: config.timeouts, max_message, patterns }
    }

    /// What the servers of one file mean.
    pub(super) fn part(
        &mut self,
        written: written::Named<written::Server>,
        timeouts: &written::Timeouts,
        max_message: usize,
    ) -> Part {
        let root = Path::of(["mcpServers"]);
        let place = |(name, _): &(String, _)| (name.clone(), self.review.position(&root.key(name)));
        let names = written.0.iter().map(place).collect();
        let servers = self.servers(written, timeouts, max_message);
        rules::server_clocks(&servers, timeouts, self.review);
        let servers = servers.into_iter().map(Arc::new).collect();
        Part { file: self.review.file().to_owned(), names, servers }
    }

    fn public_url(&mut self, written: Option<&str>) -> Option<Url> {
        let path = Path::of(["publicUrl"]);
        let mut url = self.http_url(&path, written?)?;
        if url.query().is_some() || url.fragment().is_some() {
            self.review.problem(
                &path,
                "has a query or a fragment",
                "write scheme, host, and a path if there is one",
            );
            return None;
        }
        let bare = url.path().trim_end_matches('/').to_owned();
        url.set_path(&bare);
        Some(url)
    }

    /// An http or https URL without credentials in it.
    fn http_url(&mut self, path: &Path, text: &str) -> Option<Url> {
        let fault = match Url::parse(text) {
            Ok(url) if !matches!(url.scheme(), "http" | "https") || !url.has_host() => {
                "is not an http or https URL"
            }
            Ok(url) if !url.username().is_empty() || url.password().is_some() => {
                let remedy = "write them as a header, from the environment or a file";
                self.review.problem(path, "has credentials in its URL", remedy);
                return None;
            }
            Ok(url) => return Some(url),
            Err(_) => "is not a URL",
        };
        self.review.problem(path, fault, "write it in full, such as https://host.example.com/mcp");
        None
    }

    fn origins(&mut self, written: Vec<String>) -> Vec<String> {
        let root = Path::of(["origins"]);
        for (n, origin) in written.iter().enumerate() {
            let host = origin.split_once("://").map(|(scheme, host)| (scheme.is_empty(), host));
            let legal = matches!(host, Some((false, host)) if !host.is_empty() && !host.contains(['/', '*', '@', '?', '#', ' ']));
            if !legal {
                let remedy =
                    "write scheme, host, and port if it is not the usual one: https://app.example.com";
                self.review.problem(&root.index(n), "is not an origin", remedy);
            }
        }
        written.into_iter().map(|origin| origin.to_ascii_lowercase()).collect()
    }

    fn state_dir(&self, written: Option<&str>) -> Option<PathBuf> {
        if let Some(dir) = written {
            return Some(self.path(dir));
        }
        let absolute = |path: PathBuf| path.is_absolute().then_some(path);
        let xdg = self.environment.get("XDG_STATE_HOME").map(PathBuf::from).and_then(absolute);
        let home = self.environment.get("HOME").map(PathBuf::from).and_then(absolute);
        xdg.or_else(|| home.map(|home| home.join(".local/state"))).map(|dir| dir.join("mcpgate"))
    }

    /// A path of the config: `~` is the home directory, a relative one begins at the config file.
    fn path(&self, written: &str) -> PathBuf {
        self.base.join(self.environment.expand_home(written))
    }

    fn secret(&mut self, path: &Path, written: written::Secret) -> Option<SecretString> {
        match written {
            written::Secret::Value(value) => Some(value),
            written::Secret::File(file) => {
                let path = path.key("file");
                let bytes = self.read(&path, &self.path(&file))?;
                let secret = secret_of(bytes);
                if secret.is_none() {
                    self.review.problem(
                        &path,
                        "names a file that is not UTF-8 text",
                        "store the secret as text",
                    );
                }
                secret
            }
        }
    }

    fn read(&mut self, path: &Path, file: &FilePath) -> Option<Vec<u8>> {
        if !self.review.is_sound(path) {
            return None;
        }
        match self.sources.read(file) {
            Ok(bytes) => Some(bytes),
            Err(error) => {
                let what = format!("names {}, which cannot be read: {error}", file.display());
                self.review.problem(path, what, "a relative path begins at the config file");
                None
            }
        }
    }
}

/// Server and endpoint names, which stand in URLs, tool names and labels.
fn is_legal_name(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

const NAME_RULE: &str = "use up to 64 ASCII letters, digits, `_` and `-`, beginning with a letter or digit";
