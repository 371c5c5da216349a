//! A URL that speaks MCP: which servers it shows, and under which names.

use std::sync::Arc;

use super::kind::Kind;
use super::list::List;
use super::pattern::admits;
use super::shelf::CallerClass;
use super::view::View;
use crate::settings::{EndpointSettings, ServerSettings, Settings};
use crate::store::Registry;

/// A URL that speaks MCP.
#[derive(Debug)]
pub struct Endpoint {
    /// Its path without a trailing slash, as in `/mcp`.
    pub path: Arc<str>,
    /// How callers name tools and prompts here.
    pub naming: Naming,
    /// Its servers, in config order.
    pub servers: Vec<Arc<ServerSettings>>,
    /// Patterns of callers' tool names that are offered; empty means all.
    pub allow: Vec<String>,
    /// Patterns of callers' tool names that are not.
    pub deny: Vec<String>,
    views: Registry<(CallerClass, Kind), Arc<View>>,
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
        let mut endpoints = vec![Self::new("/mcp", Naming::Qualified, settings.servers.clone(), &[], &[])];
        for server in &settings.servers {
            let path = format!("/servers/{}/mcp", server.name);
            endpoints.push(Self::new(&path, Naming::Bare, vec![server.clone()], &[], &[]));
        }
        endpoints.extend(settings.endpoints.iter().map(|named| Self::named(named, &settings.servers)));
        endpoints
    }

    /// Whether a tool of this (callers') name may be seen and called here.
    pub fn admits_tool(&self, name: &str) -> bool {
        admits(&self.allow, &self.deny, name)
    }

    /// Whether a call can go to the server without looking its name up: one server, nothing hidden.
    pub fn passes_names_through(&self) -> bool {
        let hides = |s: &Arc<ServerSettings>| !s.include.is_empty() || !s.exclude.is_empty();
        self.naming == Naming::Bare && !self.servers.iter().any(hides)
    }

    /// What callers of this class see of one kind, from the lists its servers have now.
    pub fn view(
        &self,
        class: CallerClass,
        kind: Kind,
        lists: Vec<(Arc<ServerSettings>, Arc<List>)>,
    ) -> Arc<View> {
        if let Some(view) = self.views.get(&(class, kind))
            && view.is_of(&lists)
        {
            return view;
        }
        let view = Arc::new(View::new(self, kind, lists));
        self.views.insert((class, kind), view.clone());
        view
    }

    fn named(named: &EndpointSettings, servers: &[Arc<ServerSettings>]) -> Arc<Self> {
        let chosen = |s: &&Arc<ServerSettings>| named.servers.is_empty() || named.servers.contains(&s.name);
        let servers = servers.iter().filter(chosen).cloned().collect();
        Self::new(&format!("/{}/mcp", named.name), Naming::Qualified, servers, &named.allow, &named.deny)
    }

    fn new(
        path: &str,
        naming: Naming,
        servers: Vec<Arc<ServerSettings>>,
        allow: &[String],
        deny: &[String],
    ) -> Arc<Self> {
        Arc::new(Self {
            path: path.into(),
            naming,
            servers,
            allow: allow.to_vec(),
            deny: deny.to_vec(),
            views: Registry::new(),
        })
    }
}
