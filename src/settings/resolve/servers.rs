//! Servers: how each is reached, by whom shared, how long it may take.

use std::collections::BTreeMap;

use http::{HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};

use super::{NAME_RULE, Resolver, is_legal_name};
use crate::protocol::header::MCP_PARAM_PREFIX;
use crate::protocol::revision::Revision;
use crate::settings::servers::{HttpSettings, Isolation, ProtocolSetting, StdioSettings, TransportSettings};
use crate::settings::tree::Path;
use crate::settings::{ServerSettings, written};

/// Headers that the gateway writes itself on every upstream request.
const OWN_HEADERS: [&str; 14] = [
    "accept",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "keep-alive",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// What a `type` says about the way a server is reached.
#[derive(PartialEq, Eq)]
enum Kind {
    Stdio,
    Http,
    Sse,
    Unknown,
}

/// `auto`, or the date of a revision: the schema admits nothing else.
fn protocol(written: Option<&str>) -> ProtocolSetting {
    let date = written.and_then(|word| Revision::parse(word).ok());
    date.map_or(ProtocolSetting::Auto, ProtocolSetting::Pinned)
}

// === impl Resolver ===

impl Resolver<'_> {
    pub(super) fn servers(
        &mut self,
        written: written::Named<written::Server>,
        timeouts: &written::Timeouts,
        max_message: usize,
    ) -> Vec<ServerSettings> {
        let root = Path::of(["mcpServers"]);
        let mut servers = Vec::new();
        for (name, server) in written.0 {
            let path = root.key(&name);
            if !is_legal_name(&name) {
                self.review.problem(&path, "is not a legal name of a server", NAME_RULE);
            }
            if server.disabled {
                continue;
            }
            let timeouts = server.timeouts.over(timeouts);
            let max_message = server.max_message.map_or(max_message, |size| size.0);
            let include = self.patterns(&path.key("tools").key("include"), server.tools.include.clone());
            let exclude = server.tools.exclude.clone();
            let isolation = match server.isolation {
                written::Isolation::Session => Isolation::Session,
                written::Isolation::Shared(shared) => Isolation::Shared { size: usize::from(shared.size) },
            };
            let protocol = protocol(server.protocol.as_deref());
            if let Some(transport) = self.transport(&path, server) {
                servers.push(ServerSettings {
                    name,
                    transport,
                    isolation,
                    protocol,
                    timeouts,
                    max_message,
                    include,
                    exclude,
                });
            }
        }
        servers
    }

    /// A list of patterns; left out it means all, but an empty one would mean nothing.
    pub(super) fn patterns(&mut self, path: &Path, written: Option<Vec<String>>) -> Vec<String> {
        if written.as_ref().is_some_and(Vec::is_empty) {
            self.review.problem(
                path,
                "is empty, so nothing would be offered",
                "leave it out to offer everything",
            );
        }
        written.unwrap_or_default()
    }

    fn transport(&mut self, path: &Path, server: written::Server) -> Option<TransportSettings> {
        self.check_type(path, &server);
        match (server.command, server.url) {
            (Some(command), None) => {
                if !server.headers.0.is_empty() {
                    let what = "means nothing for a server that is started by command";
                    self.review.problem(
                        &path.key("headers"),
                        what,
                        "write env, or a url instead of the command",
                    );
                }
                if let written::Isolation::Shared(shared) = server.isolation
                    && u32::from(shared.size) > server.pool.max
                {
                    let what = "is more than pool.max allows";
                    self.review.problem(&path.key("isolation"), what, "lower its size, or raise pool.max");
                }
                let command = self.command(path, &command)?;
                let env = self.env(&path.key("env"), server.env);
                self.look_for(&path.key("command"), &command, &env);
                Some(TransportSettings::Stdio(StdioSettings {
                    command,
                    args: server.args,
                    env,
                    cwd: server.cwd.map(|cwd| self.path(&cwd)),
                    max: usize::try_from(server.pool.max).unwrap_or(usize::MAX),
                    per_session: usize::from(server.pool.per_session),
                }))
            }
            (None, Some(url)) => {
                for (key, written) in [("args", !server.args.is_empty()), ("cwd", server.cwd.is_some())] {
                    if written {
                        let what = "means nothing for a server that is reached by url";
                        self.review.problem(&path.key(key), what, "leave it out, or write a command");
                    }
                }
                if !server.env.0.is_empty() {
                    let what = "means nothing for a server that is reached by url";
                    self.review.problem(&path.key("env"), what, "write headers");
                }
                let url = self.http_url(&path.key("url"), &url)?;
                let headers = self.headers(&path.key("headers"), server.headers);
                Some(TransportSettings::Http(HttpSettings { url, headers }))
            }
            (Some(_), Some(_)) => {
                let remedy = "keep the one by which it is reached";
                self.review.problem_between(path, ["command", "url"], "has both command and url", remedy);
                None
            }
            (None, None) => {
                let remedy = "write command (and args), or url";
                self.review.problem_between(path, ["command", "url"], "has neither command nor url", remedy);
                None
            }
        }
    }

    fn check_type(&mut self, path: &Path, server: &written::Server) {
        let Some(word) = server.transport.as_deref() else { return };
        let place = path.key("type");
        let plain: String = word.chars().filter(char::is_ascii_alphanumeric).collect();
        let kind = match plain.to_ascii_lowercase().as_str() {
            "stdio" | "local" | "command" => Kind::Stdio,
            "http" | "streamablehttp" | "httpstream" | "remote" => Kind::Http,
            "sse" => Kind::Sse,
            _ => Kind::Unknown,
        };
        match kind {
            Kind::Sse => {
                let what = "HTTP+SSE of 2024-11-05 is not available in this version";
                self.review.problem(
                    &place,
                    what,
                    "if the server also speaks Streamable HTTP, write type: http",
                );
            }
            Kind::Unknown => {
                self.review.problem(&place, "is no known transport", "write stdio or http, or leave it out");
            }
            Kind::Stdio if server.command.is_none() && server.url.is_some() => {
                self.review.problem(
                    &place,
                    "says stdio, but there is a url",
                    "write command, or leave type out",
                );
            }
            Kind::Http if server.url.is_none() && server.command.is_some() => {
                self.review.problem(
                    &place,
                    "says http, but there is a command",
                    "write url, or leave type out",
                );
            }
            Kind::Stdio | Kind::Http => {}
        }
    }

    fn env(
        &mut self,
        path: &Path,
        written: written::Named<written::Secret>,
    ) -> BTreeMap<String, SecretString> {
        let mut env = BTreeMap::new();
        for (name, secret) in written.0 {
            let place = path.key(&name);
            if name.is_empty() || name.contains(['=', '\0']) {
                self.review.problem(&place, "is not the name of a variable", "leave out `=`");
            }
            let Some(value) = self.secret(&place, secret) else { continue };
            if value.expose_secret().contains('\0') {
                self.review.problem(&place, "holds a NUL, which no variable can", "");
            }
            env.insert(name, value);
        }
        env
    }

    fn headers(
        &mut self,
        path: &Path,
        written: written::Named<written::Secret>,
    ) -> Vec<(HeaderName, SecretString)> {
        let mut headers: Vec<(HeaderName, SecretString)> = Vec::new();
        for (name, secret) in written.0 {
            let place = path.key(&name);
            let value = self.secret(&place, secret);
            let Ok(header) = HeaderName::try_from(&name) else {
                self.review.problem(&place, "is not the name of a header", "use letters, digits and `-`");
                continue;
            };
            if OWN_HEADERS.contains(&header.as_str()) || header.as_str().starts_with(MCP_PARAM_PREFIX) {
                self.review.problem(&place, "is written by the gateway itself", "leave it out");
            }
            if headers.iter().any(|(known, _)| *known == header) {
                self.review.problem(&place, "stands twice, in another case", "keep one of them");
            }
            let Some(value) = value else { continue };
            if HeaderValue::try_from(value.expose_secret()).is_err() {
                let what = "holds a line break or another character that no header can carry";
                self.review.problem(&place, what, "check the file or variable it comes from");
            }
            headers.push((header, value));
        }
        headers
    }
}
