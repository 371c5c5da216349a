//! What callers of one endpoint see of one kind: the merged list, written out, and the way back from each name.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::endpoint::{Endpoint, Naming, Part};
use super::hints::{Hints, Scope};
use super::kind::Kind;
use super::list::Item;
use super::name::qualify;
use super::template::Template;
use crate::protocol::edit::Edit;
use crate::protocol::object::quoted;
use crate::protocol::param_header::Annotation;
use crate::settings::ServerSettings;

/// The scheme of a URI that names its server: `mcpgate:{server}/{the server's own URI}`.
///
/// A URI that several servers list stays as it is for the first of them, in config order, and gets this form for
/// the others. Callers may use the form for any resource.
const SCHEME: &str = "mcpgate:";

/// How long a view is taken for current before its lists are looked at again.
const TRUSTED: Duration = Duration::from_secs(1);

/// What callers of one endpoint see of one kind.
#[derive(Debug)]
pub struct View {
    kind: Kind,
    parts: Vec<Part>,
    /// The list result and the brace that closes a response.
    closed: Bytes,
    digest: u64,
    table: HashMap<Box<str>, Target>,
    /// Of tools that want arguments repeated in headers, by the callers' names, which (T50).
    annotated: HashMap<Box<str>, Arc<[Annotation]>>,
    templates: Vec<(Template, Target)>,
    made: Instant,
    /// Milliseconds from `made` to when its lists were last looked at for their age.
    checked_ms: AtomicU64,
    /// The catalog's generation in which it was last assembled.
    generation: AtomicU64,
    /// Milliseconds from `made` up to which callers may keep it.
    kept_until_ms: AtomicU64,
    /// Whether it may be kept for anyone.
    public: AtomicBool,
}

/// Where a caller's name or URI leads.
#[derive(Clone, Debug)]
pub struct Target {
    /// The server.
    pub server: Arc<ServerSettings>,
    /// What that server calls it.
    pub own: Arc<str>,
}

// === impl View ===

impl View {
    /// The view that `endpoint` gives of these lists.
    pub fn new(endpoint: &Endpoint, kind: Kind, parts: Vec<Part>) -> Self {
        let mut table: HashMap<Box<str>, Target> = HashMap::new();
        let (mut templates, mut annotated) = (Vec::new(), HashMap::new());
        let mut result = format!(r#"{{"{}":["#, kind.member()).into_bytes();
        let mut first = true;
        for (server, list) in &parts {
            for item in &list.items {
                let name = name(endpoint, kind, server, item, &table);
                if kind == Kind::Tools && !endpoint.admits_tool(server, &item.own, &name) {
                    continue;
                }
                if table.contains_key(name.as_str()) {
                    tracing::warn!(server = %server.name, name, "left out an item whose name another one has");
                    continue;
                }
                let target = Target { server: server.clone(), own: item.own.as_ref().into() };
                if kind == Kind::Templates {
                    templates.push((Template::parse(&name), target.clone()));
                }
                if !std::mem::replace(&mut first, false) {
                    result.push(b',');
                }
                if name == *item.own {
                    result.extend_from_slice(item.raw.as_bytes());
                } else {
                    let quoted = quoted(&name);
                    result.extend_from_slice(
                        &Edit::of(item.raw.as_bytes()).replace(item.key, &quoted).finish(),
                    );
                }
                if let Some(wanted) = list.annotations(&item.own) {
                    annotated.insert(name.as_str().into(), wanted.clone());
                }
                table.insert(name.into(), target);
            }
        }
        result.extend_from_slice(b"]}}");
        // The first of equals is the first in config order.
        templates.sort_by_key(|(t, _)| std::cmp::Reverse(t.specificity()));
        let mut hasher = DefaultHasher::new();
        result.hash(&mut hasher);
        Self {
            kind,
            parts,
            digest: hasher.finish(),
            closed: result.into(),
            table,
            annotated,
            templates,
            made: Instant::now(),
            checked_ms: AtomicU64::new(0),
            generation: AtomicU64::new(u64::MAX),
            kept_until_ms: AtomicU64::new(0),
            public: AtomicBool::new(false),
        }
    }

    /// The list result, raw, and the brace that closes a response: `{"tools":[...]}}`. Ready to be sent behind
    /// the head of any response, so that a list is never copied.
    pub fn result_and_brace(&self) -> &Bytes {
        &self.closed
    }

    /// Tells what callers see apart.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// Where a caller's name or listed URI leads.
    pub fn target(&self, name: &str) -> Option<&Target> {
        self.table.get(name)
    }

    /// Whether any tool wants arguments repeated in headers.
    pub fn has_annotations(&self) -> bool {
        !self.annotated.is_empty()
    }

    /// The arguments that a tool wants repeated in headers, by the callers' name for it.
    pub fn annotations(&self, name: &str) -> Option<&[Annotation]> {
        self.annotated.get(name).map(|wanted| &**wanted)
    }

    /// Where a URI that some template expands to leads; the most specific template wins.
    pub fn expanded_target(&self, uri: &str) -> Option<&Target> {
        self.templates.iter().find(|(t, _)| t.matches(uri)).map(|(_, target)| target)
    }

    /// How many items callers see.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether callers see none.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// The kind it shows.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether a server's list is part of it.
    pub fn has(&self, server: &ServerSettings) -> bool {
        self.parts.iter().any(|(s, _)| s.name == server.name)
    }

    /// Whether it shows what is known in this generation of the catalog.
    pub fn is_of_generation(&self, generation: u64) -> bool {
        self.generation.load(Relaxed) == generation
    }

    /// Whether it does, and its lists were looked at for their age a moment ago.
    pub fn is_current(&self, generation: u64) -> bool {
        let checked = Duration::from_millis(self.checked_ms.load(Relaxed));
        self.is_of_generation(generation) && self.made.elapsed() < checked + TRUSTED
    }

    /// It shows what is known in this generation of the catalog.
    pub fn stamp(&self, generation: u64) {
        self.generation.store(generation, Relaxed);
    }

    /// Its lists were looked at for their age.
    pub fn checked(&self) {
        self.checked_ms.store(self.age_ms(), Relaxed);
    }

    /// Its lists may be kept so at this moment, all of them together.
    pub fn keep(&self, hints: Hints) {
        let ttl = u64::try_from(hints.ttl.as_millis()).unwrap_or(u64::MAX);
        self.kept_until_ms.store(self.age_ms().saturating_add(ttl), Relaxed);
        self.public.store(hints.scope == Scope::Public, Relaxed);
    }

    /// How callers may keep it from now on.
    pub fn hints(&self) -> Hints {
        let left = self.kept_until_ms.load(Relaxed).saturating_sub(self.age_ms());
        let scope = if self.public.load(Relaxed) { Scope::Public } else { Scope::Private };
        Hints { ttl: Duration::from_millis(left), scope }
    }

    fn age_ms(&self) -> u64 {
        u64::try_from(self.made.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Whether it was made from exactly these lists.
    pub fn is_of(&self, parts: &[Part]) -> bool {
        let same = |(a, b): (&Part, &Part)| Arc::ptr_eq(&a.0, &b.0) && Arc::ptr_eq(&a.1, &b.1);
        self.parts.len() == parts.len() && self.parts.iter().zip(parts).all(same)
    }
}

/// The server that a URI in the form [`SCHEME`] names, and the server's own URI.
pub fn explicit_target(endpoint: &Endpoint, uri: &str) -> Option<Target> {
    let (server, own) = uri.strip_prefix(SCHEME)?.split_once('/')?;
    let server = endpoint.servers.iter().find(|s| s.name == server)?;
    Some(Target { server: server.clone(), own: own.into() })
}

/// A URI in the form that names its server.
pub fn explicit_uri(server: &str, own: &str) -> String {
    format!("{SCHEME}{server}/{own}")
}

/// What callers of `endpoint` call an item.
fn name(
    endpoint: &Endpoint,
    kind: Kind,
    server: &ServerSettings,
    item: &Item,
    taken: &HashMap<Box<str>, Target>,
) -> String {
    match (kind, endpoint.naming) {
        (Kind::Tools | Kind::Prompts, Naming::Qualified) => qualify(&endpoint.names, &server.name, &item.own),
        (Kind::Tools | Kind::Prompts, Naming::Bare) => item.own.to_string(),
        (Kind::Resources | Kind::Templates, _) if taken.contains_key(&item.own) => {
            explicit_uri(&server.name, &item.own)
        }
        (Kind::Resources | Kind::Templates, _) => item.own.to_string(),
    }
}
