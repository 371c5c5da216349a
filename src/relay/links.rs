//! The links of one session: opened when first needed, once for all who wait, replaced when they are down.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio_util::task::TaskTracker;

use super::era::asked_revision;
use super::listener::Origin;
use super::places::Place;
use super::shared::Pick;
use super::{Relay, Session, extensions};
use crate::protocol::error::Layer;
use crate::protocol::revision::Era;
use crate::settings::ServerSettings;
use crate::settings::servers::{Isolation, TransportSettings};
use crate::store::{Flight, lock};
use crate::upstream::{Delivery, Failure, Farewell, Hello, Known, Link, Listener};

/// The links of one session, by server; where it may have several to one server, the others by number too.
#[derive(Default)]
pub(super) struct Links(Mutex<HashMap<Arc<str>, Slot>>);

/// A link that is open, and what hears it outside calls.
#[derive(Clone)]
pub(super) struct Connected {
    pub(super) link: Arc<Link>,
    pub(super) origin: Arc<dyn Listener>,
}

/// How opening a link ended.
pub(super) type Opened = Result<Connected, Failure>;

/// A link and the place it takes among its server's children.
pub(super) struct Held {
    pub(super) connected: Connected,
    pub(super) place: Place,
    pub(super) settings: Arc<ServerSettings>,
}

/// A link on its way, on a task of its own; whoever gives up waiting does not stop it (case-C09).
pub(super) type Opening = Flight<Opened>;

enum Slot {
    /// On its way.
    Opening(Opening, Arc<ServerSettings>),
    /// Ready.
    Live(Held),
}

enum Found {
    Link(Connected),
    Opening(Opening),
    /// The server is not configured so any more.
    Gone,
}

// === impl Links ===

impl Links {
    /// The live link to a server, if there is one.
    pub(super) fn live(&self, server: &ServerSettings) -> Option<Connected> {
        match lock(&self.0).get(server.name.as_str()) {
            Some(Slot::Live(held)) if !held.is_down() => Some(held.connected.clone()),
            _ => None,
        }
    }

    /// The live link that `pick` says to the server as it is configured now.
    fn in_use(&self, server: &Arc<ServerSettings>, pick: Pick) -> Option<Connected> {
        lock(&self.0).get(&*key(server, pick))?.in_use(server)
    }

    /// All live links.
    pub(super) fn all_live(&self) -> Vec<(Arc<ServerSettings>, Connected)> {
        let slots = lock(&self.0);
        let live = slots.values().filter_map(|slot| match slot {
            Slot::Live(held) if !held.is_down() => Some((held.settings.clone(), held.connected.clone())),
            _ => None,
        });
        live.collect()
    }

    /// Takes leave of all links.
    pub(super) fn close_all(&self, tasks: &TaskTracker, farewell: Farewell) {
        for (_, slot) in std::mem::take(&mut *lock(&self.0)) {
            match slot {
                Slot::Live(held) => held.leave_on(tasks, farewell),
                // Its opener finds that nobody keeps it and closes it.
                Slot::Opening(..) => {}
            }
        }
    }

    /// Takes the link to a server out of use without closing it.
    pub(super) fn retire(&self, server: &ServerSettings) {
        let slot = lock(&self.0).remove(server.name.as_str());
        drop(slot);
    }

    /// Gives back the places of children that have ended.
    pub(super) fn forget_ended(&self, tasks: &TaskTracker) {
        let mut slots = lock(&self.0);
        for (_, slot) in slots.extract_if(|_, s| matches!(s, Slot::Live(held) if held.is_down())) {
            if let Slot::Live(mut held) = slot {
                held.place = None;
                held.close_on(tasks);
            }
        }
    }

    /// Takes leave of links to servers that are not meant to be here any more; gives their names.
    pub(super) fn close_unless(
        &self,
        keep: impl Fn(&Arc<ServerSettings>) -> bool,
        tasks: &TaskTracker,
    ) -> Vec<Arc<str>> {
        let gone: Vec<(Arc<str>, Slot)> = {
            let mut slots = lock(&self.0);
            let stays = |slot: &Slot| match slot {
                Slot::Opening(_, settings) => keep(settings),
                Slot::Live(held) => keep(&held.settings),
            };
            slots.extract_if(|_, slot| !stays(slot)).collect()
        };
        let mut names = Vec::with_capacity(gone.len());
        for (name, slot) in gone {
            names.push(name.split_once('#').map_or(name.clone(), |(name, _)| name.into()));
            if let Slot::Live(held) = slot {
                held.close_on(tasks);
            }
        }
        names
    }

    /// The link to a server, or the one that is on its way: one that `begin` begins, if there is neither.
    fn find(
        &self,
        server: &Arc<ServerSettings>,
        key: Cow<'_, str>,
        relay: &Relay,
        begin: impl FnOnce(Arc<str>) -> Opening,
    ) -> Found {
        let mut slots = lock(&self.0);
        match slots.get(&*key) {
            Some(slot @ Slot::Live(_)) if let Some(link) = slot.in_use(server) => return Found::Link(link),
            Some(Slot::Opening(opening, settings))
                if opening.is_under_way() && Arc::ptr_eq(settings, server) =>
            {
                return Found::Opening(opening.clone());
            }
            _ => {}
        }
        if !relay.catalog.knows(server) {
            return Found::Gone;
        }
        let key: Arc<str> = key.into();
        let opening = begin(key.clone());
        let replaced = slots.insert(key, Slot::Opening(opening.clone(), server.clone()));
        if let Some(Slot::Live(dead)) = replaced {
            dead.close_on(&relay.tasks);
        }
        Found::Opening(opening)
    }

    /// Puts an opened link in its place; gives it back if that was taken away meanwhile.
    fn settle(&self, key: &Arc<str>, opening: &Opening, held: Held) -> Result<(), Held> {
        let mut slots = lock(&self.0);
        match slots.get_mut(key) {
            Some(slot @ Slot::Opening(..)) if slot.is(opening) => {
                *slot = Slot::Live(held);
                Ok(())
            }
            _ => Err(held),
        }
    }

    /// Nothing came of an opening.
    fn vacate(&self, key: &Arc<str>, opening: &Opening) {
        let mut slots = lock(&self.0);
        if slots.get(key).is_some_and(|slot| slot.is(opening)) {
            slots.remove(key);
        }
    }
}

// === impl Slot ===

impl Slot {
    fn in_use(&self, server: &Arc<ServerSettings>) -> Option<Connected> {
        match self {
            Self::Live(held) if !held.is_down() && Arc::ptr_eq(&held.settings, server) => {
                Some(held.connected.clone())
            }
            _ => None,
        }
    }

    fn is(&self, opening: &Opening) -> bool {
        matches!(self, Self::Opening(own, _) if own.is(opening))
    }
}

// === impl Held ===

impl Held {
    pub(super) fn is_down(&self) -> bool {
        self.connected.link.is_down()
    }

    pub(super) fn close_on(self, tasks: &TaskTracker) {
        self.leave_on(tasks, Farewell::End);
    }

    pub(super) fn leave_on(self, tasks: &TaskTracker, farewell: Farewell) {
        tasks.spawn(async move {
            self.connected.link.close(farewell).await;
            drop(self.place);
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
        pick: Pick,
    ) -> Opened {
        let tenant = session.attached.tenant.as_deref();
        if let Isolation::Shared { size } = server.isolation {
            return self.shared_link(tenant, server, size, pick).await;
        }
        if let Some(link) = self.link_in_use(session, server, pick) {
            return Ok(link);
        }
        let known = self.learn(server).await?;
        // A modern HTTP server keeps no session, so there is nothing to isolate.
        if matches!((&server.transport, &known), (TransportSettings::Http(_), Known::Modern(_))) {
            return self.shared_link(tenant, server, 1, Pick::First).await;
        }
        let found = session.attached.links.find(server, key(server, pick), self, |key| {
            let (relay, session, server) = (self.clone(), session.clone(), server.clone());
            Flight::begin(&self.tasks, |own| async move {
                relay.open_for(&session, &server, known, &key, &own).await
            })
        });
        match found {
            Found::Link(link) => Ok(link),
            Found::Opening(opening) => wait_for(server, opening).await,
            Found::Gone => Err(reconfigured(&server.name)),
        }
    }

    /// The link of a session that most calls take, found without asking what its server is.
    fn link_in_use(&self, session: &Session, server: &Arc<ServerSettings>, pick: Pick) -> Option<Connected> {
        if let Some(link) = session.attached.links.in_use(server, pick) {
            return Some(link);
        }
        // Under `isolation: session` a link that is shared is one to a modern HTTP server.
        let shared = self.shared.in_use(session.attached.tenant.as_deref(), server)?;
        (shared.link.era() == Era::Modern).then_some(shared)
    }

    async fn open_for(
        self: &Arc<Self>,
        session: &Arc<Session>,
        server: &Arc<ServerSettings>,
        known: Known,
        key: &Arc<str>,
        opening: &Opening,
    ) -> Opened {
        let links = &session.attached.links;
        let hello = initialize_of(session, server);
        let (relay, own) = (Arc::downgrade(self), Arc::downgrade(session));
        let origin: Arc<dyn Listener> = Arc::new(Origin { relay, session: own, server: server.clone() });
        let opened = async {
            let place = self.place(server, self.sessions.arrival(session)).await?;
            let link = match self.link_of_before(session, server, hello.clone(), origin.clone()) {
                Some(link) => link,
                None => self.open_link(server, known, hello, session.epoch.0, origin.clone()).await?,
            };
            Ok(Held { connected: Connected { link, origin }, place, settings: server.clone() })
        };
        let held = opened.await.inspect_err(|_| links.vacate(key, opening))?;
        let connected = held.connected.clone();
        let level = session.log_level();
        self.restore(session, server, &connected).await;
        if let Err(held) = links.settle(key, opening, held) {
            held.close_on(&self.tasks);
        }
        // The session may have ended between the last look and the settling.
        if session.ended.is_cancelled() {
            links.close_all(&self.tasks, Farewell::End);
        }
        if session.log_level() != level {
            self.restore_level(session, &connected).await;
        }
        Ok(connected)
    }

    /// A link that goes on with the upstream session of an earlier owner, if the session had one.
    fn link_of_before(
        &self,
        session: &Session,
        server: &Arc<ServerSettings>,
        hello: Hello,
        origin: Arc<dyn Listener>,
    ) -> Option<Arc<Link>> {
        let state = lock(&session.attached.before).remove(server.name.as_str())?;
        // One that is not known by an id is no session that could be gone on with.
        state.session.as_ref()?;
        self.connector.resume(server.clone(), &state, hello, session.epoch.0, origin).ok()
    }

    /// Opens a link and learns what the server says of itself.
    pub(super) async fn open_link(
        &self,
        server: &Arc<ServerSettings>,
        known: Known,
        hello: Hello,
        epoch: u32,
        listener: Arc<dyn Listener>,
    ) -> Result<Arc<Link>, Failure> {
        let era = known.era();
        let opened = self.connector.open(server.clone(), known, hello, epoch, listener).await;
        match &opened {
            Ok(link) => self.catalog.introduce(server, &link.introduction()),
            Err(failure) => {
                self.doubt_era(server, era, failure);
                let (layer, reason) = (failure.layer.as_str(), failure.reason);
                tracing::warn!(server = %server.name, layer, reason, "{}", failure.message);
            }
        }
        opened
    }
}

/// What a link is kept under: a `#` stands in no server's name.
fn key(server: &ServerSettings, pick: Pick) -> Cow<'_, str> {
    match pick {
        Pick::Lane(number) if number > 0 => format!("{}#{number}", server.name).into(),
        Pick::Any | Pick::First | Pick::Lane(_) => server.name.as_str().into(),
    }
}

/// Waits for what is found out about a server, or opened to it.
///
/// # Errors
/// What came of it, or that nothing did.
pub(super) async fn wait_for<T>(
    server: &ServerSettings,
    flight: Flight<Result<T, Failure>>,
) -> Result<T, Failure>
where
    T: Clone + Send + Sync + 'static,
{
    flight.landed().await.unwrap_or_else(|| {
        Err(Failure {
            server: server.name.clone(),
            layer: Layer::Gateway,
            reason: "shutting_down",
            message: format!("The gateway stopped while it connected to server `{}`.", server.name),
            delivery: Delivery::NotDelivered,
        })
    })
}

/// A request found its server just before the configuration changed.
pub(super) fn reconfigured(server: &str) -> Failure {
    let message = format!("Server `{server}` was configured anew or removed meanwhile; try again.");
    let (layer, delivery) = (Layer::Gateway, Delivery::NotDelivered);
    Failure { server: server.to_owned(), layer, reason: "reconfigured", message, delivery }
}

/// What a modern server is told of the caller of a session in each request.
pub(super) fn hello_of(session: &Session, server: &ServerSettings) -> Hello {
    Hello {
        revision: asked_revision(server, session.revision()),
        capabilities: extensions::for_modern(&session.greeting.capabilities, session.revision()),
        client_info: session.greeting.client_info.clone(),
    }
}

/// What a legacy server is told of them in `initialize`.
fn initialize_of(session: &Session, server: &ServerSettings) -> Hello {
    let asked = asked_revision(server, session.revision());
    let capabilities = extensions::for_initialize(&session.greeting.capabilities, session.revision(), asked);
    Hello { capabilities, ..hello_of(session, server) }
}
