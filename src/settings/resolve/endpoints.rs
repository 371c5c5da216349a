//! Named selections: legal names, and which servers they name.

use super::{NAME_RULE, Resolver, is_legal_name};
use crate::settings::endpoints::SessionPolicy;
use crate::settings::parts::Selection;
use crate::settings::tree::Path;
use crate::settings::{EndpointSettings, written};

/// First segments of paths that the gateway serves itself.
const RESERVED: [&str; 10] =
    ["admin", "healthz", "livez", "mcp", "metrics", "oauth", "readyz", "servers", "startupz", "version"];

// === impl Resolver ===

impl Resolver<'_> {
    pub(super) fn endpoints(
        &mut self,
        written: written::Named<written::Endpoint>,
        selections: &mut Vec<Selection>,
    ) -> Vec<EndpointSettings> {
        let root = Path::of(["endpoints"]);
        written
            .0
            .into_iter()
            .map(|(name, endpoint)| {
                let path = root.key(&name);
                if RESERVED.contains(&name.as_str()) {
                    self.review.problem(&path, "is a path of the gateway itself", "choose another name");
                } else if !is_legal_name(&name) {
                    self.review.problem(&path, "is not a legal name of an endpoint", NAME_RULE);
                }
                let sessions = match endpoint.sessions {
                    written::EndpointSessions::Required => SessionPolicy::Required,
                    written::EndpointSessions::Optional => SessionPolicy::Optional,
                    written::EndpointSessions::Off => SessionPolicy::Off,
                };
                let servers = self.selection(&path.key("servers"), endpoint.servers, selections);
                let tools = path.key("tools");
                EndpointSettings {
                    name,
                    servers,
                    allow: self.patterns(&tools.key("allow"), endpoint.tools.allow),
                    deny: endpoint.tools.deny,
                    sessions,
                }
            })
            .collect()
    }

    /// A server that is disabled stays in the list, where it selects nothing: an empty list would select all. Whether
    /// there is such a server is seen once all files are read.
    fn selection(
        &mut self,
        path: &Path,
        written: Option<Vec<String>>,
        selections: &mut Vec<Selection>,
    ) -> Vec<String> {
        let servers = self.patterns(path, written);
        for (n, server) in servers.iter().enumerate() {
            let place = path.index(n);
            if servers.iter().take(n).any(|before| before == server) {
                self.review.problem(&place, format!("`{server}` stands twice"), "keep one of them");
            } else if self.review.is_sound(&place) {
                let at = self.review.position(&place);
                selections.push(Selection { path: place, at, server: server.clone() });
            }
        }
        servers
    }
}
