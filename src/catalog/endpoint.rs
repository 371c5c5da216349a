//! A URL that speaks MCP: which servers it shows, and under which names.

use std::sync::{Arc, Mutex};

use super::kind::Kind;
use super::list::List;
use super::pattern::admits;
use super::shelf::CallerClass;
use super::view::View;
use crate::protocol::capability::{TASKS_EXTENSION, UI_EXTENSION};
use crate::settings::endpoints::SessionPolicy;
use crate::settings::{EndpointSettings, NameSettings, ServerSettings, Settings};
use crate::store::{Registry, lock};

/// Views kept for reuse; beyond it all are made anew when next asked for. Callers choose their class, so there is
/// a bound.
const MOST_VIEWS: usize = 256;

/// A URL that speaks MCP.
#[derive(Debug)]
pub struct Endpoint {
    /// Its path without a trailing slash, as in `/mcp`.
    pub path: Arc<str>,
    /// How callers name tools and prompts here.
    pub naming: Naming,
    /// Its servers, in the order of their items.
    pub servers: Vec<Arc<ServerSettings>>,
    /// How qualified names are made.
    pub names: NameSettings,
    /// Patterns of callers' tool names that are offered; empty means all.
    pub allow: Vec<String>,
    /// Patterns of callers' tool names that are not.
    pub deny: Vec<String>,
    /// Whether legacy callers need a session here.
    pub sessions: SessionPolicy,
    /// Extensions that pass here beside those that the gateway knows.
    pub extensions: Vec<String>,
    views: Registry<(CallerClass, Kind), Arc<View>>,
    /// Held while a view is made, so that callers who come at once make one.
    making: Mutex<()>,
}

/// How callers name tools and prompts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// By qualified names.
    Qualified,
    /// By the server's own names, on a single-server endpoint.
    Bare,
}

// === impl Endpoint ===

impl Endpoint {
    /// All endpoints that `settings` describe: `/mcp`, one per server, and the named ones.
    pub fn all(settings: &Settings) -> Vec<Arc<Self>> {
        let new = |path: &str, naming, servers| Self {
            path: path.into(),
            naming,
            servers,
            names: settings.names.clone(),
            allow: Vec::new(),
            deny: Vec::new(),
            sessions: SessionPolicy::Required,
            extensions: settings.extensions.clone(),
            views: Registry::new(),
            making: Mutex::default(),
        };
        let mut endpoints = vec![new("/mcp", Naming::Qualified, settings.servers.clone())];
        for server in &settings.servers {
            endpoints.push(new(&single_server_path(&server.name), Naming::Bare, vec![server.clone()]));
        }
        for named in &settings.endpoints {
            let path = format!("/{}/mcp", named.name);
            let (allow, deny) = (named.allow.clone(), named.deny.clone());
            let servers = chosen(named, &settings.servers);
            endpoints.push(Self {
                allow,
                deny,
                sessions: named.sessions,
                ..new(&path, Naming::Qualified, servers)
            });
        }
        endpoints.into_iter().map(Arc::new).collect()
    }

    /// Whether a tool may be seen and called here, by the server's own name for it and the callers'.
    pub fn admits_tool(&self, server: &ServerSettings, own: &str, name: &str) -> bool {
        admits(&server.include, &server.exclude, own) && admits(&self.allow, &self.deny, name)
    }

    /// Whether a call can go to the server without looking its name up: one server, nothing hidden.
    pub fn passes_names_through(&self) -> bool {
        let hides = |s: &Arc<ServerSettings>| !s.include.is_empty() || !s.exclude.is_empty();
        self.naming == Naming::Bare && !self.servers.iter().any(hides)
    }

    /// Whether an extension of the protocol passes here: one that is known, one that the config names, or any, where
    /// there is one server alone (L14).
    pub fn passes_extension(&self, id: &str) -> bool {
        self.naming == Naming::Bare
            || matches!(id, TASKS_EXTENSION | UI_EXTENSION)
            || self.extensions.iter().any(|e| e == id)
    }

    /// Whether callers see just what its one server lists: only then can that be for anyone who comes (K5, K9).
    pub fn shows_all_as_is(&self) -> bool {
        self.passes_names_through() && self.allow.is_empty() && self.deny.is_empty()
    }

    /// Whether it shows the very same servers in the same way as another one.
    pub fn is_as(&self, other: &Self) -> bool {
        let same_servers = self.servers.len() == other.servers.len()
            && self.servers.iter().zip(&other.servers).all(|(a, b)| Arc::ptr_eq(a, b));
        let ways = |e: &Self| {
            (e.naming, e.names.clone(), e.allow.clone(), e.deny.clone(), e.sessions, e.extensions.clone())
        };
        same_servers && ways(self) == ways(other)
    }

    /// The view that callers of this class were last given of one kind.
    pub fn last_view(&self, class: CallerClass, kind: Kind) -> Option<Arc<View>> {
        self.views.get(&(class, kind))
    }

    /// What callers of this class see of one kind, from the lists its servers have now.
    pub fn view(&self, class: CallerClass, kind: Kind, lists: Vec<Part>) -> Arc<View> {
        let current = |view: &Arc<View>| view.is_of(&lists);
        if let Some(view) = self.last_view(class, kind).filter(current) {
            return view;
        }
        let _one_maker = lock(&self.making);
        if let Some(view) = self.last_view(class, kind).filter(current) {
            return view;
        }
        // Most servers tell all classes the same.
        let alike = self.views.values().into_iter().find(|v| v.kind() == kind && current(v));
        let view = alike.unwrap_or_else(|| Arc::new(View::new(self, kind, lists)));
        if self.views.len() >= MOST_VIEWS {
            self.views.clear();
        }
        self.views.insert((class, kind), view.clone());
        view
    }
}

/// One server's part of a view.
pub type Part = (Arc<ServerSettings>, Arc<List>);

/// The path of the endpoint that shows one server alone.
pub fn single_server_path(server: &str) -> String {
    format!("/servers/{server}/mcp")
}

/// The servers of a named endpoint, in its order.
fn chosen(named: &EndpointSettings, all: &[Arc<ServerSettings>]) -> Vec<Arc<ServerSettings>> {
    if named.servers.is_empty() {
        return all.to_vec();
    }
    named.servers.iter().filter_map(|name| all.iter().find(|s| s.name == *name).cloned()).collect()
}
