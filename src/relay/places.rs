//! How many children of each server may run at once (`pool.max`), over all replicas, and the places they take.
//!
//! What the others' leases say that they run takes places here: so many are set aside. A child of a session that was
//! handed over takes one of these if no other is free, since it may stand for a child of the earlier owner, which is
//! gone while its lease still counts it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Semaphore;

use super::Relay;
use crate::protocol::error::Layer;
use crate::session::{Arrival, Others, Tally};
use crate::settings::ServerSettings;
use crate::settings::servers::TransportSettings;
use crate::store::shares::ShareKind;
use crate::store::{Registry, lock};
use crate::upstream::{Delivery, Failure};

/// How long a child that must be started waits for a place, while others end.
const PLACE_WAIT: Duration = Duration::from_secs(1);

/// The places for children, by server.
pub(super) struct Places {
    servers: Registry<Arc<str>, Arc<ServerPlaces>>,
    others: Arc<Others>,
}

/// Those of one server: each is free, taken, or set aside.
#[derive(Debug)]
struct ServerPlaces {
    server: Arc<str>,
    free: Semaphore,
    all: usize,
    aside: Mutex<Aside>,
}

/// The places that are left to other replicas.
#[derive(Debug, Default)]
struct Aside {
    /// How many there should be: as many as their children.
    wanted: usize,
    /// How many there are; fewer while too many are taken here.
    held: usize,
}

/// A place among its server's children, where there must be one.
pub(super) type Place = Option<ChildPlace>;

/// The place of one child, given back when dropped.
#[derive(Debug)]
pub(super) struct ChildPlace(Arc<ServerPlaces>);

// === impl Places ===

impl Places {
    pub(super) fn new(others: Arc<Others>) -> Self {
        Self { servers: Registry::new(), others }
    }

    /// A place for one more child of `server`, at once; `None` where no place is needed.
    fn try_place(&self, server: &ServerSettings, arrival: Arrival) -> Option<Place> {
        let TransportSettings::Stdio(stdio) = &server.transport else { return Some(None) };
        self.of(server, stdio.max).try_take(arrival).map(Some)
    }

    /// The same, waiting for [`PLACE_WAIT`].
    async fn place(&self, server: &ServerSettings, arrival: Arrival) -> Result<Place, Failure> {
        let TransportSettings::Stdio(stdio) = &server.transport else { return Ok(None) };
        let places = self.of(server, stdio.max);
        if let Some(place) = places.try_take(arrival) {
            return Ok(Some(place));
        }
        match tokio::time::timeout(PLACE_WAIT, places.take()).await {
            Ok(Some(place)) => Ok(Some(place)),
            Ok(None) | Err(_) => Err(places.no_capacity()),
        }
    }

    fn of(&self, server: &ServerSettings, max: usize) -> Arc<ServerPlaces> {
        let name: Arc<str> = server.name.as_str().into();
        let new = || {
            let places = Arc::new(ServerPlaces::new(name.clone(), max));
            places.leave(self.others.hold(ShareKind::Children, name.as_bytes()));
            places
        };
        self.servers.get_or_insert_with(name.clone(), new)
    }

    /// How many children there are room is taken for.
    pub(super) fn taken(&self) -> usize {
        self.servers.values().iter().map(|places| places.taken()).sum()
    }

    /// Counts anew for servers that are not the same any more.
    pub(super) fn forget(&self, server: &str) {
        self.servers.remove(server);
    }

    /// Leaves as many places to other replicas as they take by now.
    pub(super) fn heed_others(&self) {
        for places in self.servers.values() {
            places.leave(self.others.hold(ShareKind::Children, places.server.as_bytes()));
        }
    }

    /// Tells how many children each server has here.
    pub(super) fn tell(&self, tally: &mut Tally) {
        let all = self.servers.values();
        tally.add(ShareKind::Children, 1, all.iter().map(|of| (of.server.as_bytes(), of.taken())));
    }
}

// === impl ServerPlaces ===

impl ServerPlaces {
    fn new(server: Arc<str>, all: usize) -> Self {
        Self { server, free: Semaphore::new(all), all, aside: Mutex::default() }
    }

    /// A place that is free, or one that was set aside for what is handed over.
    fn try_take(self: &Arc<Self>, arrival: Arrival) -> Option<ChildPlace> {
        if let Ok(free) = self.free.try_acquire() {
            free.forget();
            return Some(ChildPlace(self.clone()));
        }
        let mut aside = lock(&self.aside);
        if arrival == Arrival::New || aside.held == 0 {
            return None;
        }
        aside.held -= 1;
        Some(ChildPlace(self.clone()))
    }

    /// The next place that is free.
    async fn take(self: &Arc<Self>) -> Option<ChildPlace> {
        self.free.acquire().await.ok()?.forget();
        Some(ChildPlace(self.clone()))
    }

    fn give_back(&self) {
        let mut aside = lock(&self.aside);
        if aside.held < aside.wanted {
            aside.held += 1;
        } else {
            self.free.add_permits(1);
        }
    }

    /// Leaves places for `children` of other replicas; as soon as they are free, if too few are.
    fn leave(&self, children: usize) {
        let mut aside = lock(&self.aside);
        aside.wanted = children.min(self.all);
        if aside.held < aside.wanted {
            aside.held += self.free.forget_permits(aside.wanted - aside.held);
        } else {
            self.free.add_permits(aside.held - aside.wanted);
            aside.held = aside.wanted;
        }
    }

    fn taken(&self) -> usize {
        let aside = lock(&self.aside);
        self.all.saturating_sub(self.free.available_permits()).saturating_sub(aside.held)
    }

    fn no_capacity(&self) -> Failure {
        let (server, all) = (&self.server, self.all);
        let whose = if lock(&self.aside).wanted > 0 { " over all replicas" } else { "" };
        let message = format!(
            "Server `{server}` already runs as many processes as its pool.max allows ({all}{whose}); end sessions or \
             try later."
        );
        let (layer, delivery) = (Layer::Process, Delivery::NotDelivered);
        Failure { server: server.to_string(), layer, reason: "no_capacity", message, delivery }
    }
}

impl Drop for ChildPlace {
    fn drop(&mut self) {
        self.0.give_back();
    }
}

// === impl Relay ===

impl Relay {
    /// A place for one more child; those that have ended give theirs back first.
    pub(super) async fn place(&self, server: &ServerSettings, arrival: Arrival) -> Result<Place, Failure> {
        if let Some(place) = self.children.try_place(server, arrival) {
            return Ok(place);
        }
        for session in self.sessions.all() {
            session.attached.links.forget_ended(&self.tasks);
        }
        self.children.place(server, arrival).await.inspect_err(|failure| {
            let (layer, reason) = (failure.layer.as_str(), failure.reason);
            tracing::warn!(server = %server.name, layer, reason, "{}", failure.message);
        })
    }
}

#[cfg(test)]
mod tests;
