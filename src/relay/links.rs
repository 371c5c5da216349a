//! The links of one session: opened when first needed, once for all who wait, replaced when they are down.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_util::task::TaskTracker;

use super::listener::Origin;
use super::{Relay, Session};
use crate::protocol::error::Layer;
use crate::protocol::object::Object;
use crate::settings::ServerSettings;
use crate::settings::servers::{Isolation, TransportSettings};
use crate::store::{Registry, lock};
use crate::upstream::{Delivery, Failure, Farewell, Hello, Link};

/// The links of one session, by server.
#[derive(Default)]
pub(super) struct Links(Mutex<HashMap<Arc<str>, Slot>>);

/// How many children of each server may run at once (`pool.max`).
#[derive(Default)]
pub(super) struct ChildCaps(Registry<Arc<str>, Arc<Semaphore>>);

/// A link and the place it takes among its server's children.
pub(super) struct Held {
    pub(super) link: Arc<Link>,
    permit: Option<OwnedSemaphorePermit>,
    settings: Arc<ServerSettings>,
}

type Opening = watch::Receiver<Option<Result<Arc<Link>, Failure>>>;

enum Slot {
    /// On its way, on a task of its own; whoever gives up waiting does not stop it (case-C09).
    Opening(Opening),
    /// Ready.
    Live(Held),
}

enum Found {
    Link(Arc<Link>),
    Opening(Opening),
    Vacant(watch::Sender<Option<Result<Arc<Link>, Failure>>>, Opening),
}

// === impl Links ===

impl Links {
    /// The live link to a server, if there is one.
    pub(super) fn live(&self, server: &ServerSettings) -> Option<Arc<Link>> {
        match lock(&self.0).get(server.name.as_str()) {
            Some(Slot::Live(held)) if !held.link.is_down() => Some(held.link.clone()),
            _ => None,
        }
    }

    /// All live links.
    pub(super) fn all_live(&self) -> Vec<(Arc<ServerSettings>, Arc<Link>)> {
        let slots = lock(&self.0);
        let live = slots.values().filter_map(|slot| match slot {
            Slot::Live(held) if !held.link.is_down() => Some((held.settings.clone(), held.link.clone())),
            _ => None,
        });
        live.collect()
    }

    /// Takes leave of all links.
    pub(super) fn close_all(&self, tasks: &TaskTracker) {
        for (_, slot) in std::mem::take(&mut *lock(&self.0)) {
            match slot {
                Slot::Live(held) => held.close_on(tasks),
                // Its opener finds that nobody keeps it and closes it.
                Slot::Opening(_) => {}
            }
        }
    }

    /// Takes leave of the link to one server.
    pub(super) fn close(&self, server: &str, tasks: &TaskTracker) {
        if let Some(Slot::Live(held)) = lock(&self.0).remove(server) {
            held.close_on(tasks);
        }
    }

    fn find(&self, server: &Arc<ServerSettings>, tasks: &TaskTracker) -> Found {
        let mut slots = lock(&self.0);
        match slots.get(server.name.as_str()) {
            Some(Slot::Live(held)) if !held.link.is_down() && Arc::ptr_eq(&held.settings, server) => {
                return Found::Link(held.link.clone());
            }
            Some(Slot::Opening(opening)) if opening.has_changed().is_ok() => {
                return Found::Opening(opening.clone());
            }
            _ => {}
        }
        let (sender, opening) = watch::channel(None);
        let replaced = slots.insert(server.name.as_str().into(), Slot::Opening(opening.clone()));
        if let Some(Slot::Live(dead)) = replaced {
            dead.close_on(tasks);
        }
        Found::Vacant(sender, opening)
    }

    fn settle(&self, server: &ServerSettings, held: Option<Held>) {
        let mut slots = lock(&self.0);
        match held {
            Some(held) => drop(slots.insert(server.name.as_str().into(), Slot::Live(held))),
            None => drop(slots.remove(server.name.as_str())),
        }
    }
}

// === impl ChildCaps ===

impl ChildCaps {
    /// A place for one more child of `server`; `None` where no place is needed.
    fn place(&self, server: &ServerSettings) -> Result<Option<OwnedSemaphorePermit>, Failure> {
        let TransportSettings::Stdio(stdio) = &server.transport else { return Ok(None) };
        let places =
            self.0.get_or_insert_with(server.name.as_str().into(), || Arc::new(Semaphore::new(stdio.max)));
        places.try_acquire_owned().map(Some).map_err(|_| Failure {
            server: server.name.clone(),
            layer: Layer::Process,
            reason: "no_capacity",
            message: format!(
                "Server `{}` already runs as many processes as its pool.max allows ({}); end sessions or try later.",
                server.name, stdio.max
            ),
            delivery: Delivery::NotDelivered,
        })
    }
}

// === impl Held ===

impl Held {
    fn close_on(self, tasks: &TaskTracker) {
        tasks.spawn(async move {
            self.link.close(Farewell::End).await;
            drop(self.permit);
        });
    }
}

// === impl Relay ===

impl Relay {
    /// A link to `server` for `session`, opened if need be; waits as long as the server may take to start.
    pub(super) async fn link(
        self: &Arc<Self>,
        session: &Arc<Session>,
        server: &Arc<ServerSettings>,
    ) -> Result<Arc<Link>, Failure> {
        if let Isolation::Shared { size } = server.isolation {
            return self.shared_link(session.attached.tenant.as_deref(), server, size).await;
        }
        let mut opening = match session.attached.links.find(server, &self.tasks) {
            Found::Link(link) => return Ok(link),
            Found::Opening(opening) => opening,
            Found::Vacant(sender, opening) => {
                let (relay, session, server) = (self.clone(), session.clone(), server.clone());
                self.tasks.spawn(async move { relay.open_for(&session, server, &sender).await });
                opening
            }
        };
        wait_for(server, &mut opening).await
    }

    async fn open_for(
        self: &Arc<Self>,
        session: &Arc<Session>,
        server: Arc<ServerSettings>,
        done: &watch::Sender<Option<Result<Arc<Link>, Failure>>>,
    ) {
        let hello = Hello {
            revision: session.revision(),
            capabilities: relayable(&session.greeting.capabilities),
            client_info: session.greeting.client_info.clone(),
        };
        let origin =
            Origin { relay: Arc::downgrade(self), session: Arc::downgrade(session), server: server.clone() };
        let links = &session.attached.links;
        let opened = match self.children.place(&server) {
            Ok(permit) => {
                let link = self.open_link(server.clone(), hello, session.epoch.0, Arc::new(origin)).await;
                link.map(|link| Held { link, permit, settings: server.clone() })
            }
            Err(failure) => Err(failure),
        };
        match opened {
            Ok(held) => {
                let link = held.link.clone();
                self.restore(session, &server, &link).await;
                if session.ended.is_cancelled() {
                    held.close_on(&self.tasks);
                } else {
                    links.settle(&server, Some(held));
                    // The session may have ended between the look and the settling.
                    if session.ended.is_cancelled() {
                        links.close_all(&self.tasks);
                    }
                }
                done.send_replace(Some(Ok(link)));
            }
            Err(failure) => {
                links.settle(&server, None);
                done.send_replace(Some(Err(failure)));
            }
        }
    }

    /// Opens a link and learns what the server says of itself.
    pub(super) async fn open_link(
        &self,
        server: Arc<ServerSettings>,
        hello: Hello,
        epoch: u32,
        listener: Arc<dyn crate::upstream::Listener>,
    ) -> Result<Arc<Link>, Failure> {
        let opened = self.connector.open(server.clone(), hello, epoch, listener).await;
        match &opened {
            Ok(link) => self.catalog.introduce(&server.name, link.introduction()),
            Err(failure) => {
                let (layer, reason) = (failure.layer.as_str(), failure.reason);
                tracing::warn!(server = %server.name, layer, reason, "{}", failure.message);
            }
        }
        opened
    }
}

/// Waits for a link that is being opened.
pub(super) async fn wait_for(server: &ServerSettings, opening: &mut Opening) -> Result<Arc<Link>, Failure> {
    let settled = opening.wait_for(Option::is_some).await;
    settled.ok().and_then(|done| done.clone()).unwrap_or_else(|| {
        Err(Failure {
            server: server.name.clone(),
            layer: Layer::Gateway,
            reason: "shutting_down",
            message: format!("The gateway stopped while it connected to server `{}`.", server.name),
            delivery: Delivery::NotDelivered,
        })
    })
}

/// The caller's capabilities as far as the gateway relays them (G28): what it does not know is not offered.
fn relayable(capabilities: &str) -> Box<str> {
    let Ok(all) = Object::parse(capabilities) else { return "{}".into() };
    let known = ["roots", "sampling", "elicitation", "experimental"];
    let kept =
        all.iter().filter(|(name, _)| known.contains(name)).map(|(name, raw)| format!("\"{name}\":{raw}"));
    format!("{{{}}}", kept.collect::<Vec<_>>().join(",")).into()
}
