//! Links used by all sessions of a tenant at once (`isolation: shared`).
//!
//! Such a link offers the server no client capabilities: over stdio a server's question could not be attributed to
//! one of its callers. What it says outside calls is dropped and counted, but for change notices.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};

use tokio::sync::watch;

use super::Relay;
use super::links::wait_for;
use crate::catalog::{CallerClass, Kind};
use crate::protocol::capability::CapabilityClass;
use crate::protocol::envelope::{Notification, Request};
use crate::protocol::error::Code;
use crate::protocol::method::Method;
use crate::protocol::object::Object;
use crate::protocol::revision::Revision;
use crate::session::notices::Notice;
use crate::settings::ServerSettings;
use crate::store::{Registry, lock};
use crate::upstream::{Failure, Farewell, Hello, Link, Listener, Reply};

/// What servers behind shared links are told of their callers.
pub(super) const SHARED_CLASS: CallerClass =
    CallerClass { revision: Revision::LATEST_LEGACY, capabilities: CapabilityClass::NONE };

/// All shared links, by tenant and server.
#[derive(Default)]
pub(super) struct SharedLinks(Registry<(Option<Box<str>>, Arc<str>), Arc<Group>>);

/// The shared links of one tenant to one server.
struct Group {
    next: AtomicUsize,
    slots: Vec<Mutex<Slot>>,
}

enum Slot {
    Vacant,
    Opening(watch::Receiver<Option<Result<Arc<Link>, Failure>>>),
    Live(Arc<Link>, Arc<ServerSettings>),
}

/// Hears a server behind a shared link.
struct SharedOrigin {
    relay: Weak<Relay>,
    tenant: Option<Box<str>>,
    server: Arc<ServerSettings>,
}

// === impl SharedLinks ===

impl SharedLinks {
    /// Takes leave of all of them.
    pub(super) async fn close_all(&self) {
        for group in self.0.values() {
            for slot in &group.slots {
                let taken = std::mem::replace(&mut *lock(slot), Slot::Vacant);
                if let Slot::Live(link, _) = taken {
                    link.close(Farewell::End).await;
                }
            }
        }
    }
}

// === impl Relay ===

impl Relay {
    pub(super) async fn shared_link(
        self: &Arc<Self>,
        tenant: Option<&str>,
        server: &Arc<ServerSettings>,
        size: usize,
    ) -> Result<Arc<Link>, Failure> {
        let key = (tenant.map(Into::into), server.name.as_str().into());
        let group = self.shared.0.get_or_insert_with(key, || {
            let slots = (0..size.max(1)).map(|_| Mutex::new(Slot::Vacant)).collect();
            Arc::new(Group { next: AtomicUsize::new(0), slots })
        });
        let at = group.next.fetch_add(1, Relaxed) % group.slots.len();
        let Some(slot) = group.slots.get(at) else { unreachable!("taken modulo the length") };
        let mut opening = {
            let mut slot = lock(slot);
            match &*slot {
                Slot::Live(link, settings) if !link.is_down() && Arc::ptr_eq(settings, server) => {
                    return Ok(link.clone());
                }
                Slot::Opening(opening) if opening.has_changed().is_ok() => opening.clone(),
                _ => {
                    let (sender, opening) = watch::channel(None);
                    if let Slot::Live(dead, _) = std::mem::replace(&mut *slot, Slot::Opening(opening.clone()))
                    {
                        self.tasks.spawn(async move { dead.close(Farewell::End).await });
                    }
                    let relay = self.clone();
                    let (group, server) = (group.clone(), server.clone());
                    let tenant = tenant.map(Into::into);
                    self.tasks.spawn(async move {
                        let opened = relay.open_shared(tenant, server.clone()).await;
                        if let Some(slot) = group.slots.get(at) {
                            *lock(slot) = match &opened {
                                Ok(link) => Slot::Live(link.clone(), server),
                                Err(_) => Slot::Vacant,
                            };
                        }
                        sender.send_replace(Some(opened));
                    });
                    opening
                }
            }
        };
        wait_for(server, &mut opening).await
    }

    async fn open_shared(
        self: &Arc<Self>,
        tenant: Option<Box<str>>,
        server: Arc<ServerSettings>,
    ) -> Result<Arc<Link>, Failure> {
        let hello = Hello {
            revision: SHARED_CLASS.revision,
            capabilities: "{}".into(),
            client_info: format!(r#"{{"name":"mcpgate","version":"{}"}}"#, env!("CARGO_PKG_VERSION")).into(),
        };
        let origin = SharedOrigin { relay: Arc::downgrade(self), tenant, server: server.clone() };
        self.open_link(server, hello, 1, Arc::new(origin)).await
    }
}

impl Listener for SharedOrigin {
    fn notification(&self, message: Notification) {
        let Some(relay) = self.relay.upgrade() else { return };
        let kinds: &[Kind] = match message.method() {
            Method::ToolsListChanged => &[Kind::Tools],
            Method::PromptsListChanged => &[Kind::Prompts],
            Method::ResourcesListChanged => &[Kind::Resources, Kind::Templates],
            Method::ResourcesUpdated => {
                let uri = message.params().and_then(|p| Object::parse(p).ok()?.text("uri"));
                if let Some(uri) = uri {
                    self.updated(&relay, &uri);
                }
                return;
            }
            _ => return relay.metrics.unattributed(&self.server.name),
        };
        relay.shared_list_changed(self.tenant.as_deref(), &self.server, kinds);
    }

    fn request(&self, _message: Request, reply: Reply) {
        if let Some(relay) = self.relay.upgrade() {
            relay.metrics.unattributed(&self.server.name);
        }
        reply.refuse(
            Code::MethodNotFound.number(),
            "this link is shared by many callers; none of them can be asked",
        );
    }
}

impl SharedOrigin {
    /// Tells the sessions of the tenant that subscribed.
    fn updated(&self, relay: &Relay, uri: &str) {
        for session in relay.sessions.all() {
            if session.attached.tenant == self.tenant
                && super::subscribe::is_subscribed(&session, &self.server.name, uri)
            {
                let uri = super::subscribe::callers_uri(&session, &self.server.name, uri);
                session.streams.notice(Notice::Updated(uri));
            }
        }
    }
}
